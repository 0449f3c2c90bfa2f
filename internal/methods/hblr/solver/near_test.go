package solver

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/internal/linalg/sparse"
)

// text generates many short rows with positive values, and a bias. The first features are common,
// the others rare.
func text(seed uint64, rows, cols int, weights bool) Rows {
	r := rand.New(rand.NewPCG(seed, 9))
	index, value := make([][]uint32, rows), make([][]float32, rows)
	for i := range rows {
		for f := uint32(0); f < uint32(cols); f += 1 + uint32(float64(f+2)*r.ExpFloat64()/2) {
			index[i], value[i] = append(index[i], f), append(value[i], float32(0.1+0.4*r.Float64()))
		}
	}
	out := Rows{X: sparse.FromRows(cols, index, value), Bias: 1}
	for i := 0; weights && i < rows; i++ {
		out.Weight = append(out.Weight, 0.2+2*r.Float64())
	}
	return out
}

// rare returns leaves of few instances that have a feature in common. Their precisions span many
// orders of magnitude, and differ by feature in every other leaf.
func rare(seed uint64, r Rows, lanes int) *Block {
	rnd, b := rand.New(rand.NewPCG(seed, 4)), leaves(seed, r, lanes)
	for l := range lanes {
		b.Positive[l] = nil
		for i := range uint32(r.X.Rows) {
			index, _ := r.X.Row(int(i))
			if last := index[len(index)-1]; int(last)%97 == l && rnd.IntN(8) == 0 {
				b.Positive[l] = append(b.Positive[l], i)
			}
		}
		for k := range b.Precision[l].Value {
			b.Precision[l].Value[k] *= math.Pow(10, -float64(l%7))
		}
	}
	return b
}

// TestNear has many rows, so that steps are computed from the near rows. It checks, by the
// definition of the gradient over all rows, that leaves end within the tolerance of the optimum,
// with the same bits with every kernel.
func TestNear(t *testing.T) {
	for seed, lanes := range []int{7, 3} {
		r := text(uint64(seed), nearLeast, 600, seed == 1)
		b := rare(uint64(seed), r, lanes)
		const tolerance = 1e-6
		var want []float64
		for _, k := range append(Kernels(), Kernel{}) {
			r.Kernel = k
			s, w := &Scratch{}, make([]float64, r.Columns()*lanes)
			s.Open(r, b)
			if _, err := s.Solve(context.Background(), r, w, tolerance); err != nil {
				t.Fatal(err)
			}
			if s.near == nil || len(s.near.rows) > r.X.Rows/4 {
				t.Errorf("seed %d: no near problem, or most rows are near", seed)
			}
			if want == nil {
				want = w
				for l := range lanes {
					if rest := rest(r, b, w, l, lanes); !(rest <= 1.01*boundShare*tolerance) {
						t.Errorf("seed %d, lane %d: the gradient is %g of the weights", seed, l, rest)
					}
				}
			}
			same(t, "weights", w, want)
		}
	}
}

// rest returns the length of the gradient in the metric 1/A, relative to that of w - m in A.
func rest(r Rows, b *Block, w []float64, l, lanes int) float64 {
	positive := map[uint32]bool{}
	for _, i := range b.Positive[l] {
		positive[i] = true
	}
	own, g := make([]float64, r.Columns()), make([]float64, r.Columns())
	norm, size := 0.0, 0.0
	for f := range own {
		own[f] = w[f*lanes+l]
		distance := own[f]
		if b.Above[l] != nil {
			distance -= b.Above[l][f]
		}
		g[f] = b.Precision[l].At(f) * distance
		size += g[f] * distance
	}
	for i := range r.X.Rows {
		x := r.dense(i)
		p := 1 / (1 + math.Exp(-sparse.Dot(own, x)))
		if positive[uint32(i)] {
			p--
		}
		for f, v := range x {
			g[f] += r.WeightOf(i) * p * v
		}
	}
	for f, x := range g {
		norm += x * x / b.Precision[l].At(f)
	}
	return math.Sqrt(norm / size)
}

