//go:build amd64 && !purego

package solver

// The assembly in kernel_amd64.s, written by internal/tools/kernelgen.

//go:noescape
func score512(e *rowArgs)

//go:noescape
func add512(e *rowArgs)

//go:noescape
func score256(e *rowArgs)

//go:noescape
func add256(e *rowArgs)

// native maps the names of package mapper's kernels to kernels in assembly that need the same
// instructions.
func native() map[string]kernel {
	return map[string]kernel{"avx512": {score512, add512}, "avx2": {score256, add256}}
}
