package fs

import (
	"errors"
	"os"

	"taxon/internal/fs/vfs"
)

// OpenRegular opens a local file that taxon has written, or that must be unchanged since. It
// refuses a pipe, device or socket in its place at once, because opening or reading one can block
// for ever.
func OpenRegular(path string) (*os.File, error) {
	f, err := vfs.OpenRegular(path)
	if errors.Is(err, vfs.ErrSpecial) {
		err = Explain(path, err)
	}
	return f, err
}
