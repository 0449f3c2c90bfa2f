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

// Locked reports whether a living process holds the lock of a file of this machine. It does not take the lock,
// and a missing file has none.
func Locked(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
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
