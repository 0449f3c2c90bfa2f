package mapper

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"taxon/internal/linalg/contribution"
	"taxon/internal/linalg/sparse"
)

// smoothProblem is a random block over a small matrix, with weights.
func smoothProblem(seed uint64, lanes int, bias float32) (*Problem, *Block) {
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
	s := NewProblem(sparse.FromRows(cols, index, value), Logistic, 2, bias)
	for i := range rows {
		if seed%4 == 3 {
			s.Weight = append(s.Weight, math.Pow(10, float64(i*5%7-3)/3))
		}
	}
	return s, b
}

// primalOf is f at v by its definition, in float64.
func primalOf(s *Problem, b *Block, l int, w []float64) (primal float64, gradient []float64) {
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
		if s.Weight != nil {
			c *= s.Weight[i]
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

func weightsOf(s *Problem, b *Block, os []Override, l int) []float64 {
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
			solver := s.NewSolver()
			o := Options{Epochs: 1, MaxEpochs: 30, InnerGap: 1e-9, Price: true, Curvature: true}
			res, err := solver.Solve(context.Background(), b, nil, o)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = res
			}
			if res.Sums.Primal != first.Sums.Primal || res.Sums.Dual != first.Sums.Dual ||
				len(res.State.Value) != len(first.State.Value) {
				t.Errorf("seed %d: kernel %s: %+v, not %+v", seed, kernel, res.Sums, first.Sums)
			}
			for k, v := range res.State.Value {
				if math.Float32bits(v) != math.Float32bits(first.State.Value[k]) {
					t.Fatalf("seed %d: kernel %s: value %d is %g, not %g", seed, kernel, k, v, first.State.Value[k])
				}
			}
			os := solver.Weights(b, &res.State)
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

// TestLogisticShare: without a gap known a solve ends at the share of its own loss asked
// for, flat problems in one go, and not much below.
func TestLogisticShare(t *testing.T) {
	for seed := range uint64(20) {
		s, b := smoothProblem(seed, 1+int(seed*5%16), 1)
		epochs := 0
		for _, share := range []float64{1e-1, 1e-4} {
			res, err := s.NewSolver().Solve(context.Background(), b, nil, Options{Epochs: 1, MaxEpochs: 30, InnerShare: share,
				Price: true})
			if err != nil {
				t.Fatal(err)
			}
			if res.Sums.InnerGap > share*res.Sums.Primal {
				t.Errorf("seed %d: gap %g, above %g of %g", seed, res.Sums.InnerGap, share, res.Sums.Primal)
			}
			if int(res.Sums.Epochs) < epochs {
				t.Errorf("seed %d: %d epochs, after %d for a larger share", seed, res.Sums.Epochs, epochs)
			}
			epochs = int(res.Sums.Epochs)
		}
	}
}

// TestLogisticResumes: a solved block prices to the same sums from its state.
func TestLogisticResumes(t *testing.T) {
	s, b := smoothProblem(3, 7, 1)
	solver := s.NewSolver()
	a, err := solver.Solve(context.Background(), b, nil, Options{Epochs: 2, MaxEpochs: 3, Price: true})
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.NewSolver().Solve(context.Background(), b, &a.State, Options{Price: true})
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
		p, q, loss := sigmoid(z)
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

// TestCurvatureIsBounded: h_f is at least the diagonal of the loss's Hessian, and a
// terminal without any counts nothing.
func TestCurvatureIsBounded(t *testing.T) {
	s, b := smoothProblem(5, 4, 1)
	solver := s.NewSolver()
	res, err := solver.Solve(context.Background(), b, nil, Options{Epochs: 5, MaxEpochs: 5, Curvature: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Contributions {
		for k, f := range c.Feature {
			lanes := 0
			for _, slot := range b.Slot {
				if slot == int(c.Parent) {
					lanes++
				}
			}
			if contribution.Degree(c.Curvature[k]) > float64(lanes) {
				t.Errorf("feature %d: curvature %d of %d lanes", f, c.Curvature[k], lanes)
			}
		}
	}
	e := solver.(*logisticSolver)
	for i := range s.X.Rows {
		idx, val := s.X.Row(i)
		for j, f := range idx {
			for l := range b.Slot {
				if own := e.curve[i][l] * val[j] * val[j]; own > e.bound[f][l]*1.001 {
					t.Fatalf("row %d alone has curvature %g at feature %d, the bound is %g", i, own, f, e.bound[f][l])
				}
			}
		}
	}
}

// TestPriceValues: the certificate's p, p(1-p) and loss against package math, and all kernels with
// equal bits.
func TestPriceValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for n := range 4000 {
		var score [Lanes]float64
		for l := range score {
			score[l] = r.NormFloat64() * math.Exp(8*r.Float64()-4)
		}
		score[n%Lanes] = []float64{0, 1e-300, -1e-9, 700, -708, 5000, math.Inf(1), math.Inf(-1)}[n%8]
		run := func(price func(*priceArgs)) (coef, curve [Lanes]float32, loss [Lanes]float64) {
			e := priceArgs{score: &score, coef: &coef, curve: &curve, pos: uint64(n*2654435761) & 0xffff}
			for l := range e.loss {
				e.negC[l], e.posC[l], e.loss[l] = 1+float64(l), 3+float64(l), 0.5
			}
			price(&e)
			return coef, curve, e.loss
		}
		coef, curve, loss := run(priceRow)
		for l, z := range score {
			c, sign := 1+float64(l), -1.0
			if n*2654435761>>l&1 != 0 {
				c, sign = 3+float64(l), 1
			}
			z *= sign
			p, q := 1/(1+math.Exp(z)), 1/(1+math.Exp(-z))
			want := float64(c*(math.Log1p(math.Exp(-math.Abs(z)))+max(-z, 0))) + 0.5
			if math.Abs(float64(coef[l])-sign*c*p) > 1e-7*c*p+1e-40 || math.Abs(float64(curve[l])-c*p*q) > 1e-7*c*p*q+1e-40 {
				t.Fatalf("z = %g: dual %g and curvature %g, want %g and %g", z, coef[l], curve[l], sign*c*p, c*p*q)
			}
			if loss[l] != want && math.Abs(loss[l]-want) > 4e-15*want {
				t.Fatalf("z = %g: loss %g, want %g", z, loss[l], want)
			}
		}
		for _, k := range Kernels() {
			a, b, c := run(loopsOf(k).price)
			if a != coef || b != curve || c != loss {
				t.Fatalf("kernel %s at %v: %v %v %v, Go %v %v %v", k, score, a, b, c, coef, curve, loss)
			}
		}
	}
}

// TestTileLoops: the loops over tiles give equal bits in all kernels.
func TestTileLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for _, n := range []int{1, 2, 37} {
		a, b, c := randomTile[float32](r, n), randomTile[float32](r, n), randomTile[float32](r, n)
		randomLines := randomTile[float32](r, Lanes)
		randomLines[3][5], randomLines[4][5], randomLines[0][0] = math.MaxFloat32, 0, 1e-30
		at, pos, size, step := make([]uint32, n), make([]uint16, n), make([]float32, n), randomTile[float32](r, 1)[0]
		for i := range at {
			at[i], size[i] = uint32(r.IntN(2)*i), r.Float32()
			if r.IntN(9) == 0 {
				pos[i] = 1 << r.IntN(Lanes)
			}
		}
		run := func(k loops) (out []any) {
			d, m, s, rows := slices.Clone(a), slices.Clone(a), slices.Clone(a), make([]uint32, n)
			k.along(&d[0], &b[0], n, &step)
			k.mixed(&m[0], &b[0], &c[0], n, &step)
			k.scaled(&s[0], &b[0], &size[0], n)
			var sums [7][Lanes]float64
			k.slopes(&a[0], &b[0], &c[0], n, &sums[0], &sums[1], &sums[2])
			k.outside(&a[0], &b[0], &at[0], n, &sums[3], &sums[4])
			k.edges(&a[0], &b[0], &c[0], n, &sums[5], &sums[6])
			lines, turned := randomLines, [Lanes][Lanes]float32{}
			k.transposed(&lines[0], &turned)
			added, codes := [3][Lanes]float32{}, [3][Lanes]uint8{}
			for i, lanes := range []uint64{0, 0xffff, 0x0a31} {
				k.laneSums(&turned, lanes, &added[i][0])
				k.laneCodes(&turned, lanes, 0.5, &codes[i][0])
			}
			found := k.above(&a[0], &pos[0], n, 1.5, &rows[0], n)
			return []any{d, m, s, sums, turned, added, codes, found, rows, k.above(&a[0], &pos[0], n, -100, &rows[0], n-1)}
		}
		want := run(goLoops)
		for _, k := range Kernels() {
			if got := run(loopsOf(k)); !reflect.DeepEqual(got, want) {
				t.Errorf("kernel %s, %d lines:\n%v\nGo\n%v", k, n, got, want)
			}
		}
	}
}
