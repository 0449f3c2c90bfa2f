package plan

import (
	"fmt"

	"taxon/coordinator/method"
)

// These are the lists of items, and the operations on them.
const (
	// Blocks is the list of blocks of at most sixteen leaves of one set.
	Blocks = 0

	// Ranges is the list of feature ranges of Plan.Width columns each. The bias is the last column.
	Ranges = 1

	// Whole is the list of a single item, for operations on everything.
	Whole = 2

	// OpLeaves solves the means of a block's leaves. Its parameters are Leaves.
	OpLeaves = "leaves"

	// OpPartition computes, for the whole of a soft-max, the offset of each row. Its parameters are
	// Partition.
	OpPartition = "partition"

	// OpContribute computes, for a block of a soft-max, the contributions of its solved leaves to
	// their parents. It has no parameters.
	OpContribute = "tell"

	// OpInternals updates the internals' means of a range, and M2's precisions. Its parameters are
	// Internals.
	OpInternals = "internals"

	// OpGamma updates, for the whole, the precisions of M1 and M3, and measures how far the point
	// has moved. Its parameters are Gamma.
	OpGamma = "gamma"

	// OpMove computes the next point of a range, or of the whole. Its parameters are Move.
	OpMove = "move"

	// OpSummary computes statistics of all precisions. It has no parameters.
	OpSummary = "summary"

	// OpEmit writes the means, variances and precisions of a block's leaves. It has no parameters.
	OpEmit = "emit"

	// OpEmitMean writes the internals' means of a range. It has no parameters.
	OpEmitMean = "emit-mean"

	// OpEmitAlpha writes the internals' precisions, of a range (M2) or of the whole. It has no
	// parameters.
	OpEmitAlpha = "emit-prec"

	// OpFit computes, for a block, the priors' rates from logistic regressions. It has no
	// parameters.
	OpFit = "fit"
)

// These are the families of values. A point x holds the internals' means and the logarithms of the
// precisions. G(x) is the point after a round of all updates, and F = G(x) - x. Points are stored
// by feature range. The precisions of M1 and M3 are stored separately, as values of the whole,
// which is the only item of the list Whole.
const (
	// Leaf holds a block's leaves' means.
	Leaf = "leaf"

	// Contribution holds a block's contributions to the updates of its parents, cut by ranges
	// (internal/methods/hblr/solver.Contribution).
	Contribution = "pull"

	// Trace holds, for each leaf of a block, sums over the features.
	Trace = "trace"

	// Share is the message of a block of a soft-max to the others, by row and by column
	// (internal/methods/hblr/solver.Message, or Bounded.Share and Block.Drift).
	Share = "share"

	// JointState is a block's part of Newton's system for a soft-max
	// (internal/methods/hblr/solver.Joint).
	JointState = "joint"

	// PreviousMeans holds the leaves' means of a block of a soft-max at the end of the previous
	// round.
	PreviousMeans = "told"

	// Above holds the part of a range's point that a block's leaves need, divided by blocks. It
	// consists of the means of their parents, and of M2's precisions.
	Above = "above"

	// Half holds, with schedule parity, a range's point in the middle of a round.
	Half = "half"

	// Sigma holds, with variational inference, the square roots of the variances of a block's
	// leaves.
	Sigma = "sigma"

	// Part holds, for each internal, sums over a range's features.
	Part = "part"

	// Rate holds the fitted rates of a block's leaves. Those of M2 are cut by ranges and summed by
	// parent.
	Rate = "rate"

	// Offset, OffsetF and Couple are values of the whole, for a soft-max. Offset holds a number for
	// each row that represents all leaves (internal/methods/hblr/solver.Block.Offset). With partial
	// MAP it also holds Soften of each row and the vector by which all leaves move
	// (internal/methods/hblr/solver/joint.go), and Couple holds c and v of the last direction
	// (solver.Rows.Couple). With variational inference OffsetF is the difference between the last
	// two offsets.
	Offset, OffsetF, Couple = "tie", "tief", "couple"

	X, G, F                = "x", "g", "f"                // values of a range
	XAlpha, GAlpha, FAlpha = "xalpha", "galpha", "falpha" // values of the whole
	// EM holds a range's precisions after the paper's own step (M2). EMAlpha holds the precisions
	// of the whole after it (M1 and M3).
	EM, EMAlpha = "em", "emalpha"

	// Pace holds, for each of M2's precisions in a range, the factor by which its steps are
	// multiplied (internal/methods/hblr/solver.Pace).
	Pace = "pace"

	// Slope holds, for the precision of each node, the slope of its residual, and after all slopes
	// the last moves (internal/methods/hblr/solver.Secant). It is a value of the whole.
	Slope = "slope"
)

