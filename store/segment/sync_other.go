//go:build !linux

package segment

import "os"

// syncData makes a file's bytes and its size durable.
func syncData(f *os.File) error { return f.Sync() }
