package model

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sync/errgroup"

	"taxon/internal/fs"
)

// WriteParts makes the folder dir with part-00000EXT, part-00001EXT, ..., `threads` at a time,
// the files of beside (name to content) and an empty _SUCCESS. write gets the nodes of a part,
// parts[i] up to parts[i+1], and a buffered writer. The folder must not exist or be empty; it
// appears under its name when it is whole.
func WriteParts(ctx context.Context, dir, ext string, parts []int, threads int, write func(ctx context.Context, w io.Writer, first, last int) error, beside map[string][]byte) error {
	if threads < 1 {
		return fmt.Errorf("export: %d threads: must be at least 1", threads)
	}
	out, err := fs.CreateDir(dir, false)
	if err != nil {
		return err
	}
	defer out.Abort()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(threads)
	for i := range len(parts) - 1 {
		g.Go(func() error {
			return fs.Explain(dir, writePart(out.Join(fmt.Sprintf("part-%05d%s", i, ext)), func(w io.Writer) error {
				return write(gctx, w, parts[i], parts[i+1])
			}))
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for name, content := range beside {
		if err := os.WriteFile(out.Join(name), content, 0o666); err != nil {
			return fs.Explain(dir, err)
		}
	}
	if err := os.WriteFile(out.Join(hadoopMark), nil, 0o666); err != nil {
		return fs.Explain(dir, err)
	}
	return out.Commit()
}

func writePart(name string, write func(io.Writer) error) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	buf := bufio.NewWriterSize(out, 1<<20)
	if err := write(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	return out.Close()
}
