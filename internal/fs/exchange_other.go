//go:build !linux

package fs

import "errors"

// exchange would swap two names in one step; this system has no call for it.
func exchange(string, string) error { return errors.ErrUnsupported }
