package blockwise

import "taxon/coordinator/method"

// The list of items, and the operations on them.
const (
	Problems = 0 // the problems

	OpSolve = "solve" // a sweep of one: params Solve
	OpEmit  = "emit"  // write its weights; no parameters
)

// Figures of a task, in the order of method.Sums. A method's own come after them.
const (
	SumPrimal = iota // P at the weights as they would be written
	SumDual          // D
	Figures
)

// Sums names the figures of the methods' plans.
func Sums(own ...method.Sum) []method.Sum {
	return append([]method.Sum{{Name: "primal"}, {Name: "dual"}}, own...)
}

// Solve are the parameters of OpSolve.
type Solve struct {
	Gap    float64 // the relative gap that is wanted
	Epochs int     // passes at most
}
