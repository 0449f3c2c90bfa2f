package mapper

import (
	"context"
	"fmt"
	"math"
	"slices"

	"taxon/internal/linalg/contribution"
	"taxon/internal/linalg/sparse"
)

// Problem holds what all blocks of a job share. It is read-only once it is set up, and any
// number of goroutines may use it, each with a Solver of its own.
type Problem struct {
	X    *sparse.Matrix
	Loss Loss
	C    float64
	Bias float32 // value of the bias feature; 0: none

	// PositiveWeight multiplies C for positive instances, C_in = C PositiveWeight where
	// y_in = +1; 0 is 1, the papers' objective. A block's own weights come first.
	PositiveWeight float64
	// Weight of each row multiplies C for it, in all lanes; each is above 0. nil: all are 1.
	Weight []float64
	// Kernel is the implementation of the inner loops; NewProblem takes the fastest.
	Kernel Kernel

	zero     []float32 // the zero parent
	norm     []float64 // ||x_i||^2, bias included
	size     []float32 // of the losses with a curvature: the sum of x_i, bias included
	meanSize float64
	slack    []float32 // per chunk of scoreChunk rows: greatest rounding bound of a score over ||w||
	empty    int       // rows without any nonzero
	outside  int       // the first instance with an index beyond the columns, from 1; 0: none
	negative bool      // some value is below zero
}

// StartRows is the most rows that a fresh block visits besides its positives. An even sample of
// the rows settles the bias and the common words. The first pricing pass finds the other rows.
const StartRows = 8192

// NewProblem computes the rows' squared norms and sums.
func NewProblem(x *sparse.Matrix, loss Loss, c float64, bias float32) *Problem {
	p := &Problem{X: x, Loss: loss, C: c, Bias: bias, Kernel: Kernels()[0]}
	p.zero, p.norm = make([]float32, x.Cols+1), make([]float64, x.Rows)
	p.slack = make([]float32, (x.Rows+scoreChunk-1)/scoreChunk)
	if loss != Hinge {
		p.size = make([]float32, x.Rows)
	}
	for i := range p.norm {
		idx, val := x.Row(i)
		if p.outside == 0 && len(idx) > 0 && int(slices.Max(idx)) >= x.Cols {
			p.outside = i + 1
		}
		n := float64(bias) * float64(bias)
		for _, v := range val {
			n += float64(float64(v) * float64(v))
			p.negative = p.negative || v < 0
		}
		p.norm[i] = n
		if p.size != nil {
			p.size[i] = bias
			for _, v := range val {
				p.size[i] += v
			}
			p.meanSize += float64(p.size[i])
		}
		p.slack[i/scoreChunk] = max(p.slack[i/scoreChunk], math.Nextafter32(float32(rounding(len(val), n)), float32(math.Inf(1))))
		if n == 0 {
			p.empty++
		}
	}
	p.meanSize /= float64(max(x.Rows, 1))
	return p
}

// maxSquaredNorm keeps every product of the float32 kernels finite.
const maxSquaredNorm = 1e36

// Check reports the first instance whose values are too large to compute with, or that
// has a feature beyond the matrix's columns: the kernels in assembly do not look.
func (p *Problem) Check() error {
	if p.outside > 0 {
		return fmt.Errorf("instance %d has a feature beyond the %d of the data: ingest the data again", p.outside, p.X.Cols)
	}
	for i, n := range p.norm {
		if n > maxSquaredNorm {
			return fmt.Errorf("instance %d has values too large to compute with (length %.3g): scale the data", i+1, math.Sqrt(n))
		}
	}
	return nil
}

// weighted is c times row i's weight.
func (p *Problem) weighted(i uint32, c float64) float64 {
	if p.Weight != nil {
		return p.Weight[i] * c
	}
	return c
}

// Count is the number of the rows, each counted by its weight.
func (p *Problem) Count(rows []uint32) (n float64) {
	if p.Weight == nil {
		return float64(len(rows))
	}
	for _, i := range rows {
		n += p.Weight[i]
	}
	return n
}

// Total is Count of all rows.
func (p *Problem) Total() (n float64) {
	if p.Weight == nil {
		return float64(p.X.Rows)
	}
	for _, w := range p.Weight {
		n += w
	}
	return n
}

// Solver solves the blocks of a problem, one at a time. It owns the memory, which it uses
// again from block to block; what it returns shares none with it.
type Solver interface {
	// Solve improves what warm has of the block by epochs, then prices if asked to. warm nil
	// is a fresh block. Only ctx's cancellation is an error.
	Solve(ctx context.Context, b *Block, warm *State, o Options) (*Result, error)
	// Weights are the lanes' final float32 weights y + v as overrides of their parents', by
	// the rounding that the certificate used.
	Weights(b *Block, s *State) []Override
}

// NewSolver is the solver for the problem's loss and the shape of its data.
func (p *Problem) NewSolver() Solver {
	switch p.Loss {
	case SquaredHinge:
		return newSquaredSolver(p)
	case Logistic:
		return newLogisticSolver(p)
	}
	return newHingeSolver(p)
}

// Block is up to Lanes terminals to be solved together.
type Block struct {
	Mean     [][]float32 // distinct parents' vectors y, d+1 long (last: bias feature)
	Slot     []int       // lane -> index into Mean; -1: the zero vector
	Positive [][]uint32  // lane -> rows with y_in = +1, ascending
	Weight   []float64   // lane -> weight of its positive rows; nil: Problem.PositiveWeight
	C        float64     // of these terminals; 0: Problem.C
}

// State is what a block keeps between sweeps: its nonzero duals and its working set, sparse. The
// zero value is a fresh block: no duals, and every row is visited.
//
// Rows are ascending. Work[k] is the mask of the lanes that visit row Rows[k]. Live[k], a subset
// of them, is the mask of the lanes with a nonzero dual there. Dual holds the values row by row,
// lowest lane first. A row that is not listed has neither.
type State struct {
	Priced   bool // a pricing pass has drawn the working set; false: visit all rows
	Rows     []uint32
	Work     []uint16
	Live     []uint16
	Dual     []float64
	Rounding [Lanes]uint8 // how the last pricing pass of a precise solve rounded the weights: see roundingBias

	// Of the logistic loss, whose duals are all nonzero: v = w - y at Feature (ascending; nil: at
	// all), the block's lanes side by side.
	Feature []uint32
	Value   []float32
}

// Options of one Solve.
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
	Curvature  bool    // squared hinge, logistic: contributions tell each feature's curvature; else all are full
	// Share of the logistic loss's bound of the curvature that contributions tell; 0: all of it.
	Share float64
	Dense bool // the logistic loss's contributions are dense
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

// Result of Solve. The Parent of a contribution is a slot of the block.
type Result struct {
	State         State
	Contributions []contribution.Contribution // one per slot, in slot order
	Gradients     []contribution.Contribution // logistic loss, priced: the same of G = sum a y x, which is v at the optimum alone
	Dense         []contribution.Dense        // logistic loss, Options.Dense: in place of both, the gradients' second
	Sums          Sums
}

// Override is a lane's weights where they differ from its parent's: Feature ascending
// (the bias is feature d), Value the whole weight, not the difference.
type Override struct {
	Feature []uint32
	Value   []float32
}