// OffsetMemory is the number of older offsets that the extrapolation of offsets uses.
const OffsetMemory = 8

// Memory is the largest number of older points that the extrapolation of points uses. Plan.Memory
// is the job's own number, which is smaller for large points.
const Memory = 20

// These are the figures of a task, by their index in method.Sums. After them come the inner
// products F_0.F_j of the current point's residual with past ones, j = 0..Memory.
const (
	// SumObjective is a task's part of the negative log posterior, from leaves, partition and
	// internals.
	SumObjective = iota

	// SumChange is the largest change: from partition that of an offset, from internals that of a
	// precision, and from gamma that of a mean or precision. The last two are relative.
	SumChange
	SumMeans  // from gamma: the largest relative change of a mean
	SumStep   // from move: ||x - previous x||^2
	SumNorm   // from internals: ||means||^2
	SumPasses // from leaves: passes over the data
	SumLow    // from summary: the least, median and largest precision
	SumMedian
	SumHigh
	sumProducts
)

// Figures is the number of a task's figures.
const Figures = sumProducts + Memory + 1

func sumNames() []method.Sum {
	out := []method.Sum{{Name: "objective"}, {Name: "change"}, {Name: "means"}, {Name: "step"}, {Name: "norm"},
		{Name: "passes", Count: true}, {Name: "alpha_min"}, {Name: "alpha_median"}, {Name: "alpha_max"}}
	for j := range Memory + 1 {
		out = append(out, method.Sum{Name: fmt.Sprintf("ff%d", j)})
	}
	return out
}

// These are the figures of a step of Newton's method over all leaves. They take the places of the
// inner products.
const (
	SumGamma = sumProducts + iota
	SumDelta
	SumSlope
)

// Product returns the index of F_0.F_j in a task's figures.
func Product(j int) int { return sumProducts + j }

// Leaves holds the parameters of OpLeaves.
type Leaves struct {
	// Tolerance is the relative accuracy of the leaves' gradients.
	Tolerance float64

	// Joint makes the task a step of Newton's method over all leaves, for a soft-max by partial
	// MAP. It is nil for other likelihoods.
	Joint *Joint `json:",omitempty"`

	// Mix holds the coefficients of the offsets with which the leaves of a variational soft-max are
	// solved: sum_j Mix[j] Offset_j, where Offset_0 are the last ones.
	Mix []float64 `json:",omitempty"`

	// SharesOnly skips the solve of the leaves of a variational soft-max and only computes their
	// shares.
	SharesOnly bool `json:",omitempty"`
}

// Joint holds the parameters of a step of Newton's method over all leaves
// (internal/methods/hblr/solver/joint.go).
type Joint struct {
	Mode JointMode

	// Alpha and Beta are the coefficients of the conjugate gradients, for JointTurn.
	Alpha, Beta float64 `json:",omitempty"`

	// Length is the length of the step. For JointNewton it is the step that w takes, and for
	// JointSearch the trial step.
	Length float64 `json:",omitempty"`

	// Slope requests the slope at the end of a trial step, for JointSearch.
	Slope bool `json:",omitempty"`

	// Plain selects the curvature of f at all rows, for JointNewton.
	Plain bool `json:",omitempty"`
}

// JointMode is the kind of a step of Newton's method.
type JointMode string

// These are the modes. After each step of the blocks, OpPartition computes the inputs of the next
// step from the messages of the blocks.
const (
	JointStart  JointMode = "start"  // computes the scores at the new point
	JointNewton JointMode = "newton" // moves the leaves; computes gradient and curvature there
	JointTurn   JointMode = "turn"   // runs one conjugate gradient iteration
	JointSearch JointMode = "search" // computes the scores at the end of the step
)

