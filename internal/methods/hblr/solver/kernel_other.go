//go:build !amd64 || purego

package solver

// native lists the kernels in assembly, of which this CPU supports none.
func native() []Kernel { return nil }
