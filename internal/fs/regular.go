package fs

import (
	"errors"
	"os"

	"taxon/internal/fs/vfs"
)

// OpenRegular opens a file of this machine that taxon has made, or that must be as it made it. A pipe,
// a device or a socket in its place is refused at once, as opening or reading one can wait for ever.
func OpenRegular(path string) (*os.File, error) {
	f, err := vfs.OpenRegular(path)
	if errors.Is(err, vfs.ErrSpecial) {
		err = Explain(path, err)
	}
	return f, err
}