// TestFar checks that phi is the minimum over t, and that its derivatives are right, over many
// orders of magnitude.
func TestFar(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		a := &far{}
		a.total[0], a.own[0] = math.Pow(10, 4-20*rnd.Float64()), math.Pow(10, 4-20*rnd.Float64())
		a.shift[0] = (rnd.Float64() - 0.5) * a.total[0]
		s := 8 * (rnd.Float64() - 0.7) * a.total[0]
		value, slope, bend := a.phi(0, s)
		at := func(t float64) float64 {
			return a.own[0]*t*t/2 + a.total[0]*math.Exp((s+a.shift[0]-a.own[0]*t)/a.total[0])
		}
		for _, x := range []float64{1, 0.99, 1.01} {
			if least := at(x * slope); !(least >= value*(1-1e-9)) {
				t.Fatalf("L %g, b %g, s %g: phi is %g at t = %g, but %g at %g of it", a.total[0], a.own[0], s, value, slope, least,
					x)
			}
		}
		h := 1e-4 * min(a.total[0]+a.own[0]*slope, 1e3*a.total[0])
		up, steep, _ := a.phi(0, s+h)
		down, flat, _ := a.phi(0, s-h)
		if d := (up - down) / (2 * h); math.Abs(d-slope) > 1e-5*slope {
			t.Fatalf("L %g, b %g, s %g: slope %g, by differences %g", a.total[0], a.own[0], s, slope, d)
		}
		if d := (steep - flat) / (2 * h); math.Abs(d-bend) > 1e-5*bend {
			t.Fatalf("L %g, b %g, s %g: bend %g, by differences %g", a.total[0], a.own[0], s, bend, d)
		}
	}
	if value, slope, bend := new(far).phi(0, 3); value != 0 || slope != 0 || bend != 0 {
		t.Error("no far rows have a loss")
	}
}

// TestEndWithContradictions has a class of which some instances are negatives as well. It has large
// curvatures along single features and the bias, and nearly none along the directions that keep
// these instances' scores. It must still end near its optimum.
func TestEndWithContradictions(t *testing.T) {
	r := text(5, nearLeast, 200, false)
	index, value := make([][]uint32, r.X.Rows), make([][]float32, r.X.Rows)
	for i := range index {
		index[i], value[i] = r.X.Row(i)
	}
	b := &Block{Above: [][]float64{nil}, Precision: []Precision{{Value: []float64{1e-6}}}, Positive: [][]uint32{nil}}
	for i := range uint32(20) {
		if b.Positive[0] = append(b.Positive[0], i); i < 4 {
			index[100+i], value[100+i] = index[i], value[i]
		}
	}
	r.X = sparse.FromRows(r.X.Cols, index, value)
	s, w := &Scratch{}, make([]float64, r.Columns())
	s.Open(r, b)
	const tolerance = 1e-2
	solve := func(tolerance float64) {
		if _, err := s.Solve(context.Background(), r, w, tolerance); err != nil {
			t.Fatal(err)
		}
	}
	solve(tolerance)
	end := slices.Clone(w)
	solve(0.03 * tolerance)
	far, size := 0.0, 0.0
	for f, x := range w {
		far += (end[f] - x) * (end[f] - x)
		size += x * x
	}
	if far := math.Sqrt(far / size); !(far <= tolerance) {
		t.Errorf("the solve ends at a distance of %g of the weights", far)
	}
}

// TestFarOfRounding checks that far rows are ignored if their pull is negligible compared with that
// of the near ones. Their sum of features is a difference of gradients, so it would be rounding,
// and loss/L could be anything.
func TestFarOfRounding(t *testing.T) {
	r := text(6, nearLeast, 60, false)
	b := &Block{Above: [][]float64{nil}, Precision: []Precision{Unit}, Positive: [][]uint32{{3, 5, 8}}}
	for bias, none := range map[float64]bool{-5: false, -100: true} {
		s, n := &Scratch{}, &near{Scratch: Scratch{far: new(far)}}
		s.Open(r, b)
		w := make([]float64, r.Columns())
		w[len(w)-1] = bias
		s.lay(w)
		s.locate(r)
		s.differentiate(r)
		n.draw(s, r, 1)
		n.open(s, n.cut(r), 1)
		if got := n.far.total[0] == 0; got != none {
			t.Errorf("bias %g: L is %g", bias, n.far.total[0])
		}
	}
}
