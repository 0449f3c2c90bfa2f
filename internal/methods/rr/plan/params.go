package plan

import "taxon/coordinator/method"

// These are the lists of items, and the operations on them.
const (
	// Blocks is the list of the blocks of at most sixteen terminals.
	Blocks = 0
	// Ranges is the list of the feature ranges.
	Ranges = 1

	// OpMap solves and prices a block, with parameters Map.
	OpMap = "map"
	// OpReduce moves the internals over a range, with parameters Reduce.
	OpReduce = "reduce"
	// OpEmitMap writes the weights of a block's terminals, with parameters Emit.
	OpEmitMap = "emit_map"
	// OpEmitReduce writes the weights of the internals over a range, with parameters Emit.
	OpEmitReduce = "emit_reduce"
)

// These are the families of values.
const (
	// Dual holds the values of blocks: duals and working set, or v with the logistic loss.
	Dual = "dual"

	// V holds a block's contributions to the parents of its terminals, cut by ranges.
	V = "v"
	// X holds the values of ranges: the internals' vectors.
	X = "x"
)

// These are the figures of a task, in the order of method.Sums.
const (
	SumPrimal   = iota // share of P(W)
	SumDual            // share of D(a)
	SumInnerGap        // gap of the inner solves
	SumRestart         // (y - x+)'(x+ - x)
	SumMoved           // ||x+ - y||^2
	SumSupport         // nonzero duals
	SumWorking         // (row, class) pairs in the working sets
	SumVisits          // nonzeros touched
	sums
)

// sumNames describes the figures in the order of their constants.
var sumNames = []method.Sum{{Name: "primal"}, {Name: "dual"}, {Name: "inner_gap"}, {Name: "restart"}, {Name: "moved"},
	{Name: "support", Count: true}, {Name: "working", Count: true}, {Name: "visits", Count: true}}

// Map holds the parameters of OpMap. The block's terminals are solved with their parents at y = x +
// Beta (x - previous x).
type Map struct {
	// Epochs is the least number of inner epochs. If it is 0, there is only the full pass.
	Epochs uint32 `json:",omitempty"`
	// MaxEpochs is the greatest number of inner epochs.
	MaxEpochs uint32 `json:",omitempty"`
	// InnerGap is the absolute inner gap per terminal to aim at. If it is 0, only the number of
	// epochs counts.
	InnerGap float64 `json:",omitempty"`
	// InnerShare applies to the logistic loss if InnerGap is 0. The target for a terminal's gap is
	// then this share of its own loss.
	InnerShare float64 `json:",omitempty"`
	// Price requests a full pass, which gives the sums of the certificate and new working sets.
	Price bool `json:",omitempty"`
	// Precise requests a descent in float64.
	Precise bool `json:",omitempty"`
	// Band is the width of the band of margins from which pricing draws the working set.
	Band float64 `json:",omitempty"`
	// Beta is the momentum.
	Beta float64 `json:",omitempty"`
	// Share is the share of the curvature's bound that contributions report, with the logistic
	// loss. Zero stands for the whole bound.
	Share float64 `json:",omitempty"`
}

// Reduce holds the parameters of OpReduce. The rules are described in package reducer:
//
//   - support, family, full: v was solved at y = x + Beta (x - previous x), and the internals are
//     solved exactly. Follower belongs to support.
//   - mean: v was solved at x, and the internals of independent set Set move to their neighbours' mean.
//   - jacobi: v was solved at the previous x, and x+ = x + Damping (mean - x).
//   - zero: the internals become zero.
//   - none: only the certificate's sums are computed.
type Reduce struct {
	Rule     string
	Set      uint32  `json:",omitempty"`
	Damping  float64 `json:",omitempty"`
	Follower float64 `json:",omitempty"`
	// Certify requests the float64 sums of the certificate.
	Certify bool    `json:",omitempty"`
	Beta    float64 `json:",omitempty"`
}

// Emit holds the parameters of OpEmitMap and OpEmitReduce. The written weights are at y = x + Beta
// (x - previous x).
type Emit struct {
	Beta float64 `json:",omitempty"`
}

// Plan is a problem divided into blocks and feature ranges. It is the content of
// method.Plan.Detail. Nodes have the numbers of taxonomy.Tree.
type Plan struct {
	// BlockTerminals lists the terminals of all blocks, one block after the other. Block b holds
	// BlockTerminals[BlockBegin[b]:BlockBegin[b+1]].
	BlockTerminals []uint32
	BlockBegin     []uint32
	// BlockSet is the independent set of each block, ascending. All are 0 with twoblock.
	BlockSet []uint32
	// RangeBegin holds the bounds of the ranges: range r is [RangeBegin[r], RangeBegin[r+1]). The
	// bias is feature number `features`.
	RangeBegin []uint32
	// GroupBegin holds the bounds of the groups of blocks: group g is [GroupBegin[g],
	// GroupBegin[g+1]).
	GroupBegin []uint32
	// Sets is the number of independent sets.
	Sets uint32
}

// Block returns the terminals of block b.
func (p *Plan) Block(b int) []uint32 { return p.BlockTerminals[p.BlockBegin[b]:p.BlockBegin[b+1]] }

// Detail decodes the detail of a plan that this package has made.
func Detail(detail []byte) (*Plan, error) {
	p := &Plan{}
	return p, method.Decode(detail, p)
}
