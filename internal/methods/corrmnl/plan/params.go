package plan

import "taxon/coordinator/method"

// The lists of items, the family of values (a chain's point and draws), and the operations.
const (
	Chains = 0
	All    = 1 // one item: all chains

	Chain = "chain"

	OpSample  = "sample"  // of a chain: params Sample
	OpCompare = "compare" // all chains; no parameters
	OpEmit    = "emit"    // write the weights; no parameters
)

// Sample are the parameters of OpSample.
type Sample struct {
	Iterations uint32
	Adapt      bool   `json:",omitempty"` // burn-in
	Leapfrog   uint32 // steps at most
	Keep       uint32 // draws that are kept at most,
	Every      uint32 // one of this many
}

// Figures of a task, in the order of method.Sums.
const (
	SumIterations = iota // sample
	// sample: of -log of the posterior's density, over the iterations; compare: its mean over all draws
	SumEnergy
	SumAccepted  // sample: of acceptance probabilities
	SumGradients // sample: passes over the data
	SumDiverged  // sample: trajectories that left the range of numbers
	SumRHat      // compare: the largest; 0: not known
	SumESS       // compare: the smallest; 0: not known
	SumDraws     // compare: of all chains
	SumKept      // compare: draws that the model will hold
	Figures
)

var sumNames = []method.Sum{{Name: "iterations", Count: true}, {Name: "energy"}, {Name: "accepted"},
	{Name: "gradients", Count: true}, {Name: "diverged", Count: true},
	{Name: "r_hat"}, {Name: "ess"}, {Name: "draws", Count: true}, {Name: "kept", Count: true}}
