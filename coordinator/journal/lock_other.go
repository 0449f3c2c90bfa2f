//go:build !unix

package journal

import "os"

// lockDir opens the lock file at path; there is no lock on this system.
func lockDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
