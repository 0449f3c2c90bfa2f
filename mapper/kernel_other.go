//go:build !amd64 || purego

package mapper

// native returns no kernels, because on this CPU there is only the kernel in Go.
func native() []Kernel { return nil }
