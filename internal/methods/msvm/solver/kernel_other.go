//go:build !amd64 || purego

package solver

// native holds the kernels in assembly, of which this CPU supports none.
func native() map[string]kernel { return nil }
