//go:build amd64 && !purego

package reducer

import "golang.org/x/sys/cpu"

// The assembly is in strips_amd64.s. Each function's name says which field of stripLoops it
// implements.

//go:noescape
func open512(node *strip, x, prev *float32, n int, beta float32)

//go:noescape
func add512(sum *[stripWidth]float64, x *float32, n int)

//go:noescape
func addDegrees512(sum *[stripWidth]float64, code *uint8, n int, degrees *[256]float64)

//go:noescape
func begin512(first *strip, nodes int)

//go:noescape
func eliminate512(all *strip, parent *int32, nodes int)

//go:noescape
func substitute512(all *strip, parent *int32, nodes int, next *float32, width, n int, sums *stripSums)

// fastest returns the loops for this CPU.
func fastest() stripLoops {
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		return stripLoops{open512, add512, addDegrees512, begin512, eliminate512, substitute512}
	}
	return goLoops
}
