package mapper

import "fmt"

// Lanes is the number of classes that share a pass over a row: sixteen float32 weights
// fill one 64-byte cache line a feature.
const Lanes = 16

// parts is the number of partial sums of a score: entry j of a row adds to partial sum
// j mod 4, and the score is (s0 + s1) + (s2 + s3), the bias's product being the first of
// s0. Four chains of additions hide their latency.
const parts = 4

// real is the arithmetic of a descent. float32 is fast, and float64 goes below its rounding.
type real interface{ float32 | float64 }

// Kernel is one implementation of the loops that take the time. All implementations give equal
// bits: every lane adds a row's products in the order that parts describes, multiply and add are
// not fused, and comparisons treat NaN alike. So results do not depend on the machine that they
// were computed on. ParseKernel and Kernels return the ones that exist; the zero value is of no
// use.
type Kernel struct {
	name    string
	visit32 byLoss[float32]
	visit64 byLoss[float64]
	// narrow is visit32 on a narrow tile. Its functions are nil if there is none.
	narrow  byLoss[float32]
	lanes32 func(*laneArgs[float32])
	lanes64 func(*laneArgs[float64])
	score   func(*scoreArgs)
	exact   func(*exactArgs)
	add     func(*addArgs)
	gather  func(*gatherArgs)
	start   func(*startArgs)
	spread  func(*spreadArgs)
}

// byLoss holds the visiting loops for the hinge and for the squared hinge.
type byLoss[T real] [2]func(*visitArgs[T])

// goKernel is the implementation that every other one must equal to the bit.
var goKernel = Kernel{"go", visits32, visits64, byLoss[float32]{}, visitLanes[float32], visitLanes[float64],
	scoreRows, exactRow, addRows, gatherRows, startRows, spreadLine}

var (
	visits32 = byLoss[float32]{visitHinge[float32], visitSquared[float32]}
	visits64 = byLoss[float64]{visitHinge[float64], visitSquared[float64]}
)

// Kernels returns the kernels that this CPU supports, the fastest first.
func Kernels() []Kernel { return append(native(), goKernel) }

// ParseKernel returns the kernel with a name ("avx512", "avx2", "go"). An empty name stands for the
// fastest. It is an error if no kernel has the name or if this CPU does not support it.
func ParseKernel(name string) (Kernel, error) {
	all := Kernels()
	var names []string
	for _, k := range all {
		if name == k.name || name == "" {
			return k, nil
		}
		names = append(names, k.name)
	}
	return Kernel{}, fmt.Errorf("unknown kernel %q, or one that this CPU does not support (it has %q)", name, names)
}

// String returns the kernel's name.
func (k Kernel) String() string { return k.name }
