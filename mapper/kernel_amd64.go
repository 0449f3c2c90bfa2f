//go:build amd64 && !purego

package mapper

import "golang.org/x/sys/cpu"

// The assembly in kernel_amd64.s, written by internal/tools/kernelgen. Each function is
// the one of its Kernel that its name says.

//go:noescape
func visitHinge32512(e *sweep[float32])

//go:noescape
func visitSquared32512(e *sweep[float32])

//go:noescape
func visitHinge64512(e *sweep[float64])

//go:noescape
func visitSquared64512(e *sweep[float64])

//go:noescape
func score512(e *scoring)

//go:noescape
func exact512(e *exacting)

//go:noescape
func add512(e *adding)

//go:noescape
func gather512(e *gathering)

//go:noescape
func start512(e *starting)

//go:noescape
func spreadAt512(e *spreading)

//go:noescape
func spread512(e *spreading)

//go:noescape
func visitHinge32256(e *sweep[float32])

//go:noescape
func visitSquared32256(e *sweep[float32])

//go:noescape
func dense32(e *denseSweep[float32])

//go:noescape
func dense64(e *denseSweep[float64])

//go:noescape
func visitHinge32256Narrow(e *sweep[float32])

//go:noescape
func visitSquared32256Narrow(e *sweep[float32])

//go:noescape
func score256(e *scoring)

//go:noescape
func exact256(e *exacting)

//go:noescape
func add256(e *adding)

//go:noescape
func gather256(e *gathering)

//go:noescape
func start256(e *starting)

//go:noescape
func spreadAt256(e *spreading)

//go:noescape
func spread256(e *spreading)

// native are the kernels in assembly that this CPU supports, the fastest first.
func native() (kernels []Kernel) {
	narrow := byLoss(visitHinge32256Narrow, visitSquared32256Narrow)
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT {
		kernels = append(kernels, Kernel{"avx512",
			byLoss(visitHinge32512, visitSquared32512), byLoss(visitHinge64512, visitSquared64512), narrow, dense32, dense64,
			score512, exact512, add512, gather512, start512, spread512, spreadAt512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT {
		kernels = append(kernels, Kernel{"avx2",
			byLoss(visitHinge32256, visitSquared32256), visitRows[float64], narrow, dense32, dense64,
			score256, exact256, add256, gather256, start256, spread256, spreadAt256})
	}
	return kernels
}

// byLoss chooses between the visits of the two losses.
func byLoss[T real](hinge, squared func(*sweep[T])) func(*sweep[T], Loss) {
	return func(e *sweep[T], loss Loss) {
		if loss == SquaredHinge {
			squared(e)
			return
		}
		hinge(e)
	}
}
