package plan

import "taxon/coordinator/method"

// These are the lists of items, the family of values (a chain's point and its draws), and the
// operations.
const (
	Chains = 0
	All    = 1 // a list of one item, for all chains

	Chain = "chain"

	OpSample  = "sample"  // iterations of a chain; its parameters are Sample
	OpCompare = "compare" // compares all chains; it has no parameters
	OpEmit    = "emit"    // writes the weights; it has no parameters
)

// Sample holds the parameters of OpSample.
type Sample struct {
	// Iterations is the number of iterations to run.
	Iterations uint32

	// Adapt is set during the burn-in, in which step sizes are adapted.
	Adapt bool `json:",omitempty"`

	// Leapfrog is the largest number of leapfrog steps of a trajectory.
	Leapfrog uint32

	// Keep is the largest number of draws to store.
	Keep uint32

	// Every is the distance between two stored draws, in iterations.
	Every uint32
}

// These are the figures of a task, in the order of method.Sums.
const (
	SumIterations = iota // of sample: iterations run

	// SumEnergy is a figure of sample and of compare. For sample it is the sum over the iterations
	// of -log of the posterior density, for compare the mean over all draws.
	SumEnergy
	SumAccepted  // of sample: sum of acceptance probabilities
	SumGradients // of sample: passes over the data
	SumDiverged  // of sample: trajectories that left the range of float64
	SumRHat      // of compare: the largest R-hat; 0 if unknown
	// SumESS is a figure of compare: the smallest effective sample size, or 0 if it is unknown.
	SumESS
	SumDraws // of compare: draws of all chains
	SumKept  // of compare: draws that the model will store
	Figures
)

var sumNames = []method.Sum{{Name: "iterations", Count: true}, {Name: "energy"}, {Name: "accepted"},
	{Name: "gradients", Count: true}, {Name: "diverged", Count: true},
	{Name: "r_hat"}, {Name: "ess"}, {Name: "draws", Count: true}, {Name: "kept", Count: true}}
