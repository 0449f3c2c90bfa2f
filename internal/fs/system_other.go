//go:build !unix

package fs

import (
	"errors"
	"os"
)

// tryLock does nothing on systems without advisory locks on folders.
func tryLock(*os.File) error { return nil }

// abandoned can't be found out without locks.
func abandoned(*os.File) bool { return false }

// ignoreUnsupported drops all errors: folders cannot be synced on these systems.
func ignoreUnsupported(error) error { return nil }

// errQuota has no counterpart on this system; nothing equals it.
var errQuota = errors.New("disk quota exceeded")
