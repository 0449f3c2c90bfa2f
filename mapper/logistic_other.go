//go:build !amd64 || purego

package mapper

// tilesOf are the tile loops that go with a kernel: none but Go's.
func tilesOf(Kernel) tiles { return goTiles }
