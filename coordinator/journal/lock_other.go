//go:build !unix

package journal

import "os"

// lockDir opens the lock file at path. This system has no locks.
func lockDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
