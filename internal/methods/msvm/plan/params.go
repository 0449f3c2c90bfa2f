package plan

import (
	"taxon/coordinator/method"
	"taxon/internal/methods/blockwise"
)

// Dual is the family of values. The value of a problem holds its duals, and the working set of
// classes of each instance.
const Dual = "dual"

// These are the figures of a task, in the order of method.Sums.
const (
	SumSupport = blockwise.Figures + iota // nonzero duals
	SumWorking                            // (instance, class) pairs in the next sweep's working sets
	SumEpochs                             // passes over the working sets
	SumVisits                             // nonzeros visited, times classes
	Figures
)

var sumNames = blockwise.Sums(method.Sum{Name: "support", Count: true}, method.Sum{Name: "working", Count: true},
	method.Sum{Name: "epochs", Count: true}, method.Sum{Name: "visits", Count: true})
