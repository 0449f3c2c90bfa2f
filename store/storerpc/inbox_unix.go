//go:build unix

package storerpc

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"taxon/internal/fs/vfs"
)

// openPlain opens a file that the other side made. It accepts no link, and nothing that blocks.
func openPlain(path string) (vfs.File, error) {
	f, err := vfs.OS.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, f.Close(), fmt.Errorf("%s is no plain file", path))
	}
	return f, nil
}

// shortCircuits says whether this system has what a short circuit needs.
const shortCircuits = true
