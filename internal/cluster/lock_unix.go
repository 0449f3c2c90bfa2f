//go:build unix

package cluster

import (
	"context"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"taxon/internal/fs"
	"taxon/internal/retry"
)

// lockFile waits for an advisory lock, which ends with the process.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) { // a file system without locks is accepted
			return func() { f.Close() }, nil
		}
		if err := retry.For(ctx, lockWait); err != nil {
			f.Close()
			return nil, err
		}
	}
}

// tryLockFile takes an advisory lock, which ends with the process. It returns nil if another
// process has it.
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
