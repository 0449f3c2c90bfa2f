//go:build linux || darwin

package badger

import (
	"errors"
	"syscall"
)

// freeBytes returns how many bytes of a file system this process may use.
func freeBytes(dir string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil
}

// noSpace reports whether an error means that the disk is full.
func noSpace(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
