//go:build !unix

package vfs

import (
	"errors"
	iofs "io/fs"
)

// Lock implements File. This system has no advisory locks on folders: it does nothing.
func (f osFile) Lock() error { return nil }

// Locked returns false, because this system does not tell who holds a lock.
func Locked(string) bool { return false }

// Owned returns false, because this system does not tell who owns a file.
func Owned(iofs.FileInfo) bool { return false }

// IgnoreUnsupported drops all errors, because folders cannot be synced on these systems.
func IgnoreUnsupported(error) error { return nil }

// ErrQuota has no counterpart on this system. No error equals it.
var ErrQuota = errors.New("disk quota exceeded")
