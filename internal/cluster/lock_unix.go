//go:build unix

package cluster

import (
	"context"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"taxon/internal/fs"
	"taxon/internal/pause"
)

// lockFile takes an advisory lock that ends with the process, waiting for it.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) { // no locks there: let through
			return func() { f.Close() }, nil
		}
		if err := pause.For(ctx, lockWait); err != nil {
			f.Close()
			return nil, err
		}
	}
}

// tryLockFile takes an advisory lock that ends with the process; nil: another one has it.
func tryLockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		return nil, nil
	}
	return f, nil
}
