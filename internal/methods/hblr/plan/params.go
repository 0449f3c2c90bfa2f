package plan

import (
	"fmt"

	"taxon/coordinator/method"
)

// The lists of items, and the operations on them.
const (
	Blocks = 0 // blocks of at most sixteen leaves of one set
	// feature ranges of Plan.Width columns each; the bias is the last column
	Ranges = 1
	Whole  = 2 // one item

	OpLeaves = "leaves" // of a block: solves its leaves' means. Parameters: Leaves
	// soft-max, of the whole: computes the offset of each row. Parameters: Partition
	OpPartition = "partition"
	// soft-max, of a block: computes what its solved leaves contribute to their parents. No parameters
	OpContribute = "tell"
	// of a range: updates the internals' means, and M2's precisions. Parameters: Internals
	OpInternals = "internals"
	// of the whole: updates the precisions of M1 and M3, and measures how far the point has moved. Parameters: Gamma
	OpGamma = "gamma"
	// of a range, or the whole: computes the next point. Parameters: Move
	OpMove = "move"
	// of the whole: computes figures of the precisions. No parameters
	OpSummary = "summary"
	// of a block: writes its leaves' means, variances and precisions. No parameters
	OpEmit     = "emit"
	OpEmitMean = "emit-mean" // of a range: writes the internals' means. No parameters
	// of a range (M2) or the whole: writes the internals' precisions. No parameters
	OpEmitAlpha = "emit-prec"
	// of a block: computes the priors' rates from logistic regressions. No parameters
	OpFit = "fit"
)

// Families of values. A point x holds the internals' means and the logarithms of the
// precisions. G(x) is the point after a round of all updates, and F = G(x) - x. Points lie by
// feature range; the precisions of M1 and M3 lie apart, with the whole.
const (
	Leaf = "leaf" // of a block: its leaves' means
	// of a block, cut by ranges: its leaves' share in their parents' update (internal/methods/hblr/solver.Contribution)
	Contribution = "pull"
	Trace        = "trace" // of a block: for each leaf, sums over the features
	// soft-max, of a block: by row and by column, what it says to the others
	// (internal/methods/hblr/solver.Told, or Bounded.Share and Block.Drift)
	Share = "share"
	// soft-max, of a block: its part of Newton's system (internal/methods/hblr/solver.Joint)
	JointState = "joint"
	// soft-max, of a block: its leaves' means at the end of the previous round
	PreviousMeans = "told"
	// of a range, cut by blocks: the parents' means, and M2's precisions, that a block's leaves need
	Above = "above"
	// of a range: with schedule parity, the point in the middle of a round
	Half = "half"
	// variational, of a block: the square roots of its leaves' variances
	Sigma = "sigma"
	// of a range: for each internal, sums over the range's features
	Part = "part"
	// of a block: its leaves' fitted rates. M2: cut by ranges, and summed by parent
	Rate = "rate"

	// Soft-max, of the whole. Offset holds a number for each row that stands for all leaves
	// (internal/methods/hblr/solver.Block.Offset). With partial MAP it also holds Soften of each row
	// and the vector by which all leaves move (internal/methods/hblr/solver/joint.go), and Couple
	// holds c and v of the last direction (solver.Rows.Couple). In variational inference OffsetF is
	// the difference between the last two offsets.
	Offset, OffsetF, Couple = "tie", "tief", "couple"

	X, G, F                = "x", "g", "f"                // of a range
	XAlpha, GAlpha, FAlpha = "xalpha", "galpha", "falpha" // of the whole
	// EM holds a range's precisions after the paper's own step (M2), EMAlpha those of the whole.
	EM, EMAlpha = "em", "emalpha"
	// Pace holds, for each of M2's precisions in a range, the factor by which its steps are multiplied
	// (internal/methods/hblr/solver.Pace).
	Pace = "pace"
	// Slope holds, of the whole, for each node's precision the slope of its residual, and after all slopes the last
	// moves (internal/methods/hblr/solver.Secant).
	Slope = "slope"
)

// OffsetMemory is the number of older offsets that the extrapolation of offsets uses.
const OffsetMemory = 8

// Memory is the number of older points that the extrapolation of points uses, if points are
// small. Plan.Memory is the job's own number.
const Memory = 20

// Figures of a task, by their place in method.Sums. After them come the inner products F_0.F_j
// of the current point with past ones, j = 0..Memory.
const (
	// of leaves, partition and internals: its share of the negative log posterior
	SumObjective = iota
	// the greatest change; partition: of an offset; internals: of a precision, relative; gamma: of a
	// mean or precision, relative
	SumChange
	SumMeans  // gamma: the greatest change of a mean, relative
	SumStep   // move: ||x - previous x||^2
	SumNorm   // internals: ||means||^2
	SumPasses // leaves: passes over the data
	SumLow    // summary: least, median and greatest precision
	SumMedian
	SumHigh
	sumProducts
)

// Figures is the number of a task's sums.
const Figures = sumProducts + Memory + 1

func sumNames() []method.Sum {
	out := []method.Sum{{Name: "objective"}, {Name: "change"}, {Name: "means"}, {Name: "step"}, {Name: "norm"},
		{Name: "passes", Count: true}, {Name: "alpha_min"}, {Name: "alpha_median"}, {Name: "alpha_max"}}
	for j := range Memory + 1 {
		out = append(out, method.Sum{Name: fmt.Sprintf("ff%d", j)})
	}
	return out
}

