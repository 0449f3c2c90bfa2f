package blockwise

import "taxon/coordinator/method"

// These are the list of items, and the operations on them.
const (
	Problems = 0 // the list of problems

	OpSolve = "solve" // one sweep of a problem; its parameters are Solve
	OpEmit  = "emit"  // writes the problem's weights; it has no parameters
)

// These are the figures of a task, in the order of method.Sums. The figures of a method come after
// them.
const (
	SumPrimal = iota // P at the weights, rounded as they are written
	SumDual          // D at the duals
	Figures
)

// Sums returns the names of a task's figures. The common ones come first, followed by the method's
// own.
func Sums(own ...method.Sum) []method.Sum {
	return append([]method.Sum{{Name: "primal"}, {Name: "dual"}}, own...)
}

// Solve holds the parameters of OpSolve.
type Solve struct {
	// Gap is the relative duality gap at which the problem is solved.
	Gap float64

	// Epochs is the largest number of passes over the working sets.
	Epochs int
}
