package mapper

import (
	"context"
	"math"
	"math/bits"

	"taxon/internal/linalg/contribution"
)

// squaredSolver solves blocks with the squared hinge. If there are few columns, it continues by
// Newton's method. In a hierarchy it takes 64 more bytes per line.
type squaredSolver struct {
	dualSolver
	// newton is nil where descent works alone.
	newton *newton
	// curve bounds the loss's curvature on the touched lines.
	curve [][Lanes]float32
}

func newSquaredSolver(p *Problem) *squaredSolver {
	q := &squaredSolver{dualSolver: newDualSolver(p)}
	if p.fewColumns() {
		q.lines.whole = true
		q.newton = newNewton(&q.dualSolver, p.X.Cols+1)
	}
	return q
}

// Solve implements Solver.
func (q *squaredSolver) Solve(ctx context.Context, b *Block, warm *State, o Options) (*Result, error) {
	q.open(b, warm)
	defer q.close()
	sums, priced := Sums{}, warm != nil && warm.Priced
	if o.Epochs > 0 {
		if err := q.improve(ctx, o, &sums); err != nil {
			return nil, err
		}
	}
	q.rebuild()
	curvature := func(_ uint32, lanes uint16) uint8 { return contribution.Code(float32(bits.OnesCount16(lanes))) }
	if o.Curvature && len(b.Mean) > 0 && !q.p.negative && q.p.Bias >= 0 {
		q.boundCurvature()
		curvature = q.degrees
	}
	if o.Price {
		q.fillWeights()
		var fall [Lanes]float64
		if warm != nil && !priced {
			fall = q.predictBiasShift()
		}
		if err := q.price(ctx, o.Band, fall, !priced && o.Epochs > 0, &sums); err != nil {
			return nil, err
		}
	}
	return q.result(sums, o.Price || priced, curvature), nil
}

// improve runs the descent, and continues by Newton's method where that is faster.
func (q *squaredSolver) improve(ctx context.Context, o Options, sums *Sums) error {
	if q.newton == nil || o.MaxEpochs < newtonAfter {
		_, err := q.descend(ctx, o, sums)
		return err
	}
	o.MaxEpochs = newtonAfter
	running, err := q.descend(ctx, o, sums)
	if err == nil && running != 0 {
		err = q.newton.solve(ctx, running, o, sums)
	}
	return err
}

// boundCurvature bounds the squared hinge's Hessian 2 sum_{i: a_i > 0} C_i x_i x_i' by its row
// sums, feature by feature, from the rows with a dual: h_f = 2 sum C_i |x_if| ||x_i||_1.
// Then h/(1+h) majorises the envelope's curvature (operator monotony of t/(1+t)). Values
// below zero would need |x|: there every terminal counts fully.
//
// It overwrites t.duals and the listed rows' signs: the descent is over.
func (q *squaredSolver) boundCurvature() {
	q.curve = resized(q.curve, q.lines.n)
	for _, line := range q.touched {
		q.curve[line] = [Lanes]float32{}
	}
	q.duals = resized(q.duals, len(q.live))
	for k, live := range q.live {
		q.duals[k], q.refs[k].pos = [Lanes]float32{}, 1<<Lanes-1 // rows add up whatever their sign
		if live == 0 {
			continue
		}
		size := q.p.size[q.rows[k]]
		for m := live; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			q.duals[k][l] = float32(2 * q.rowC(q.rows[k], q.pos[k], l) * float64(size))
		}
	}
	q.addList(q.curve)
}

// degrees returns the code for the sum of the curvatures of a parent's lanes at a given line.
func (q *squaredSolver) degrees(line uint32, lanes uint16) uint8 {
	sum := float32(0)
	for m := lanes; m != 0; m &= m - 1 {
		sum += degree(q.curve[line][bits.TrailingZeros16(m)&15])
	}
	return contribution.Code(sum)
}

// degree returns h/(1+h). This is the curvature of the Moreau envelope of a terminal whose loss has
// the curvature h.
func degree(h float32) float32 {
	if !(h < math.MaxFloat32/2) {
		return 1
	}
	return h / (1 + h)
}

// sampleStride returns the distance between the sampled rows of a fresh block.
func (p *Problem) sampleStride() int { return max(1, len(p.norm)/StartRows) }

// predictBiasShift predicts how far the biases will still fall after descents on the sample alone,
// for the full pass that follows them. All rows together pull a lane's bias down sampleStride times
// as hard as the sample does. So the scores of rows without support will fall by b, where
//
//	stride sum_i max(0, a_i - 2C b) = sum_i a_i + b/Bias^2
//
// over the sample's negatives with a dual. The squared hinge's duals a_i = 2C(1 - m_i) follow the
// margins m_i, and the last term is the regulariser of the bias. Rows whose margin is 1+band-b or
// more are not listed.
//
// Rows with weights count as if each had the mean weight. A wrong prediction costs sweeps and
// nothing else: the next full pass lists what this one missed.
func (q *squaredSolver) predictBiasShift() (fall [Lanes]float64) {
	stride := float64(q.p.sampleStride())
	if stride == 1 || q.p.Bias == 0 {
		return fall
	}
	curve := 2 * q.c * q.p.Total() / float64(q.p.X.Rows)
	give := 1 / (curve * float64(q.p.Bias) * float64(q.p.Bias))
	duals := make([]float64, 0, len(q.rows))
	for l := range q.b.Slot {
		duals = duals[:0]
		for k := range q.rows {
			if a := q.a[k][l]; a > 0 && q.pos[k]>>l&1 == 0 {
				duals = append(duals, a)
			}
		}
		fall[l] = simplexThreshold(duals, stride, give) / curve
	}
	return fall
}

// simplexThreshold solves stride sum_i max(0, a_i - u) = sum_i a_i + give u for u >= 0, given
// stride >= 1 and give >= 0 (Michelot's projection onto a simplex). Each round drops the duals at
// or below the current u, until none is. u grows, and never beyond the solution. a is
// overwritten.
func simplexThreshold(a []float64, stride, give float64) (u float64) {
	sum := 0.0
	for _, x := range a {
		sum += x
	}
	above := sum
	for len(a) > 0 {
		next := (float64(stride*above) - sum) / (float64(stride*float64(len(a))) + give)
		if !(next > u) {
			break
		}
		u = next
		kept := a[:0]
		above = 0
		for _, x := range a {
			if x > u {
				kept = append(kept, x)
				above += x
			}
		}
		if len(kept) == len(a) {
			break
		}
		a = kept
	}
	return u
}
