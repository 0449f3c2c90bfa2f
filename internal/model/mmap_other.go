//go:build !unix

package model

import "os"

// mapFile reads a whole file, on systems without memory maps.
func mapFile(name string) (b []byte, release func() error, err error) {
	b, err = os.ReadFile(name)
	return b, func() error { return nil }, err
}
