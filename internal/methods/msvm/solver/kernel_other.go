//go:build !amd64 || purego

package solver

// native are the kernels of this CPU: none but Go's.
func native() map[string]kernel { return nil }
