package plan

import "taxon/coordinator/method"

// The list of items and the operations on them.
const (
	Blocks = 0 // blocks of at most sixteen children of one node

	OpSolve = "solve" // solve a block's problems: params Solve
	OpEmit  = "emit"  // write its weights
)

// Weights is the family of values: of a block, its children's final weights
// (program.EncodeWeights).
const Weights = "w"

// Figures of a task, in the order of method.Sums.
const (
	SumPrimal  = iota // sum over children of 1/2||w||^2 + C sum loss
	SumDual           // and of the dual
	SumSupport        // nonzero duals
	SumSolves         // priced solves
	SumVisits         // nonzeros touched
	Figures
)

var sumNames = []method.Sum{{Name: "primal"}, {Name: "dual"}, {Name: "support", Count: true},
	{Name: "solves", Count: true}, {Name: "visits", Count: true}}

// Solve are the parameters of OpSolve.
type Solve struct {
	Once bool `json:",omitempty"` // one priced solve, whatever the gap is then
}

// Plan is the tree cut into blocks: method.Plan.Detail. Each node with two children or more has a
// problem, which has one or more blocks. Node numbers are those of taxonomy.Tree.
type Plan struct {
	// of each problem; -1: the root that is not written, of a flat structure
	Node     []int32
	Name     []string // its name, - of a virtual root
	Problem  []uint32 // of each block
	Begin    []uint32 // block b is about Children[Begin[b]:Begin[b+1]]
	Children []uint32

	// instances labelled with a problem's node are in it; the roots' problem has all
	Nested bool `json:",omitempty"`
	Ridge  bool `json:",omitempty"` // ridge regressions
}

// Block is the children that block b is about.
func (p *Plan) Block(b int) []uint32 { return p.Children[p.Begin[b]:p.Begin[b+1]] }

// Detail reads the detail of a plan that this package has made.
func Detail(detail []byte) (*Plan, error) {
	p := &Plan{}
	return p, method.Decode(detail, p)
}
