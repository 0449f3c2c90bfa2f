//go:build !amd64 || purego

package mapper

// native are the kernels of this CPU: none but Go's.
func native() []Kernel { return nil }
