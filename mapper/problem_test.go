package mapper

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"taxon/internal/linalg/sparse"
)

// problem is a small random block with every awkward kind of row, column and class.
type problem struct {
	index [][]uint32
	value [][]float32
	cols  int
	x     *sparse.Matrix
	block *Block
}

// shape of a generated problem.
type shape struct {
	rows, cols, lanes int
	whole             bool // small integers: exact ties and margins
	dense             bool // rows with every column
}

// generate draws a problem: zero rows, doubled rows, a doubled column, stored zeros, a
// class with every instance, one with none and one with a single one, parents shared
// and missing.
func generate(seed uint64, sh shape) *problem {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &problem{cols: sh.cols}
	for i := range sh.rows {
		idx, val := randomRow(r, sh)
		if i > 0 && r.IntN(6) == 0 {
			j := r.IntN(i)
			idx, val = p.index[j], p.value[j]
		}
		p.index, p.value = append(p.index, idx), append(p.value, val)
	}
	p.x = sparse.FromRows(sh.cols, p.index, p.value)
	p.block = randomBlock(r, sh)
	return p
}

func randomRow(r *rand.Rand, sh shape) (idx []uint32, val []float32) {
	if r.IntN(12) == 0 {
		return nil, nil
	}
	for f := range uint32(sh.cols - 1) {
		if r.IntN(3) != 0 && !sh.dense {
			continue
		}
		v := float32(r.NormFloat64() / math.Sqrt(float64(sh.cols)/3))
		if sh.whole {
			v = float32(r.IntN(3) - 1) // 0 among them: a stored zero
		}
		idx, val = append(idx, f), append(val, v)
	}
	if len(idx) > 0 && idx[0] == 0 { // the last column doubles the first
		idx, val = append(idx, uint32(sh.cols-1)), append(val, val[0])
	}
	return idx, val
}

func randomBlock(r *rand.Rand, sh shape) *Block {
	b := &Block{}
	for slot := range 1 + r.IntN(3) {
		y := make([]float32, sh.cols+1)
		for f := range y {
			if slot > 0 && r.IntN(2) == 0 {
				y[f] = float32(r.NormFloat64() / 3)
				if sh.whole {
					y[f] = float32(r.IntN(3)-1) / 2
				}
			}
		}
		b.Mean = append(b.Mean, y)
	}
	for l := range sh.lanes {
		b.Slot = append(b.Slot, r.IntN(len(b.Mean)+1)-1)
		var rows []uint32
		for i := range uint32(sh.rows) {
			if l == 0 || l > 2 && r.IntN(l) == 0 || l == 2 && i == uint32(sh.rows/2) {
				rows = append(rows, i)
			}
		}
		b.Positive = append(b.Positive, rows)
	}
	return b
}

// mean is lane l's y, dense.
func (p *problem) mean(l int) []float32 {
	if slot := p.block.Slot[l]; slot >= 0 {
		return p.block.Mean[slot]
	}
	return make([]float32, p.cols+1)
}

// signs are y_il of all rows.
func (p *problem) signs(l int) []float64 {
	y := make([]float64, len(p.index))
	for i := range y {
		y[i] = -1
	}
	for _, i := range p.block.Positive[l] {
		y[i] = 1
	}
	return y
}

// dense is row i in float64 with the bias behind.
func (p *problem) dense(i int, bias float32) []float64 {
	x := make([]float64, p.cols+1)
	for j, f := range p.index[i] {
		x[f] = float64(p.value[i][j])
	}
	x[p.cols] = float64(bias)
	return x
}

// weights is the float32 w = y + v of lane l, and v, from the lane's duals.
func (p *problem) weights(l int, bias float32, a []float64) (w []float32, v []float64) {
	v = make([]float64, p.cols+1)
	for i, sign := range p.signs(l) {
		if a[i] != 0 {
			for f, x := range p.dense(i, bias) {
				v[f] += sign * a[i] * x
			}
		}
	}
	w = make([]float32, p.cols+1)
	for f, y := range p.mean(l) {
		w[f] = float32(float64(y) + v[f])
	}
	return w, v
}

// duals of lane l of a state, dense.
func duals(st *State, rows, l int) []float64 {
	a := make([]float64, rows)
	at := 0
	for k, i := range st.Rows {
		for m := st.Live[k]; m != 0; m &= m - 1 {
			if bits.TrailingZeros16(m) == l {
				a[i] = float64(st.Dual[at])
			}
			at++
		}
	}
	return a
}

