package plan

import "taxon/coordinator/method"

// These are the list of items and the operations on them.
const (
	// Blocks is the list of blocks of at most sixteen children of one node.
	Blocks = 0

	// OpSolve solves the problems of a block. Its parameters are Solve.
	OpSolve = "solve"

	// OpEmit writes the weights of a block.
	OpEmit = "emit"
)

// Weights is the family of values. The value of a block holds the final weights of its children
// (program.EncodeWeights).
const Weights = "w"

// These are the figures of a task, in the order of method.Sums.
const (
	SumPrimal  = iota // sum over children of 1/2||w||^2 + C sum loss
	SumDual           // the dual objective
	SumSupport        // nonzero duals
	SumSolves         // full passes
	SumVisits         // nonzeros visited
	Figures
)

var sumNames = []method.Sum{{Name: "primal"}, {Name: "dual"}, {Name: "support", Count: true},
	{Name: "solves", Count: true}, {Name: "visits", Count: true}}

// Solve holds the parameters of OpSolve.
type Solve struct {
	// Once limits the solve to one full pass, whatever gap it reaches.
	Once bool `json:",omitempty"`
}

// Plan is the tree divided into blocks, and the content of method.Plan.Detail. Each node with at
// least two children has a problem, which consists of one or more blocks. Nodes have the numbers of
// taxonomy.Tree.
type Plan struct {
	// Node is the node of each problem. It is -1 for the root of a flat structure, which is not
	// stored.
	Node []int32

	// Name is the name of each problem's node, or "-" for a virtual root.
	Name []string

	// Problem is the problem of each block.
	Problem []uint32

	// Begin divides Children into blocks: block b has the children Children[Begin[b]:Begin[b+1]].
	Begin    []uint32
	Children []uint32

	// Nested adds the instances labelled with a problem's node to the problem. The problem of the
	// roots contains all instances.
	Nested bool `json:",omitempty"`

	// Ridge selects ridge regressions.
	Ridge bool `json:",omitempty"`
}

// Block returns the children of block b.
func (p *Plan) Block(b int) []uint32 { return p.Children[p.Begin[b]:p.Begin[b+1]] }

// Detail decodes the detail of a plan made by this package.
func Detail(detail []byte) (*Plan, error) {
	p := &Plan{}
	return p, method.Decode(detail, p)
}
