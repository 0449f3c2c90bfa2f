//go:build !amd64 || purego

package mapper

// loopsOf returns the loops in Go, whatever the kernel.
func loopsOf(Kernel) loops { return goLoops }
