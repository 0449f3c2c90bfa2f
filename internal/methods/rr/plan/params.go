package plan

import "taxon/coordinator/method"

// The lists of items, and the operations on them.
const (
	Blocks = 0 // blocks of at most sixteen terminals
	Ranges = 1 // feature ranges

	OpMap        = "map"         // solve and price a block: params Map
	OpReduce     = "reduce"      // move the internals over a range: params Reduce
	OpEmitMap    = "emit_map"    // write the weights of a block's terminals: params Emit
	OpEmitReduce = "emit_reduce" // write those of the internals over a range: params Emit
)

// Families of values.
const (
	Dual = "dual" // of a block: duals and working set, or v of a smooth loss
	V    = "v"    // of a block, cut by ranges: what its terminals tell their parents
	X    = "x"    // of a range: the internals' vectors
)

// Figures of a task, in the order of method.Sums.
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

var sumNames = []method.Sum{{Name: "primal"}, {Name: "dual"}, {Name: "inner_gap"}, {Name: "restart"}, {Name: "moved"},
	{Name: "support", Count: true}, {Name: "working", Count: true}, {Name: "visits", Count: true}}

// Map are the parameters of OpMap: the block's terminals are solved with their parents at
// y = x + Beta (x - previous x).
type Map struct {
	Epochs     uint32  `json:",omitempty"` // least number of inner epochs; 0: only price
	MaxEpochs  uint32  `json:",omitempty"` // at most
	InnerGap   float64 `json:",omitempty"` // absolute inner gap per terminal to aim at; 0: epochs alone count
	InnerShare float64 `json:",omitempty"` // without InnerGap: share of its own loss that a terminal's gap is to be at (logistic loss)
	Price      bool    `json:",omitempty"` // full float64 pass: certificate sums and new working sets
	Precise    bool    `json:",omitempty"` // descend in float64
	Band       float64 `json:",omitempty"` // width of the working set that pricing draws, beyond the margin
	Beta       float64 `json:",omitempty"` // momentum
	Share      float64 `json:",omitempty"` // of the bound of the curvature that contributions tell (logistic loss); 0: all
}

// Reduce are the parameters of OpReduce. Rules support, family, full: v was solved at
// y = x + Beta (x - previous x), and the internals are solved exactly. Rule mean: v was solved
// at x, and the internals of independent set Set move to their neighbours' mean. Rule jacobi:
// v was solved at the previous x, and x+ = x + Damping (mean - x). Rule none: only the
// certificate's sums.
type Reduce struct {
	Rule     string
	Set      uint32  `json:",omitempty"`
	Damping  float64 `json:",omitempty"`
	Follower float64 `json:",omitempty"`
	Certify  bool    `json:",omitempty"` // float64 sums of the certificate
	Beta     float64 `json:",omitempty"`
}

// Emit are the parameters of OpEmitMap and OpEmitReduce: the weights are those at y.
type Emit struct {
	Beta float64 `json:",omitempty"`
}

// Plan is a problem cut into blocks and feature ranges: method.Plan.Detail. Node numbers are
// those of taxonomy.Tree.
type Plan struct {
	BlockTerminals []uint32 // terminals of all blocks, one block after the other
	BlockBegin     []uint32 // block b holds BlockTerminals[BlockBegin[b]:BlockBegin[b+1]]
	BlockSet       []uint32 // independent set of each block; all 0 with twoblock
	RangeBegin     []uint32 // range r is [RangeBegin[r], RangeBegin[r+1]); the bias is feature number `features`
	GroupBegin     []uint32 // block group g is blocks [GroupBegin[g], GroupBegin[g+1])
	Sets           uint32   // number of independent sets
}

// Block is the terminals of block b.
func (p *Plan) Block(b int) []uint32 { return p.BlockTerminals[p.BlockBegin[b]:p.BlockBegin[b+1]] }

// Detail reads the detail of a plan that this package has made.
func Detail(detail []byte) (*Plan, error) {
	p := &Plan{}
	return p, method.Decode(detail, p)
}
