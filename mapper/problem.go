package mapper

import (
	"context"
	"fmt"
	"math"
	"slices"

	"taxon/internal/linalg/contribution"
	"taxon/internal/linalg/sparse"
)

// Problem holds what all blocks of a job share. It is read-only once it is set up, and any number
// of goroutines may use it, each with a Solver of its own.
type Problem struct {
	// X holds the instances: N rows, d columns. The bias feature is not among them.
	X *sparse.Matrix

	// Loss is the loss of every terminal.
	Loss Loss

	// C is the weight of the losses relative to the distance from the parent. A block on a graph
	// may have a C of its own.
	C float64

	// Bias is the value of the bias feature, column d, in every row. If it is 0, there is no bias.
	Bias float32

	// PositiveWeight multiplies C for positive instances: C_in = C PositiveWeight where y_in = +1.
	// 0 stands for 1, the papers' objective. A block's own weights come first.
	PositiveWeight float64

	// Weight holds a factor above 0 for each row, by which C is multiplied in all lanes. A nil
	// Weight stands for 1 everywhere.
	Weight []float64

	// Kernel is the implementation of the inner loops. NewProblem takes the fastest that the CPU
	// supports.
	Kernel Kernel

	// zero is the vector of a lane without a parent.
	zero []float32
	// norm has ||x_i||^2 of each row, the bias included.
	norm []float64
	// size has the sum of each row's values, the bias included. It is set for the losses with a
	// curvature.
	size []float32
	// meanSize is the mean of size.
	meanSize float64
	// slack has, for each chunk of scoreChunk rows, the greatest bound of a score's rounding over
	// ||w||.
	slack []float32
	// empty is the number of rows without any nonzero.
	empty int
	// outside is the number of the first instance with an index beyond the columns, from 1. It is 0
	// if there is none.
	outside int
	// negative says that some value is below zero.
	negative bool
}

// StartRows sets the sample that a fresh block visits besides its positives: StartRows rows or up
// to half as many more, evenly spaced; all of them where there are fewer than 2 StartRows. The
// sample settles the bias and the weights of common words, and the first full pass finds the other
// rows that matter.
const StartRows = 8192

// NewProblem returns the problem of training on x. It computes the rows' squared norms and sums.
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
		p.slack[i/scoreChunk] = max(p.slack[i/scoreChunk], math.Nextafter32(float32(rounding(len(val), n)),
			float32(math.Inf(1))))
		if n == 0 {
			p.empty++
		}
	}
	p.meanSize /= float64(max(x.Rows, 1))
	return p
}

// maxSquaredNorm is the greatest squared norm of a row at which every product of the float32
// kernels stays finite.
const maxSquaredNorm = 1e36

// Check returns an error about the first instance whose values are too large to compute with, or
// that has a feature beyond the matrix's columns. The kernels in assembly do not test for either.
func (p *Problem) Check() error {
	if p.outside > 0 {
		return fmt.Errorf("instance %d has a feature beyond the %d of the data: ingest the data again", p.outside, p.X.Cols)
	}
	for i, n := range p.norm {
		if n > maxSquaredNorm {
			return fmt.Errorf("instance %d has values too large to compute with (length %.3g): scale the data", i+1,
				math.Sqrt(n))
		}
	}
	return nil
}

// weighted returns c times row i's weight.
func (p *Problem) weighted(i uint32, c float64) float64 {
	if p.Weight != nil {
		return p.Weight[i] * c
	}
	return c
}

// Count returns the number of the rows, each counted by its weight.
func (p *Problem) Count(rows []uint32) (n float64) {
	if p.Weight == nil {
		return float64(len(rows))
	}
	for _, i := range rows {
		n += p.Weight[i]
	}
	return n
}

// Total returns the number of all rows, each counted by its weight.
func (p *Problem) Total() (n float64) {
	if p.Weight == nil {
		return float64(p.X.Rows)
	}
	for _, w := range p.Weight {
		n += w
	}
	return n
}

// Solver solves the blocks of a problem, one at a time. It owns the memory for a block and uses it
// again for the next one. What it returns shares no memory with it.
type Solver interface {
	// Solve improves the block's state warm by some epochs, then runs a full pass if o.Price is
	// set. A nil warm is a fresh block. It returns an error only if ctx is cancelled.
	Solve(ctx context.Context, b *Block, warm *State, o Options) (*Result, error)
	// Weights returns the lanes' final float32 weights y + v as overrides of their parents',
	// rounded as they were for the certificate.
	Weights(b *Block, s *State) []Override
}

// NewSolver returns a solver for the problem's loss and the shape of its data.
func (p *Problem) NewSolver() Solver {
	switch p.Loss {
	case SquaredHinge:
		return newSquaredSolver(p)
	case Logistic:
		return newLogisticSolver(p)
	}
	return newHingeSolver(p)
}

