package mapper

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"taxon/internal/sparse"
)

// smoothProblem is a random block over a small matrix, with weights.
func smoothProblem(seed uint64, lanes int, bias float32) (*Solver, *Block) {
	r := rand.New(rand.NewPCG(seed, 6))
	const rows, cols = 60, 25
	var index [][]uint32
	var value [][]float32
	b := &Block{Slot: make([]int, lanes), Positive: make([][]uint32, lanes)}
	for i := range uint32(rows) {
		var idx []uint32
		var val []float32
		for f := range uint32(cols) {
			if r.IntN(4) == 0 && i%11 != 0 { // every eleventh row is empty
				idx, val = append(idx, f), append(val, float32(r.Float64()))
			}
		}
		index, value = append(index, idx), append(value, val)
		for l := range b.Positive {
			if r.IntN(5) == 0 {
				b.Positive[l] = append(b.Positive[l], i)
			}
		}
	}
	for range 2 {
		y := make([]float32, cols+1)
		for f := range y {
			y[f] = float32(r.NormFloat64())
		}
		b.Mean = append(b.Mean, y)
	}
	for l := range b.Slot {
		b.Slot[l] = r.IntN(3) - 1
		b.Weight = append(b.Weight, []float64{1, 3}[l%2])
	}
	return NewSolver(sparse.FromRows(cols, index, value), Logistic, 2, bias), b
}

// primalOf is f at v by its definition, in float64.
func primalOf(s *Solver, b *Block, l int, w []float64) (primal float64, gradient []float64) {
	y := make([]float64, len(w))
	if b.Slot[l] >= 0 {
		for f := range y {
			y[f] = float64(b.Mean[b.Slot[l]][f])
		}
	}
	positive := map[uint32]bool{}
	for _, i := range b.Positive[l] {
		positive[i] = true
	}
	gradient = make([]float64, len(w))
	for f := range w {
		primal += (w[f] - y[f]) * (w[f] - y[f]) / 2
		gradient[f] = w[f] - y[f]
	}
	for i := range s.X.Rows {
		idx, val := s.X.Row(i)
		sign, c := -1.0, s.C
		if positive[uint32(i)] {
			sign, c = 1, s.C*b.Weight[l]
		}
		z := float64(s.Bias) * w[len(w)-1]
		for j, f := range idx {
			z += float64(val[j]) * w[f]
		}
		z *= sign
		primal += c * math.Log1p(math.Exp(-z))
		p := c / (1 + math.Exp(z))
		gradient[len(w)-1] -= p * sign * float64(s.Bias)
		for j, f := range idx {
			gradient[f] -= p * sign * float64(val[j])
		}
	}
	return primal, gradient
}

func weightsOf(s *Solver, b *Block, os []Override, l int) []float64 {
	w := make([]float64, s.X.Cols+1)
	if b.Slot[l] >= 0 {
		for f, y := range b.Mean[b.Slot[l]] {
			w[f] = float64(y)
		}
	}
	for k, f := range os[l].Feature {
		w[f] = float64(os[l].Value[k])
	}
	return w
}

// TestLogisticSolve: the sums are P and D of the weights handed out, D never above P, the
// gradient vanishes, and every kernel gives the same bits.
func TestLogisticSolve(t *testing.T) {
	for seed := range uint64(20) {
		s, b := smoothProblem(seed, 1+int(seed*5%16), float32(seed%2))
		var first *Result
		for _, kernel := range Kernels() {
			s.Kernel = kernel
			scratch := s.NewScratch()
			o := Options{Epochs: 1, MaxEpochs: 30, InnerGap: 1e-9, Price: true, Stiffness: true}
			res, err := s.SolveBlock(context.Background(), scratch, b, nil, o)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = res
			}
			if res.Sums.Primal != first.Sums.Primal || res.Sums.Dual != first.Sums.Dual || len(res.State.Value) != len(first.State.Value) {
				t.Errorf("seed %d: kernel %s: %+v, not %+v", seed, kernel, res.Sums, first.Sums)
			}
			for k, v := range res.State.Value {
				if math.Float32bits(v) != math.Float32bits(first.State.Value[k]) {
					t.Fatalf("seed %d: kernel %s: value %d is %g, not %g", seed, kernel, k, v, first.State.Value[k])
				}
			}
			os := s.Weights(scratch, b, &res.State)
			primal := 0.0
			for l := range b.Slot {
				p, g := primalOf(s, b, l, weightsOf(s, b, os, l))
				primal += p
				for f, x := range g {
					if math.Abs(x) > 2e-4 {
						t.Errorf("seed %d lane %d: gradient %g at feature %d", seed, l, x, f)
					}
				}
			}
			if math.Abs(res.Sums.Primal-primal) > 1e-9*primal {
				t.Errorf("seed %d: primal %.12g, the weights give %.12g", seed, res.Sums.Primal, primal)
			}
			if gap := res.Sums.Primal - res.Sums.Dual; gap < 0 || math.Abs(gap-res.Sums.InnerGap) > 1e-9*primal {
				t.Errorf("seed %d: gap %g, inner gap %g", seed, gap, res.Sums.InnerGap)
			}
		}
	}
}

