package mapper

// State is what a block keeps between sweeps: its nonzero duals and its working set,
// sparse. The zero value is a fresh block: no duals, every row to be looked at.
//
// Rows are ascending. Work[k] says which lanes visit row Rows[k]; Live[k], a subset of
// the lanes, which have a nonzero dual there; their values stand in Dual row by row,
// lowest lane first. A row that is not listed has neither.
type State struct {
	Priced bool // a pricing pass has drawn the working set; false: visit all rows
	Rows   []uint32
	Work   []uint16
	Live   []uint16
	Dual   []float64
	Nudge  [Lanes]uint8 // how the last pricing pass of a precise solve rounded the weights

	// Of smooth losses, whose duals are all nonzero: v = w - y at Feature (ascending), the
	// block's lanes side by side.
	Feature []uint32
	Value   []float32
}

// Block is up to Lanes terminals to be solved together.
type Block struct {
	Mean     [][]float32 // distinct parents' vectors y, d+1 long (last: bias feature)
	Slot     []int       // lane -> index into Mean; -1: the zero vector
	Positive [][]uint32  // lane -> rows with y_in = +1, ascending
	Weight   []float64   // lane -> weight of its positive rows; nil: Solver.PositiveWeight
}

// Options of one SolveBlock.
type Options struct {
	Epochs    int     // inner epochs at least; 0: only price
	MaxEpochs int     // at most
	InnerGap  float64 // a lane is done when its estimated inner gap is below this
	// InnerShare, without InnerGap: the logistic loss's lanes end at this share of their own loss.
	InnerShare float64
	Precise    bool    // descend in float64: slower, for gaps below float32's rounding
	Band       float64 // rows with a margin below 1+Band join the new working set
	Price      bool    // score every row afterwards: certificate and new working set
	Seed       uint64  // of the sampling order
	Stiffness  bool    // squared hinge, logistic: tell how stiff each feature is, else all are wholly
}

// Sums are a block's shares of the joint figures. Primal, Dual and InnerGap are set
// by a pricing pass only.
type Sums struct {
	Primal   float64 // sum over lanes of 1/2||w-y||^2 + C sum loss, of the float32 w
	Dual     float64 // sum over lanes of sum a (- a^2/4C) - 1/2||v||^2
	InnerGap float64 // sum over lanes of the subproblems' duality gaps
	Estimate float64 // the inner gaps as seen while descending, summed
	Epochs   int     // epochs run
	Visits   int64   // nonzeros x lanes touched
	Support  int     // nonzero duals
	Working  int     // (row, lane) pairs in the working set
}

// Contribution is what a parent gets from a block: the sum of its terminals' v_n on
// the features where any of them has support, and how stiff they are there: hinge, the
// number of terminals with a row with a nonzero dual that holds the feature; other losses
// have degrees of stiffness, in StiffUnits.
type Contribution struct {
	Slot    int // index into Block.Mean
	Feature []uint32
	Sum     []float64
	Stiff   []uint8
}

// Result of SolveBlock.
type Result struct {
	State         State
	Contributions []Contribution // one per slot, in slot order
	Gradients     []Contribution // smooth losses, priced: the same of G = sum a y x, which is v at the optimum alone
	Sums          Sums
}
