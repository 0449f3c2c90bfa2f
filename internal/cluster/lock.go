package cluster

import (
	"context"
	"os"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/retry"
)

// lockFile waits for the lock of a file, which ends with the process. unlock ends it earlier.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	for {
		f, err := tryLockFile(path)
		if err != nil {
			return nil, err
		}
		if f != nil {
			return func() { f.Close() }, nil
		}
		if err := retry.For(ctx, lockWait); err != nil {
			return nil, err
		}
	}
}

// tryLockFile takes the lock of a file, which ends with the process. It returns nil if another
// process has it. A file system without locks is accepted.
func tryLockFile(path string) (vfs.File, error) {
	f, err := vfs.OS.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	if vfs.Busy(f) {
		f.Close()
		return nil, nil
	}
	return f, nil
}
