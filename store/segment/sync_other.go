//go:build !linux

package segment

import "os"

func syncData(f *os.File) error { return f.Sync() }
