package hblr

import (
	"fmt"

	"taxon/coordinator/method"
)

// The lists of items, and the operations on them.
const (
	Blocks = 0 // blocks of at most sixteen leaves of one set
	Ranges = 1 // feature ranges of Plan.Width columns each; the bias is the last column
	Whole  = 2 // one item

	OpLeaves    = "leaves"    // of a block: its leaves' means: params Leaves
	OpPartition = "partition" // soft-max, of the whole: the offset of each row: params Partition
	OpMessages  = "tell"      // soft-max, of a block: what solved leaves say to their parents; no parameters
	OpInternals = "internals" // of a range: the internals' means, and M2's precisions: params Internals
	OpGamma     = "gamma"     // of the whole: precisions of M1 and M3, and how far all has moved: params Gamma
	OpMove      = "move"      // of a range, or the whole: the next point: params Move
	OpSummary   = "summary"   // of the whole: figures of the precisions; no parameters
	OpEmit      = "emit"      // of a block: means, variances, precisions; no parameters
	OpEmitMean  = "emit-mean" // of a range: the internals' means; no parameters
	OpEmitAlpha = "emit-prec" // of a range (M2) or the whole: the internals' precisions; no parameters
	OpFit       = "fit"       // of a block: the priors' rates, from logistic regressions; no parameters
)

// Families of values, all of float64. A point x is the internals' means and the logarithms of
// the precisions; G(x) is what a round of all updates makes of it, F = G(x) - x. They lie by
// feature range; the precisions of M1 and M3 lie apart, with the whole.
const (
	Leaf      = "leaf"  // of a block: its leaves' means
	Pull      = "pull"  // of a block, cut by ranges: what the leaves say to their parents
	Trace     = "trace" // of a block: sums over the features, leaf by leaf
	Share     = "share" // soft-max, of a block: by row, its leaves' sums (mapper/hblr.Scratch.LogSum, Bounded.Share)
	LastMeans = "told"  // soft-max, of a block: its leaves' means when they last told
	Above     = "above" // of a range, cut by blocks: what the parents say to their leaves
	Half      = "half"  // of a range: a point within a round by parity
	Sigma     = "sigma" // variational, of a block: the square roots of its leaves' variances
	Part      = "part"  // of a range: sums over its features, internal by internal
	Rate      = "rate"  // of a block: its leaves' fitted rates; of M2 cut by ranges, their sums by parent

	// Offset is, soft-max, of the whole: by row, the number that stands for the other leaves (mapper/hblr.Block.Offset) as the
	// last solve leaves it; OffsetF how far that is from what the solve was given.
	Offset, OffsetF = "tie", "tief"

	X, G, F                = "x", "g", "f"                // of a range
	XAlpha, GAlpha, FAlpha = "xalpha", "galpha", "falpha" // of the whole
	// EM are the precisions by the paper's own step, of a range (M2); EMAlpha of the whole.
	EM, EMAlpha = "em", "emalpha"
	// Pace is, of M2, of a range: how much of its steps each precision makes (mapper/hblr.Pace).
	Pace = "pace"
)

// OffsetMemory is how many older offsets their extrapolation remembers.
const OffsetMemory = 8

// Memory is how many older points the extrapolation remembers, where they are small.
const Memory = 20

// Figures of a task, as they stand in method.Sums. Behind them stand the inner products F_0.F_j
// of the point with those of past rounds, j = 0..Memory.
const (
	SumObjective = iota // leaves, partition, internals: their shares of the negative log posterior
	SumChange           // partition: the greatest change of an offset; gamma: relative, the greatest of any mean or precision; internals: of any precision
	SumMeans            // gamma: relative, the greatest change of any mean
	SumStep             // move: ||x - the point before||^2
	SumNorm             // internals: ||means||^2
	SumPasses           // leaves: passes over the data
	SumLow              // summary: least, median and greatest precision
	SumMedian
	SumHigh
	sumProducts
)

// Figures is the number of a task's sums.
const Figures = sumProducts + Memory + 1

func sumNames() []method.Sum {
	out := []method.Sum{{Name: "objective"}, {Name: "change"}, {Name: "means"}, {Name: "step"}, {Name: "norm"}, {Name: "passes", Count: true}, {Name: "alpha_min"}, {Name: "alpha_median"}, {Name: "alpha_max"}}
	for j := range Memory + 1 {
		out = append(out, method.Sum{Name: fmt.Sprintf("ff%d", j)})
	}
	return out
}

// Product is the place of F_0.F_j in a task's sums.
func Product(j int) int { return sumProducts + j }

// Leaves are the parameters of OpLeaves.
type Leaves struct {
	Tolerance float64   // of the leaves' gradients, relative
	Mix       []float64 `json:",omitempty"` // soft-max: they are solved with the offsets sum_j Mix[j] Offset_j, Offset_0 the last ones
	Look      bool      `json:",omitempty"` // soft-max: nothing is solved, the leaves only tell their shares
}

// Partition are the parameters of OpPartition: the offsets that the leaves were solved with, and with how
// many past ones products are made.
type Partition struct {
	Mix  []float64 `json:",omitempty"`
	Past int
}

// Internals are the parameters of OpInternals.
type Internals struct {
	Set  int  // -1: all internals at once; else those whose depth is odd (1) or even (0)
	Half bool `json:",omitempty"` // begin where the other set's update ended
	End  bool // the round ends: make G and F, with the products of so many past rounds
	Past int
}

// Gamma are the parameters of OpGamma.
type Gamma struct {
	Past int
}

// Move are the parameters of OpMove: the next point is sum_j Mix[j] G_j, G_0 the last one. With a
// Back, the last point is thrown away: the next one is that before it, with means by G or
// precisions by the paper's step in their place.
type Move struct {
	Mix   []float64
	Back  Back `json:",omitempty"`
	Paced bool `json:",omitempty"` // M2: each precision goes at a pace of its own
}

// Back says which part of a point moves.
type Back uint8

// Parts of a point that move.
const (
	BackMeans Back = 1 + iota
	BackPrecisions
)

// Plan is method.Plan.Detail.
type Plan struct {
	Variant string   // m1, m2, m3
	Bounded bool     // variational: all maximises one lower bound
	Softmax bool     `json:",omitempty"` // the likelihood ties the leaves
	Fitted  bool     `json:",omitempty"` // the priors' rates come from logistic regressions
	Width   uint32   // columns of a range; the last one may have fewer
	Begin   []uint32 // block b has the nodes Nodes[Begin[b]:Begin[b+1]]
	Nodes   []uint32 // leaves
	Sets    []uint32 // parity: blocks of set s are [Sets[s], Sets[s+1]); else all are of set 0
	Memory  int      // older points that the extrapolation remembers
	Narrow  bool     `json:",omitempty"` // means, pulls and points are stored as float32
	Pieces  uint32   // steps in which leaves are solved, and points moved
}

// Block is the leaves that block b is about.
func (p *Plan) Block(b int) []uint32 { return p.Nodes[p.Begin[b]:p.Begin[b+1]] }

// Detail reads the detail of a plan that this package has made.
func Detail(detail []byte) (*Plan, error) {
	p := &Plan{}
	if err := method.Decode(detail, p); err != nil {
		return nil, err
	}
	if p.Width == 0 || len(p.Begin) < 2 || p.Memory < 1 || p.Memory > Memory || p.Pieces == 0 {
		return nil, fmt.Errorf("blocks or ranges without members: written by another version of taxon")
	}
	return p, nil
}
