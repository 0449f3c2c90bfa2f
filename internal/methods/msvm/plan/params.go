package plan

import (
	"taxon/coordinator/method"
	"taxon/internal/methods/blockwise"
)

// Dual is the family of values: of a problem, its duals, and the classes that each instance
// looks at.
const Dual = "dual"

// Figures of a task, in the order of method.Sums.
const (
	SumSupport = blockwise.Figures + iota // nonzero duals
	SumWorking                            // instances and classes that the next sweep looks at
	SumEpochs                             // passes over those
	SumVisits                             // nonzeros touched, times classes
	Figures
)

var sumNames = blockwise.Sums(method.Sum{Name: "support", Count: true}, method.Sum{Name: "working", Count: true},
	method.Sum{Name: "epochs", Count: true}, method.Sum{Name: "visits", Count: true})
