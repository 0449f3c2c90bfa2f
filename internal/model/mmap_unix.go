//go:build unix

package model

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a whole file read-only; release unmaps it.
func mapFile(name string) (b []byte, release func() error, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if st.Size() == 0 || !st.Mode().IsRegular() {
		return nil, func() error { return nil }, nil
	}
	b, err = unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, &os.PathError{Op: "mmap", Path: name, Err: err}
	}
	return b, func() error { return unix.Munmap(b) }, nil
}
