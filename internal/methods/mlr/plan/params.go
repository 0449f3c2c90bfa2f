package plan

import (
	"fmt"

	"taxon/coordinator/method"
)

// The lists of items, and the operations on them.
const (
	// shards of the instances, in row order, of about equal nonzeros
	Rows = 0
	// feature ranges of Plan.Width columns each; the bias is the last column
	Ranges = 1

	// of rows: losses and gradient at the trial point; no parameters
	OpScore  = "score"
	OpGather = "gather" // of a range: accept the trial point: params Gather
	OpMove   = "move"   // of a range: make a trial point: params Move
	// of a range: write the weights of the accepted point; no parameters
	OpEmit = "emit"
)

// Families of values, all of float64.
const (
	Trial = "trial" // of a range: the trial point
	// of a row shard, cut by ranges: C sum_i (e_y - p_i) x_i' over its rows
	V = "v"
	W = "w" // of a range: the accepted points
	G = "g" // of a range: their gradients
)

// Memory is the number of changes of W and of its gradient that L-BFGS remembers.
const Memory = 6

// maxRanges bounds the tasks of a step.
const maxRanges = 1 << 14

// Figures of a task, in the order of method.Sums. The inner products of Products come after them.
const (
	SumLoss     = iota // score: C sum_i loss_i
	SumNorm            // move: ||W||^2 of the trial; gather: of the point accepted
	SumGradient        // gather: ||gradient||^2
	SumVisits          // nonzeros touched
	sumProducts
)

// Products are inner products that gather reports. Point 0 is the one accepted, 1 the one
// before and so on. s_j = W_{j-1} - W_j, y_j = g_{j-1} - g_j, u_0 = g_0, u_j = y_j, for j from
// 1; h is a metric, a number for each column: the diagonal of the Hessian at W = 0.
type Products struct {
	SG [Memory + 1]float64 // s_j.g_0; [0] is 0
	SY [Memory + 1]float64 // s_1.y_j; [0] is 0
	YS [Memory + 1]float64 // s_j.y_1 for j from 2
	E0 [Memory + 1]float64 // u_0.(u_j/h) for j from 0
	E1 [Memory + 1]float64 // u_1.(u_j/h) for j from 1
}

// lists are the products in the order of the sums.
func (p *Products) lists() []*[Memory + 1]float64 {
	return []*[Memory + 1]float64{&p.SG, &p.SY, &p.YS, &p.E0, &p.E1}
}

// AppendTo appends the products to a task's sums.
func (p *Products) AppendTo(sums method.Sums) method.Sums {
	for _, list := range p.lists() {
		sums = append(sums, list[:]...)
	}
	return sums
}

// add adds the products in a task's sums.
func (p *Products) add(sums method.Sums) {
	at := sumProducts
	for _, list := range p.lists() {
		for j := range list {
			list[j] += sums[at]
			at++
		}
	}
}

// Figures is the number of a task's sums.
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

// Gather are the parameters of OpGather.
type Gather struct {
	Past int // older points whose products are wanted
}

// Move are the parameters of OpMove: the trial point is
//
//	W_0 + Step (sum_j U[j] u_j/h + sum_{j>=1} S[j] s_j)
type Move struct {
	Step float64
	// of equal length, one longer than the number of older points; S[0] is 0
	U, S []float64
}

// Plan is method.Plan.Detail.
type Plan struct {
	Width uint32 // columns of a range; the last one may have fewer
}

// Detail reads the detail of a plan that this package has made.
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
