package mapper

import "fmt"

// Lanes is the number of classes that share a pass over a row: sixteen float32 weights
// fill one 64-byte cache line a feature.
const Lanes = 16

// parts is the number of partial sums of a score: entry j of a row adds to partial sum
// j mod 4, and the score is (s0 + s1) + (s2 + s3), the bias's product being the first of
// s0. Four chains of additions hide their latency.
const parts = 4

// real is the arithmetic of a descent: float32 is fast, float64 goes below its rounding.
type real interface{ float32 | float64 }

// Kernel is one implementation of the loops that take the time. All of them give equal
// bits: every lane adds a row's products in the order that parts describes, multiply and
// add unfused, and comparisons treat NaN alike. So results do not depend on the machine
// that they were computed on.
// Made by ParseKernel or Kernels.
type Kernel struct {
	name     string
	visit32  func(*sweep[float32], Loss)
	visit64  func(*sweep[float64], Loss)
	narrow   func(*sweep[float32], Loss) // visit32 on a narrow tile; nil: there is none
	dense32  func(*denseSweep[float32])
	dense64  func(*denseSweep[float64])
	score    func(*scoring)
	exact    func(*exacting)
	add      func(*adding)
	gather   func(*gathering)
	start    func(*starting)
	spread   func(*spreading)
	spreadAt func(*spreading)
}

// goKernel is what every other kernel must equal.
var goKernel = Kernel{"go", visitRows[float32], visitRows[float64], nil, visitDense[float32], visitDense[float64], scoreRows, exactRow, addRows, gatherRows, layRows, spreadLine, spreadAt}

// Kernels are those that this CPU supports, the fastest first.
func Kernels() []Kernel { return append(native(), goKernel) }

// ParseKernel finds a kernel by name ("avx512", "avx2", "go"); "" is the fastest one. It is
// an error if there is none of that name or if this CPU does not support it.
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

// String is the kernel's name.
func (k Kernel) String() string { return k.name }

// visit runs the kernel for T.
func visit[T real](k *Kernel, e *sweep[T], loss Loss) {
	switch e := any(e).(type) {
	case *sweep[float32]:
		if e.narrow != 0 {
			k.narrow(e, loss)
			return
		}
		k.visit32(e, loss)
	case *sweep[float64]:
		k.visit64(e, loss)
	}
}

// visitLanes is visit for a dense pass.
func visitLanes[T real](k *Kernel, e *denseSweep[T]) {
	switch e := any(e).(type) {
	case *denseSweep[float32]:
		k.dense32(e)
	case *denseSweep[float64]:
		k.dense64(e)
	}
}
