// Package ridge solves ridge regressions of several targets on the same rows:
//
//	min_w  P(w) = 1/2 ||w||^2 + 1/2 sum_i C_i (y_i - w.x_i)^2
//
// A target is given by its positive rows: y_i is +1 there and -1 elsewhere. The optimum is the
// closed form w = M^-1 sum_i C_i y_i x_i, M = I + sum_i C_i x_i x_i'. Conjugate gradients solve the
// system until the residual is of the size of rounding errors. M is stored explicitly if that makes
// a product cheaper. The dual at a_i = C_i (y_i - w.x_i) certifies the result:
//
//	D(a) = sum_i a_i y_i - 1/2 ||sum_i a_i x_i||^2 - 1/2 sum_i a_i^2 / C_i
//
// An iteration costs a pass over the rows, or width^2. There are at most as many iterations as M
// has distinct eigenvalues, and in practice about the root of its condition number.
package ridge

import (
	"context"

	"taxon/internal/linalg/conjugate"
	"taxon/internal/linalg/sparse"
	"taxon/mapper"
)

// tolerance is the residual, relative to the right-hand side, at which a system counts as solved. A
// smaller residual is beyond the precision of float64.
const tolerance = 1e-13

// Solver solves one target after another on the rows of a problem. Only one goroutine may use it at
// a time.
type Solver struct {
	// p gives rows, C, weights and bias. Its Loss is ignored.
	p *mapper.Problem
	// width is the number of features and one for the bias.
	width int
	// m is M, row by row. With a nil m, products pass over the rows.
	m []float64
}

// New returns a solver. It writes M out if a product with it costs less than two passes over the
// rows.
func New(p *mapper.Problem) *Solver {
	s := &Solver{p: p, width: p.X.Cols + 1}
	if square := int64(s.width) * int64(s.width); square > 2*(p.X.NNZ+int64(p.X.Rows)) {
		return s
	}
	s.m = make([]float64, s.width*s.width)
	for f := range s.width {
		s.m[f*s.width+f] = 1
	}
	for i := range p.X.Rows {
		index, value := s.row(i)
		for k, f := range index {
			by := float64(p.RowC(i) * value[k])
			for l, g := range index[:k+1] {
				s.m[int(f)*s.width+int(g)] += float64(by * value[l])
			}
		}
	}
	for f := range s.width { // rows may be in any order
		for g := range f {
			sum := s.m[f*s.width+g] + s.m[g*s.width+f]
			s.m[f*s.width+g], s.m[g*s.width+f] = sum, sum
		}
	}
	return s
}

// row returns row i, the bias last.
func (s *Solver) row(i int) ([]uint32, []float64) {
	index, value := s.p.X.Row(i)
	columns, values := make([]uint32, len(index), len(index)+1), make([]float64, len(index), len(index)+1)
	copy(columns, index)
	for k, v := range value {
		values[k] = float64(v)
	}
	if s.p.Bias > 0 {
		columns, values = append(columns, uint32(s.width-1)), append(values, float64(s.p.Bias))
	}
	return columns, values
}

// score returns w.x_i.
func (s *Solver) score(i int, w []float64) float64 {
	index, value := s.p.X.Row(i)
	sum := float64(w[s.width-1] * float64(s.p.Bias))
	for k, f := range index {
		sum += float64(w[f] * float64(value[k]))
	}
	return sum
}

// add adds by x_i to w.
func (s *Solver) add(i int, by float64, w []float64) {
	index, value := s.p.X.Row(i)
	for k, f := range index {
		w[f] += float64(by * float64(value[k]))
	}
	w[s.width-1] += float64(by * float64(s.p.Bias))
}

// times sets out to M v.
func (s *Solver) times(v, out []float64) {
	if s.m != nil {
		for f := range out {
			out[f] = sparse.Dot(s.m[f*s.width:][:s.width], v)
		}
		return
	}
	copy(out, v)
	for i := range s.p.X.Rows {
		s.add(i, float64(s.p.RowC(i)*s.score(i, v)), out)
	}
}

// Result holds a target's weights in float32, with the bias last, and its certificate. P is
// computed at these weights, and D at the duals of the weights before rounding.
type Result struct {
	mapper.Override
	Primal, Dual float64
	// Steps is the number of conjugate gradient steps.
	Steps int
}

// Solve returns the weights of the target that is +1 on the rows in positive, ascending, and -1 on
// the others. It returns an error only if ctx is cancelled.
func (s *Solver) Solve(ctx context.Context, positive []uint32) (*Result, error) {
	rows := s.p.X.Rows
	y := make([]float64, rows)
	for i := range y {
		y[i] = -1
	}
	for _, i := range positive {
		y[i] = 1
	}
	e := &system{Solver: s, ctx: ctx}
	for _, v := range []*[]float64{&e.X, &e.R, &e.P, &e.Q} {
		*v = make([]float64, s.width)
	}
	e.Z = e.R
	for i := range rows {
		s.add(i, float64(s.p.RowC(i)*y[i]), e.R)
	}
	rr := sparse.Dot(e.R, e.R)
	e.Size[0], e.Enough[0], e.Running = rr, float64(tolerance*tolerance)*rr, 1
	e.Gradients.Solve(e, 2*s.width+100)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &Result{Steps: e.Steps}
	s.certify(out, e.X, y)
	return out, nil
}

// system is the linear system of a target, without a preconditioner.
type system struct {
	conjugate.Gradients
	conjugate.Vectors
	*Solver
	ctx context.Context
}

// Multiply implements conjugate.System. Once ctx has ended, no direction has curvature.
func (e *system) Multiply(g *conjugate.Gradients) {
	if e.ctx.Err() != nil {
		return
	}
	e.Turn(g, 1)
	e.times(e.P, e.Q)
	g.Curvature[0] = sparse.Dot(e.P, e.Q)
}

// Advance implements conjugate.System.
func (e *system) Advance(g *conjugate.Gradients) {
	e.Vectors.Advance(g, 1)
	g.Next[0] = sparse.Dot(e.R, e.R)
}

// certify rounds the weights, and sets P and D.
func (s *Solver) certify(out *Result, w, y []float64) {
	rounded, sum := make([]float64, s.width), make([]float64, s.width)
	for f, v := range w {
		if v32 := float32(v); v32 != 0 {
			rounded[f] = float64(v32)
			out.Feature, out.Value = append(out.Feature, uint32(f)), append(out.Value, v32)
		}
	}
	for i := range y {
		c, off := s.p.RowC(i), y[i]-s.score(i, rounded)
		out.Primal += float64(c*off) * off / 2
		a := float64(c * (y[i] - s.score(i, w)))
		out.Dual += float64(a * (y[i] - a/(2*c)))
		s.add(i, a, sum)
	}
	out.Primal += sparse.Dot(rounded, rounded) / 2
	out.Dual -= sparse.Dot(sum, sum) / 2
}
