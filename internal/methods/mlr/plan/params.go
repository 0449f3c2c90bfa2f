package plan

import (
	"fmt"

	"taxon/coordinator/method"
)

// These are the lists of items, and the operations on them.
const (
	// Rows is the list of shards of the instances, in row order, with about equal numbers of
	// nonzeros.
	Rows = 0

	// Ranges is the list of feature ranges of Plan.Width columns each. The bias is the last column.
	Ranges = 1

	// OpScore computes the losses and the gradient of a row shard at the trial point. It has no
	// parameters.
	OpScore = "score"

	// OpGather accepts the trial point of a range. Its parameters are Gather.
	OpGather = "gather"

	// OpMove computes a trial point of a range. Its parameters are Move.
	OpMove = "move"

	// OpEmit writes the weights of a range at the accepted point. It has no parameters.
	OpEmit = "emit"
)

// These are the families of values, all of float64.
const (
	// Trial holds the trial point of a range.
	Trial = "trial"

	// V holds C sum_i (e_y - p_i) x_i' over the rows of a shard, cut by ranges.
	V = "v"

	// W holds the accepted points of a range.
	W = "w"

	// G holds the gradients at the accepted points of a range.
	G = "g"
)

// Memory is the number of changes of W and of its gradient that L-BFGS stores.
const Memory = 6

// maxRanges bounds the tasks of a step.
const maxRanges = 1 << 14

// These are the figures of a task, in the order of method.Sums. The inner products of Products come
// after them.
const (
	SumLoss = iota // from score: C sum_i loss_i
	// SumNorm is ||W||^2. A move task gives it for the trial point, and a gather task for the
	// accepted point.
	SumNorm
	SumGradient // from gather: ||gradient||^2
	SumVisits   // nonzeros visited
	sumProducts
)

// Products holds the inner products that gather reports. Point 0 is the accepted one, point 1 the
// one before, and so on. s_j = W_{j-1} - W_j, y_j = g_{j-1} - g_j, u_0 = g_0, u_j = y_j, for j from
// 1. h is a metric with one number per column: the diagonal of the Hessian at W = 0.
type Products struct {
	SG [Memory + 1]float64 // s_j.g_0; [0] is 0
	SY [Memory + 1]float64 // s_1.y_j; [0] is 0
	YS [Memory + 1]float64 // s_j.y_1 for j from 2
	E0 [Memory + 1]float64 // u_0.(u_j/h) for j from 0
	E1 [Memory + 1]float64 // u_1.(u_j/h) for j from 1
}

// lists returns the products in the order of the figures.
func (p *Products) lists() []*[Memory + 1]float64 {
	return []*[Memory + 1]float64{&p.SG, &p.SY, &p.YS, &p.E0, &p.E1}
}

// AppendTo appends the products to a task's figures.
func (p *Products) AppendTo(sums method.Sums) method.Sums {
	for _, list := range p.lists() {
		sums = append(sums, list[:]...)
	}
	return sums
}

// add adds the products in a task's figures.
func (p *Products) add(sums method.Sums) {
	at := sumProducts
	for _, list := range p.lists() {
		for j := range list {
			list[j] += sums[at]
			at++
		}
	}
}

// Figures is the number of a task's figures.
var Figures = len(sumNames())

func sumNames() []method.Sum {
	out := []method.Sum{{Name: "loss"}, {Name: "norm"}, {Name: "gradient"}, {Name: "visits", Count: true}}
	for _, list := range []string{"sg", "sy", "ys", "e0", "e1"} {
		for j := range Memory + 1 {
			out = append(out, method.Sum{Name: fmt.Sprintf("%s%d", list, j)})
		}
	}
	return out
}

// Gather holds the parameters of OpGather.
type Gather struct {
	Past int // number of older points with which products are computed
}

// Move holds the parameters of OpMove. The trial point is
//
//	W_0 + Step (sum_j U[j] u_j/h + sum_{j>=1} S[j] s_j)
type Move struct {
	Step float64
	// U and S have the same length, one more than the number of older points. S[0] is 0.
	U, S []float64
}

// Plan is the content of method.Plan.Detail.
type Plan struct {
	Width uint32 // columns of a range; the last range may have fewer
}

// Detail decodes the detail of a plan made by this package.
func Detail(detail []byte) (Plan, error) {
	var p Plan
	if err := method.Decode(detail, &p); err != nil {
		return p, err
	}
	if p.Width == 0 {
		return p, fmt.Errorf("ranges without columns: written by another version of taxon")
	}
	return p, nil
}