// Figures of a step of Newton's method over all leaves, in the places of products.
const (
	SumGamma = sumProducts + iota
	SumDelta
	SumSlope
)

// Product is the place of F_0.F_j in a task's sums.
func Product(j int) int { return sumProducts + j }

// Leaves are the parameters of OpLeaves.
type Leaves struct {
	Tolerance float64 // relative accuracy of the leaves' gradients
	// soft-max by partial MAP: a step of Newton's method over all leaves
	Joint *Joint `json:",omitempty"`
	// Mix, of a variational soft-max, gives the offsets that the leaves are solved with: sum_j Mix[j] Offset_j,
	// where Offset_0 are the last ones.
	Mix []float64 `json:",omitempty"`
	// SharesOnly, of a variational soft-max: the leaves are not solved, only their shares are computed.
	SharesOnly bool `json:",omitempty"`
}

// Joint are the parameters of a step of Newton's method over all leaves (internal/methods/hblr/solver/joint.go).
type Joint struct {
	Mode        JointMode
	Alpha, Beta float64 `json:",omitempty"` // JointTurn
	// JointNewton: of the step that w moves by; JointSearch: of the step that is tried
	Length float64 `json:",omitempty"`
	Slope  bool    `json:",omitempty"` // JointSearch: the slope is asked for, too
	Plain  bool    `json:",omitempty"` // JointNewton: the curvature is that of f, of all rows
}

// JointMode is what a step does.
type JointMode string

// Modes. After each, OpPartition makes of what the blocks say what they need next.
const (
	JointStart  JointMode = "start"  // the scores at the new point
	JointNewton JointMode = "newton" // the leaves move; gradient and curvature there
	JointTurn   JointMode = "turn"   // an iteration of conjugate gradients
	JointSearch JointMode = "search" // the scores at the end of the step
)

// NeedsOffset says whether the step reads the offsets: they are those of the leaves as stored.
func (p *Joint) NeedsOffset() bool {
	return p.Mode == JointNewton || p.Mode == JointSearch && p.Slope
}

// Partition are the parameters of OpPartition.
type Partition struct {
	Joint JointMode `json:",omitempty"` // soft-max by partial MAP: what the blocks have done
	// as in Leaves: the offsets that the leaves were solved with
	Mix  []float64 `json:",omitempty"`
	Past int       // number of past offsets to make inner products with
}

// Internals are the parameters of OpInternals.
type Internals struct {
	// -1: all internals at once; 1: those of odd depth; 0: those of even depth
	Set  int
	Half bool `json:",omitempty"` // start from Half, where the update of the other set ended
	// this ends the round: write G and F, and make the inner products
	End  bool
	Past int // number of past rounds to make inner products with
}

// Gamma are the parameters of OpGamma.
type Gamma struct {
	Past int // number of past rounds to make inner products with
}

// Move are the parameters of OpMove. Without Back the next point is sum_j Mix[j] G_j, where G_0
// is the last one. With Back the last point is dropped. The next point is then the one before
// it, with one part updated: its means taken from G, or its precisions from the paper's step.
type Move struct {
	Mix  []float64
	Back Back `json:",omitempty"`
	// M2: each precision's step is multiplied by a factor of its own
	Paced bool `json:",omitempty"`
	// M1 and M3: each precision goes by its own secant, and Mix is of the means alone
	Apart bool `json:",omitempty"`
}

// Back says which part of a point is updated after the last point was dropped. 0: none was.
type Back uint8

// Parts of a point.
const (
	BackMeans Back = 1 + iota
	BackPrecisions
)

// Plan is method.Plan.Detail.
type Plan struct {
	Variant string   // m1, m2, m3
	Bounded bool     // variational: every update maximises the same lower bound
	Softmax bool     `json:",omitempty"` // the likelihood is a soft-max over all leaves
	Fitted  bool     `json:",omitempty"` // the priors' rates come from logistic regressions
	Width   uint32   // columns of a range; the last one may have fewer
	Begin   []uint32 // block b has the nodes Nodes[Begin[b]:Begin[b+1]]
	Nodes   []uint32 // leaves
	// schedule parity: set s has the blocks [Sets[s], Sets[s+1]). Empty: all blocks are one set
	Sets   []uint32
	Memory int  // number of older points that the extrapolation uses
	Narrow bool `json:",omitempty"` // means, contributions and points are stored as float32
	// number of steps in which leaves are solved, and in which points are moved
	Pieces uint32
}

// Apart says whether each precision goes by its own secant, and only means are extrapolated. In a large job precisions
// of many families turn about their fixed points, each at a rate of its own, and few past rounds are remembered.
func (p *Plan) Apart() bool { return p.Narrow && p.Variant != "m2" }

// Share is the share of the bound of the leaves' curvature by which the internals step
// (internal/methods/hblr/solver.Tree.Solve). The bound is tight in one direction alone.
func (p *Plan) Share() float64 {
	if p.Apart() {
		return 0.5
	}
	return 1
}

// Block returns the leaves of block b.
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