// TestLogisticResumes: a solved block prices to the same sums from its state.
func TestLogisticResumes(t *testing.T) {
	s, b := smoothProblem(3, 7, 1)
	scratch := s.NewScratch()
	a, err := s.SolveBlock(context.Background(), scratch, b, nil, Options{Epochs: 2, MaxEpochs: 3, Price: true})
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.SolveBlock(context.Background(), s.NewScratch(), b, &a.State, Options{Price: true})
	if err != nil {
		t.Fatal(err)
	}
	if again.Sums.Primal != a.Sums.Primal || again.Sums.Dual != a.Sums.Dual {
		t.Errorf("%+v, then %+v", a.Sums, again.Sums)
	}
}

// TestLogisticValues: p, q and the loss against float64, over all that float32 sees.
func TestLogisticValues(t *testing.T) {
	for z := float32(-100); z <= 100; z += 0.037 {
		p, q, loss := logistic(z)
		x := float64(z)
		wantP, wantQ := 1/(1+math.Exp(x)), 1/(1+math.Exp(-x))
		wantLoss := math.Log1p(math.Exp(-math.Abs(x))) + max(-x, 0)
		for _, c := range [][2]float64{{float64(p), wantP}, {float64(q), wantQ}, {float64(loss), wantLoss}} {
			if math.Abs(c[0]-c[1]) > 2e-6*c[1]+1e-37 {
				t.Fatalf("z = %g: %g, want %g", z, c[0], c[1])
			}
		}
	}
}

