//go:build unix

package vfs

import (
	"errors"
	iofs "io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Lock implements File.
func (f osFile) Lock() error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Owned reports whether a file belongs to the user of this process.
func Owned(info iofs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Getuid()
}

// IgnoreUnsupported drops the error of file systems that cannot sync a folder.
func IgnoreUnsupported(err error) error {
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// ErrQuota is the error of a user whose disk quota is exhausted.
var ErrQuota error = syscall.EDQUOT
