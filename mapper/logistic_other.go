//go:build !amd64 || purego

package mapper

// loopsOf are the tile loops that go with a kernel: none but Go's.
func loopsOf(Kernel) loops { return goLoops }