// TestStiffnessBoundsTheCurvature: h_f is at least the diagonal of the loss's Hessian, and a
// terminal without any counts nothing.
func TestStiffnessBoundsTheCurvature(t *testing.T) {
	s, b := smoothProblem(5, 4, 1)
	scratch := s.NewScratch()
	res, err := s.SolveBlock(context.Background(), scratch, b, nil, Options{Epochs: 5, MaxEpochs: 5, Stiffness: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Contributions {
		for k, f := range c.Feature {
			lanes := 0
			for _, slot := range b.Slot {
				if slot == c.Slot {
					lanes++
				}
			}
			if int(c.Stiff[k]) > lanes*StiffUnit {
				t.Errorf("feature %d: stiffness %d of %d lanes", f, c.Stiff[k], lanes)
			}
		}
	}
	e := scratch.logit
	for i := range s.X.Rows {
		idx, val := s.X.Row(i)
		for j, f := range idx {
			for l := range b.Slot {
				if own := e.curve[i][l] * val[j] * val[j]; own > e.stiff[f][l]*1.001 {
					t.Fatalf("row %d alone has curvature %g at feature %d, the bound is %g", i, own, f, e.stiff[f][l])
				}
			}
		}
	}
}

// wideProblem has enough rows for Newton's steps to draw from, most of them far from every
// class.
func wideProblem(rows int) (*Solver, *Block) {
	r := rand.New(rand.NewPCG(uint64(rows), 8))
	const cols, lanes = 300, 5
	var index [][]uint32
	var value [][]float32
	b := &Block{Slot: make([]int, lanes), Positive: make([][]uint32, lanes), Mean: [][]float32{make([]float32, cols+1)}}
	for i := range uint32(rows) {
		var idx []uint32
		var val []float32
		class := r.IntN(400)
		for f := uint32(0); f < cols; f += 1 + uint32(r.IntN(60)) {
			if f >= lanes || int(f) == class {
				idx, val = append(idx, f), append(val, 0.4)
			}
		}
		if class < lanes {
			b.Positive[class] = append(b.Positive[class], i)
		}
		index, value = append(index, idx), append(value, val)
	}
	return NewSolver(sparse.FromRows(cols, index, value), Logistic, 1, 1), b
}

// TestSampledNewton: steps by drawn rows end at the optimum of all rows, with equal bits of
// every kernel, and fewer visits than without drawing.
func TestSampledNewton(t *testing.T) {
	s, b := wideProblem(3 * sampledFrom)
	var first *Result
	for _, kernel := range Kernels() {
		s.Kernel = kernel
		scratch := s.NewScratch()
		res, err := s.SolveBlock(context.Background(), scratch, b, nil, Options{Epochs: 1, MaxEpochs: 40, InnerGap: 1e-8, Price: true, Stiffness: true})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = res
		}
		q := scratch.logit.sampled
		if q == nil || len(q.rows) == 0 || len(q.rows) > s.X.Rows/4 {
			t.Fatalf("%d rows drawn of %d", len(q.rows), s.X.Rows)
		}
		if gap := res.Sums.Primal - res.Sums.Dual; gap < 0 || gap > 2e-7 || res.Sums.Epochs >= 30 {
			t.Errorf("kernel %s: gap %g after %d epochs", kernel, gap, res.Sums.Epochs)
		}
		if res.Sums != first.Sums {
			t.Errorf("kernel %s: %+v, not %+v", kernel, res.Sums, first.Sums)
		}
		t.Logf("%s: %d epochs, %d rows, visits %g of the data", kernel, res.Sums.Epochs, len(q.rows), float64(res.Sums.Visits)/float64(s.X.NNZ*Lanes))
	}
}

// TestTrimmed: what is left out of state and weights costs what it may, parents get all of
// v, and the sums are those of the weights handed out.
func TestTrimmed(t *testing.T) {
	s, b := wideProblem(500)
	solve := func(trim float64) (*Result, *Scratch) {
		scratch := s.NewScratch()
		res, err := s.SolveBlock(context.Background(), scratch, b, nil, Options{Epochs: 1, MaxEpochs: 40, InnerGap: 1e-10, Price: true, Trim: trim})
		if err != nil {
			t.Fatal(err)
		}
		return res, scratch
	}
	full, _ := solve(0)
	for _, trim := range []float64{1e-6, 1e-3, -1e-2, 1e9} {
		res, scratch := solve(trim)
		allowed := 5 * trim
		if trim < 0 {
			allowed = 0
			for _, v := range full.State.Value { // v is G at the optimum
				allowed -= trim * float64(v) * float64(v) / 2
			}
		}
		gap := res.Sums.Primal - res.Sums.Dual
		if gap > 2*allowed+1e-8 || (trim < 0 || trim == 1e-3) && gap < allowed/50 { // no entry is small enough for 1e-6
			t.Errorf("trim %g: the gap is %g, %g was allowed", trim, gap, allowed)
		}
		if len(res.Contributions[0].Sum) != len(full.Contributions[0].Sum) {
			t.Errorf("trim %g: the parent gets %d features of %d", trim, len(res.Contributions[0].Sum), len(full.Contributions[0].Sum))
		}
		os, primal, zeros := s.Weights(scratch, b, &res.State), 0.0, 0
		for l := range b.Slot {
			p, _ := primalOf(s, &Block{Mean: b.Mean, Slot: b.Slot, Positive: b.Positive, Weight: []float64{1, 1, 1, 1, 1}}, l, weightsOf(s, b, os, l))
			primal += p
		}
		for _, v := range res.State.Value {
			if v == 0 {
				zeros++
			}
		}
		if math.Abs(primal-res.Sums.Primal) > 1e-9*primal {
			t.Errorf("trim %g: P %.12g, the weights give %.12g", trim, res.Sums.Primal, primal)
		}
		if trim == 1e9 && len(res.State.Value) == len(full.State.Value) && zeros == 0 || trim == -1e-2 && zeros == 0 && len(res.State.Value) == len(full.State.Value) {
			t.Errorf("trim %g: %d values, %d of them zero, of %d", trim, len(res.State.Value), zeros, len(full.State.Value))
		}
	}
}

// TestThreshold: what lies below it costs no more than it may, and the next larger class
// of entries would.
func TestThreshold(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	v, features := make([]float64, 1000), []uint32(nil)
	for f := range v {
		v[f] = r.NormFloat64() * math.Exp2(float64(-r.IntN(40)))
		if f%3 != 0 {
			features = append(features, uint32(f))
		}
	}
	below := func(limit float64) (cost float64) {
		for _, f := range features {
			if math.Abs(v[f]) < limit {
				cost += v[f] * v[f] / 2
			}
		}
		return cost
	}
	for _, trim := range []float64{1e-20, 1e-6, 1e-2, -1e-3, 0} {
		budget := max(trim, -trim*below(math.Inf(1)))
		at := Threshold(v, features, trim)
		if below(at) > budget*(1+1e-12) || trim != 0 && below(at*1.126) <= budget {
			t.Errorf("trim %g: %g costs %g of %g, and %g", trim, at, below(at), budget, below(at*1.126))
		}
	}
	if at := Threshold(v, features, 1e9); at < 1e9 {
		t.Errorf("all may go, but only below %g", at)
	}
}