// NeedsOffset reports whether the step reads the offsets, which belong to the stored leaves.
func (p *Joint) NeedsOffset() bool {
	return p.Mode == JointNewton || p.Mode == JointSearch && p.Slope
}

// Partition holds the parameters of OpPartition.
type Partition struct {
	// Joint is the mode of the preceding step of the blocks, for a soft-max by partial MAP.
	Joint JointMode `json:",omitempty"`

	// Mix is Leaves.Mix of the preceding solve.
	Mix []float64 `json:",omitempty"`

	// Past is the number of past offsets with which inner products are computed.
	Past int
}

// Internals holds the parameters of OpInternals.
type Internals struct {
	// Set selects the internals: -1 stands for all at once, 1 for those of odd depth and 0 for
	// those of even depth.
	Set int

	// Half starts the update from the value Half, the result of the update of the other set.
	Half bool `json:",omitempty"`

	// End says that this is the last update of the round, which writes G and F and computes the
	// inner products.
	End bool

	// Past is the number of past rounds with which inner products are computed.
	Past int
}

// Gamma holds the parameters of OpGamma.
type Gamma struct {
	// Past is the number of past rounds with which inner products are computed.
	Past int
}

// Move holds the parameters of OpMove. If Back is 0, the next point is sum_j Mix[j] G_j, where G_0
// is the last one. Otherwise the last point is dropped, and the next point is the one before it
// with one part updated: its means are taken from G, or its precisions from the paper's step.
type Move struct {
	Mix  []float64
	Back Back `json:",omitempty"`

	// Paced multiplies the step of each of M2's precisions by a factor of its own.
	Paced bool `json:",omitempty"`

	// Apart moves each precision of M1 or M3 by its own secant. Mix then applies to the means only.
	Apart bool `json:",omitempty"`
}

// Back names the part of a point that is updated after the last point was dropped. It is 0 if no
// point was dropped.
type Back uint8

// These are the parts of a point.
const (
	BackMeans Back = 1 + iota
	BackPrecisions
)

// Plan is the content of method.Plan.Detail.
type Plan struct {
	// Variant is "m1", "m2" or "m3".
	Variant string

	// Bounded selects variational inference, in which every update maximises the same lower bound.
	Bounded bool

	// Softmax selects the likelihood of a soft-max over all leaves.
	Softmax bool `json:",omitempty"`

	// Fitted says that the priors' rates come from logistic regressions.
	Fitted bool `json:",omitempty"`

	// Width is the number of columns of a range. The last range may have fewer.
	Width uint32

	// Begin divides Nodes into blocks: block b has the leaves Nodes[Begin[b]:Begin[b+1]].
	Begin []uint32

	// Nodes lists the leaves, block by block.
	Nodes []uint32

	// Sets divides the blocks with schedule parity: set s has the blocks [Sets[s], Sets[s+1]). If
	// it is empty, all blocks are one set.
	Sets []uint32

	// Memory is the number of older points that the extrapolation uses.
	Memory int

	// Narrow stores means, contributions and points as float32.
	Narrow bool `json:",omitempty"`

	// Pieces is the number of steps in which the leaves are solved, and in which points are moved.
	Pieces uint32
}

// Apart reports whether each precision moves by its own secant, while only the means are
// extrapolated. In a large job, the precisions of many families oscillate around their fixed
// points, each at its own rate, and only a few past rounds are stored.
func (p *Plan) Apart() bool { return p.Narrow && p.Variant != "m2" }

// Share is the share of the bound on the leaves' curvature that determines the step of the
// internals (internal/methods/hblr/solver.Tree.Solve). The full bound is tight in one direction
// only.
func (p *Plan) Share() float64 {
	if p.Apart() {
		return 0.5
	}
	return 1
}

// Block returns the leaves of block b.
func (p *Plan) Block(b int) []uint32 { return p.Nodes[p.Begin[b]:p.Begin[b+1]] }

// Detail decodes the detail of a plan made by this package.
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