// visited says which rows lane l looks at: its working set and its duals.
func visited(st *State, rows, l int) []bool {
	out := make([]bool, rows)
	for k, i := range st.Rows {
		out[i] = (st.Work[k]|st.Live[k])>>l&1 != 0
	}
	return out
}

func dot(a, b []float64) (s float64) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// figures are a lane's sums, computed densely.
type figures struct {
	primal, dual float64 // as in Sums, zero rows included
	subdual      float64 // [TKDD] eq. 12
	gap          float64 // sum of InnerGap
}

// figures computes everything that price claims, for lane l.
func (p *problem) figures(s *Problem, l int, a []float64) (f figures) {
	weight := 1.0
	if s.PositiveWeight > 0 {
		weight = s.PositiveWeight
	}
	if p.block.Weight != nil {
		weight = p.block.Weight[l]
	}
	w32, v := p.weights(l, s.Bias, a)
	w, e, y := make([]float64, len(w32)), make([]float64, len(w32)), make([]float64, len(w32))
	for i := range w {
		y[i] = float64(p.mean(l)[i])
		w[i] = float64(w32[i])
		e[i] = w[i] - y[i]
	}
	f.primal, f.dual, f.subdual = dot(e, e)/2, -dot(v, v)/2, -dot(v, v)/2
	for i, sign := range p.signs(l) {
		x := p.dense(i, s.Bias)
		ai, c := a[i], s.C
		if sign > 0 {
			c *= weight
		}
		if s.Weight != nil {
			c *= s.Weight[i]
		}
		if dot(x, x) == 0 {
			ai = s.Loss.ZeroRowDual(c)
		}
		z := sign * dot(w, x)
		f.primal += c * s.Loss.Value(z)
		f.dual += s.Loss.DualTerm(ai, c)
		f.subdual += s.Loss.DualTerm(ai, c) - ai*sign*dot(y, x)
		f.gap += s.Loss.InnerGap(z, ai, c)
	}
	return f
}

// cases are the settings that most tests run through.
type setting struct {
	loss Loss
	c    float64
	bias float32
	// weight of positives: 0 as 1; below 0: by lane, -weight at lane 0 and half as much at each further one
	weight float64
	spread float64 // rows have weights from 10^-spread to 10^spread; 0: none
}

func (s setting) String() string {
	return fmt.Sprintf("loss %d C %g bias %g weight %g spread %g", s.loss, s.c, s.bias, s.weight, s.spread)
}

// solver of the setting; blocks of a setting with weights by lane need weigh.
func (s setting) solver(x *sparse.Matrix) *Problem {
	solver := NewProblem(x, s.loss, s.c, s.bias)
	solver.PositiveWeight = max(s.weight, 0)
	for i := range x.Rows {
		if s.spread != 0 {
			solver.Weight = append(solver.Weight, s.rowWeight(i))
		}
	}
	return solver
}

// weigh sets the block's weights where the setting has them by lane and the block none.
func (s setting) weigh(b *Block) {
	if b.Weight != nil {
		return
	}
	for l := range b.Slot {
		if s.weight < 0 {
			b.Weight = append(b.Weight, math.Ldexp(-s.weight, -l))
		}
	}
}

// rowWeight is that of row i.
func (s setting) rowWeight(i int) float64 { return math.Pow(10, float64(i*5%7-3)/3*s.spread) }

// rowC is C of row i in lane l.
func (s setting) rowC(i int, positive bool, l int) float64 {
	return s.rowWeight(i) * s.classC(positive, l)
}

// classC is C of lane l's positive or negative rows.
func (s setting) classC(positive bool, l int) float64 {
	switch {
	case !positive || s.weight == 0:
		return s.c
	case s.weight < 0:
		return s.c * math.Ldexp(-s.weight, -l)
	}
	return s.c * s.weight
}

var settings = []setting{
	{Hinge, 1, 1, 0, 0}, {Hinge, 0.1, 0, 0, 0}, {Hinge, 100, 1, 0, 0}, {Hinge, 0.01, 2.5, 0, 0},
	{SquaredHinge, 1, 1, 0, 0}, {SquaredHinge, 0.1, 0, 0, 0}, {SquaredHinge, 30, 0.5, 0, 0},
	{Hinge, 0.3, 1, 4.7, 0}, {SquaredHinge, 0.3, 1, 4.7, 0}, {Hinge, 0.3, 1, -20, 0}, {SquaredHinge, 0.3, 0, -20, 0},
	{Hinge, 0.3, 1, 0, 1}, {Hinge, 0.001, 0, -20, 3}, {SquaredHinge, 0.3, 1, 4.7, 1}, {SquaredHinge, 0.1, 1, 0, 3},
}
