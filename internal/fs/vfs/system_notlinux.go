//go:build !linux

package vfs

import "errors"

// exchange would swap two names in one step. This system has no call for it.
func exchange(string, string) error { return errors.ErrUnsupported }

// SyncData implements File.
func (f osFile) SyncData() error { return f.Sync() }