// Block is up to Lanes terminals to be solved together. A slot is an index into Mean.
type Block struct {
	// Mean has the vector y of each distinct parent, d+1 long. The bias feature comes last.
	Mean [][]float32

	// Slot holds the slot of each lane's parent. If it is -1, the lane's y is the zero vector.
	Slot []int

	// Positive lists each lane's rows with y_in = +1, ascending.
	Positive [][]uint32

	// Weight has each lane's factor of C for its positive rows. A nil Weight stands for
	// Problem.PositiveWeight.
	Weight []float64

	// C replaces Problem.C for these terminals. Zero stands for Problem.C.
	C float64
}

// State is what a block keeps between sweeps: its nonzero duals and its working set, sparse. The
// zero value is a fresh block: it has no duals, and visits the rows that StartRows describes.
//
// Rows are ascending. Work[k] is the mask of the lanes that visit row Rows[k]. Live[k], a subset of
// it, is the mask of the lanes with a nonzero dual there. Dual holds the values row by row, the
// lowest lane first. A row that is not listed has neither.
//
// The logistic loss's duals are all nonzero. It keeps v in Feature and Value instead.
type State struct {
	// Priced says that a full pass has drawn the working set. Until then a block visits the rows of
	// a fresh one.
	Priced bool
	Rows   []uint32
	Work   []uint16
	Live   []uint16
	Dual   []float64
	// Rounding says how the last full pass of a precise solve rounded each lane's weights, as an
	// index into roundingBias.
	Rounding [Lanes]uint8

	// Value holds v = w - y of the logistic loss at the features of Feature, ascending, with the
	// block's lanes side by side. With a nil Feature it holds v at all features.
	Feature []uint32
	Value   []float32
}

// Options says how far one Solve goes.
type Options struct {
	// Epochs is the least number of inner epochs. If it is 0, Solve only runs a full pass.
	Epochs int

	// MaxEpochs is the greatest number of inner epochs.
	MaxEpochs int

	// InnerGap is the estimated inner gap at or below which a lane ends, in units of the objective.
	InnerGap float64

	// InnerShare applies to the logistic loss when InnerGap is 0: a lane ends at this share of its
	// own loss.
	InnerShare float64

	// Precise asks for a descent in float64. It is slower, and needed for gaps below float32's
	// rounding.
	Precise bool

	// Band is the width of the band: rows with a margin below 1+Band join the new working set.
	Band float64

	// Price asks for a full pass afterwards, which gives the certificate and the new working set.
	Price bool

	// Seed determines the order in which epochs visit rows.
	Seed uint64

	// Curvature asks for each feature's curvature in the contributions. It applies to the squared
	// hinge and the logistic loss. Without it, every terminal with support counts as one.
	Curvature bool

	// Share is the share of the logistic loss's bound of the curvature that contributions report. 0
	// stands for all of it.
	Share float64

	// Dense asks for the logistic loss's contributions as arrays over all features.
	Dense bool
}

// Sums are a block's shares of the joint figures. Primal, Dual and InnerGap are set by a full pass
// only.
type Sums struct {
	// Primal is the sum, over the lanes, of 1/2||w-y||^2 + C times the sum of the losses, for the
	// float32 w.
	Primal float64
	// Dual is the sum, over the lanes, of the duals a less 1/2||v||^2. For the squared hinge,
	// a^2/(4C) is subtracted for each dual as well.
	Dual float64
	// InnerGap is the sum of the lanes' inner gaps.
	InnerGap float64
	// Estimate is the sum of the lanes' inner gaps as the last epoch of the descent estimated them.
	Estimate float64
	// Epochs is the number of epochs run.
	Epochs int
	// Visits counts the pairs of a nonzero and a lane that were touched.
	Visits int64
	// Support is the number of nonzero duals.
	Support int
	// Working is the number of (row, lane) pairs in the working set.
	Working int
}

// Result is what Solve returns. The Parent of a contribution is a slot of the block.
type Result struct {
	// State is the block's new state.
	State State
	// Contributions has one contribution per slot, in slot order.
	Contributions []contribution.Contribution
	// Gradients holds contributions of G = sum a y x in place of v. Only a solve with a full pass
	// and the logistic loss has them. G equals v at the optimum alone.
	Gradients []contribution.Contribution
	// Dense replaces Contributions and Gradients if Options.Dense is set. The gradients come
	// second.
	Dense []contribution.Dense
	// Sums holds what the block adds to the sums over all blocks.
	Sums Sums
}

// Override holds a lane's weights where they differ from its parent's. Feature is ascending (the
// bias is feature d), and Value is the whole weight, not the difference.
type Override struct {
	Feature []uint32
	Value   []float32
}
