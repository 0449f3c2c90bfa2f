package taxonomy

import (
	"context"
	"io"

	"taxon/internal/fs"
)

// ReadFile reads the structure file at a path by read: Read, ReadTree or ReadGraph.
func ReadFile(ctx context.Context, files fs.Local, path string, read func(io.Reader, string) (*Structure, []string, error)) (*Structure, []string, error) {
	f, err := fs.Open(ctx, files, path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return read(f, f.Name())
}
