//go:build amd64 && !purego

package mapper

import "golang.org/x/sys/cpu"

// The assembly is in kernel_amd64.s, written by internal/tools/kernelgen. Each function's name says
// which field of which Kernel it implements.

//go:noescape
func visitHinge32512(e *visitArgs[float32])

//go:noescape
func visitSquared32512(e *visitArgs[float32])

//go:noescape
func visitHinge64512(e *visitArgs[float64])

//go:noescape
func visitSquared64512(e *visitArgs[float64])

//go:noescape
func score512(e *scoreArgs)

//go:noescape
func exact512(e *exactArgs)

//go:noescape
func add512(e *addArgs)

//go:noescape
func gather512(e *gatherArgs)

//go:noescape
func start512(e *startArgs)

//go:noescape
func spread512(e *spreadArgs)

//go:noescape
func visitHinge32256(e *visitArgs[float32])

//go:noescape
func visitSquared32256(e *visitArgs[float32])

//go:noescape
func lanes32(e *laneArgs[float32])

//go:noescape
func lanes64(e *laneArgs[float64])

//go:noescape
func visitHinge32256Narrow(e *visitArgs[float32])

//go:noescape
func visitSquared32256Narrow(e *visitArgs[float32])

//go:noescape
func score256(e *scoreArgs)

//go:noescape
func exact256(e *exactArgs)

//go:noescape
func add256(e *addArgs)

//go:noescape
func gather256(e *gatherArgs)

//go:noescape
func start256(e *startArgs)

//go:noescape
func spread256(e *spreadArgs)

// native returns the kernels in assembly that this CPU supports, the fastest first.
func native() (kernels []Kernel) {
	narrow := byLoss[float32]{visitHinge32256Narrow, visitSquared32256Narrow}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT {
		kernels = append(kernels, Kernel{"avx512",
			byLoss[float32]{visitHinge32512, visitSquared32512}, byLoss[float64]{visitHinge64512, visitSquared64512}, narrow,
			lanes32, lanes64,
			score512, exact512, add512, gather512, start512, spread512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT {
		kernels = append(kernels, Kernel{"avx2",
			byLoss[float32]{visitHinge32256, visitSquared32256}, visits64, narrow, lanes32, lanes64,
			score256, exact256, add256, gather256, start256, spread256})
	}
	return kernels
}
