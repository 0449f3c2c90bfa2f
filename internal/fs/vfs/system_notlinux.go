//go:build !linux

package vfs

import "errors"

// exchange returns an error, because this system cannot swap two names in one step.
func exchange(string, string) error { return errors.ErrUnsupported }

// SyncData implements File.
func (f osFile) SyncData() error { return f.Sync() }
