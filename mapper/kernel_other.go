//go:build !amd64 || purego

package mapper

// native returns no kernels: this CPU has Go's alone.
func native() []Kernel { return nil }
