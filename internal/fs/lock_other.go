//go:build !unix

package fs

import "os"

// tryLock does nothing on systems without advisory locks on folders.
func tryLock(*os.File) error { return nil }

// ignoreUnsupported drops all errors: folders cannot be synced on these systems.
func ignoreUnsupported(error) error { return nil }
