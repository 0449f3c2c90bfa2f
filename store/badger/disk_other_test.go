//go:build !linux

package badger

import (
	"testing"

	"taxon/store"
)

// fullDisk: small file systems are mounted on Linux only.
func fullDisk(func(*testing.T, string) *Store) func(t *testing.T) (store.Store, func()) { return nil }
