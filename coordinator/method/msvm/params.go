package msvm

import "taxon/coordinator/method"

// The list of items, and the operations on them.
const (
	Problems = 0 // one: the whole problem

	OpSolve = "solve" // a sweep: params Solve
	OpEmit  = "emit"  // write the weights; no parameters
)

// Dual is the family of values: of a problem, its duals, and the classes that each instance
// looks at.
const Dual = "dual"

// Figures of a task, as they stand in method.Sums.
const (
	SumPrimal  = iota // P at the weights as they would be written
	SumDual           // D
	SumSupport        // nonzero duals
	SumWorking        // instances and classes that the next sweep looks at
	SumEpochs         // passes over those
	SumVisits         // nonzeros touched, times classes
	Figures
)

var sumNames = []method.Sum{{Name: "primal"}, {Name: "dual"}, {Name: "support", Count: true}, {Name: "working", Count: true},
	{Name: "epochs", Count: true}, {Name: "visits", Count: true}}

// Solve are the parameters of OpSolve.
type Solve struct {
	Gap    float64 // the relative gap that is wanted
	Epochs int     // passes at most
}
