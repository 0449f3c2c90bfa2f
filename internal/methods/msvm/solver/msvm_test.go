package solver

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"taxon/internal/linalg/sparse"
	"taxon/mapper"
)

// small generates a problem whose classes overlap. Some rows have no feature, so without a bias
// they are zero.
func small(seed uint64, rows, cols, classes int, c float64, bias float32) *Problem {
	r := rand.New(rand.NewPCG(seed, 7))
	p := &Problem{Classes: classes}
	var index [][]uint32
	var value [][]float32
	for i := range rows {
		y := r.IntN(classes)
		var at []uint32
		for k := range i % 6 {
			f := (y + k*3) % cols
			if r.IntN(3) == 0 {
				f = r.IntN(cols)
			}
			at = append(at, uint32(f))
		}
		slices.Sort(at)
		at = slices.Compact(at)
		x := make([]float32, len(at))
		for k := range x {
			x[k] = float32(r.NormFloat64()*0.3 + 1)
		}
		index, value, p.Class = append(index, at), append(value, x), append(p.Class, int32(y))
	}
	p.Rows = mapper.NewProblem(sparse.FromRows(cols, index, value), mapper.Hinge, c, bias)
	return p
}

// weigh gives the rows weights.
func (p *Problem) weigh() *Problem {
	for i := range p.Class {
		p.Rows.Weight = append(p.Rows.Weight, 0.5+float64(i%4))
	}
	return p
}

// row is x_i, the bias last.
func (p *Problem) row(i int) []float64 {
	x := make([]float64, p.Rows.X.Cols+1)
	index, value := p.Rows.X.Row(i)
	for k, f := range index {
		x[f] = float64(value[k])
	}
	x[len(x)-1] = float64(p.Rows.Bias)
	return x
}

func product(a, b []float64) (s float64) {
	for k := range a {
		s += a[k] * b[k]
	}
	return s
}

// primal is P, from its definition.
func (p *Problem) primal(w [][]float64) (sum float64) {
	for _, v := range w {
		sum += product(v, v) / 2
	}
	for i, y := range p.Class {
		x, xi := p.row(i), 0.0
		for m := range w {
			if m != int(y) {
				xi = max(xi, 1+product(w[m], x)-product(w[y], x))
			}
		}
		sum += p.Rows.RowC(i) * xi
	}
	return sum
}

// twin solves the dual by accelerated projected gradients (FISTA) over dense b, with each row
// projected on {b >= 0, sum b <= C_i} by bisection. It returns D.
func (p *Problem) twin(rounds int) float64 {
	n := len(p.Class)
	x := make([][]float64, n)
	for i := range x {
		x[i] = p.row(i)
	}
	gram, bound := make([][]float64, n), 0.0
	for i := range gram {
		sum := 0.0
		for j := range n {
			gram[i] = append(gram[i], product(x[i], x[j]))
			sum += math.Abs(gram[i][j])
		}
		bound = max(bound, sum)
	}
	step := 1 / (float64(p.Classes) * (bound + 1e-9)) // each b moves two vectors
	// alpha[i][m] = b_i at y, -b_im at others; gradient of D in b_im: 1 - (w_y - w_m).x_i.
	scores := func(b [][]float64) [][]float64 {
		s := make([][]float64, n)
		alpha := make([][]float64, n)
		for i, y := range p.Class {
			alpha[i] = make([]float64, p.Classes)
			for m, v := range b[i] {
				if m != int(y) {
					alpha[i][m] -= v
					alpha[i][y] += v
				}
			}
		}
		for i := range s {
			s[i] = make([]float64, p.Classes)
			for j := range n {
				for m, a := range alpha[j] {
					s[i][m] += gram[i][j] * a
				}
			}
		}
		return s
	}
	dual := func(b [][]float64) (d float64) {
		s := scores(b)
		for i, y := range p.Class {
			for m, v := range b[i] {
				if m != int(y) {
					d += v - v*(s[i][y]-s[i][m])/2
				}
			}
		}
		return d
	}
	b, ahead := make([][]float64, n), make([][]float64, n)
	for i := range b {
		b[i], ahead[i] = make([]float64, p.Classes), make([]float64, p.Classes)
	}
	t, best := 1.0, 0.0
	for round := range rounds {
		s := scores(ahead)
		next := make([][]float64, n)
		for i, y := range p.Class {
			next[i] = make([]float64, p.Classes)
			for m := range next[i] {
				if m != int(y) {
					next[i][m] = ahead[i][m] + step*(1-s[i][y]+s[i][m])
				}
			}
			projected(next[i], int(y), p.Rows.RowC(i))
		}
		after := (1 + math.Sqrt(1+4*t*t)) / 2
		for i := range b {
			for m := range b[i] {
				ahead[i][m] = next[i][m] + (t-1)/after*(next[i][m]-b[i][m])
			}
		}
		b, t = next, after
		if round%50 == 49 {
			if d := dual(b); d < best {
				t = 1
			} else {
				best = d
			}
		}
	}
	return dual(b)
}

// projected is the nearest point of the simplex, entry y left out.
func projected(b []float64, y int, c float64) {
	at := func(shift float64) (sum float64) {
		for m, v := range b {
			if m != y {
				sum += max(v-shift, 0)
			}
		}
		return sum
	}
	low, high := 0.0, 0.0
	if at(0) > c {
		high = slices.Max(b)
		for range 100 {
			if mid := (low + high) / 2; at(mid) > c {
				low = mid
			} else {
				high = mid
			}
		}
	}
	for m := range b {
		if b[m] = max(b[m]-high, 0); m == y {
			b[m] = 0
		}
	}
}

// layouts returns solvers with the vectors in the layout for few classes, and in that for many.
func (p *Problem) layouts() []*Solver { return []*Solver{p.NewSolver(), p.NewSolver().apart()} }

// run solves to a gap and checks the certificate of each sweep.
func run(t *testing.T, s *Solver, gap float64) *State {
	t.Helper()
	var st *State
	last := math.Inf(-1)
	for sweep := range 400 {
		next, sums, err := s.Solve(context.Background(), st, Options{Gap: gap, MaxEpochs: 300, Seed: uint64(sweep)})
		if err != nil {
			t.Fatal(err)
		}
		if sums.Dual > sums.Primal*(1+1e-12) || sums.Dual < last-1e-9*math.Abs(last) ||
			math.Abs(next.Primal-sums.Primal) > 1e-3*sums.Primal || next.Dual != sums.Dual {
			t.Fatalf("sweep %d: P %.15g, D %.15g after %.15g", sweep, sums.Primal, sums.Dual, last)
		}
		if st, last = next, sums.Dual; sums.Primal-sums.Dual <= gap*sums.Primal {
			return st
		}
	}
	t.Fatalf("gap %g of %g", (st.Primal-st.Dual)/st.Primal, gap)
	return nil
}

// dense returns the weights as they are written or, if exact is set, the vectors themselves.
func dense(p *Problem, st *State, exact bool) [][]float64 {
	s := p.NewSolver()
	w := make([][]float64, p.Classes)
	for m, v := range s.Weights(st) {
		w[m] = make([]float64, s.width)
		for k, f := range v.Feature {
			w[m][f] = float64(v.Value[k])
		}
		for f := range w[m] {
			if exact {
				w[m][f] = s.w[f*s.step+m*s.classStride]
			}
		}
	}
	return w
}

// TestOptimum compares P and D with their definitions. The twin's optimum must lie between them,
// with few and many classes, with and without a bias, and with weights.
func TestOptimum(t *testing.T) {
	for _, p := range []*Problem{
		small(1, 60, 9, 4, 1, 1), small(2, 60, 9, 4, 0.05, 0), small(3, 40, 9, 5, 20, 1), small(4, 60, 9, 2, 1, 2).weigh(),
		small(5, 50, 30, 20, 3, 0).weigh(),
	} {
		const gap = 1e-6
		best := p.twin(2500)
		for _, s := range p.layouts() {
			st := run(t, s, gap)
			if got := p.primal(dense(p, st, false)); math.Abs(got-st.Primal) > 1e-9*got {
				t.Errorf("%d classes: P %.12g, that of the weights is %.12g", p.Classes, st.Primal, got)
			}
			if best > st.Primal*(1+1e-9) || best < st.Dual*(1-1e-5) || st.Dual > best*(1+1e-5) {
				t.Errorf("%d classes: P %.10g, D %.10g, the twin's D %.10g", p.Classes, st.Primal, st.Dual, best)
			}
		}
	}
}

// apart switches to the layout for many classes, with one vector per class.
func (s *Solver) apart() *Solver {
	s.step, s.classStride, s.scorer = 1, s.width, s.p.Rows.NewScorer()
	return s
}

// TestRounding checks that P is that of the vectors themselves if rounding the weights to float32
// costs more than the requested gap, and otherwise that of the weights as they are written.
func TestRounding(t *testing.T) {
	p := noise(1, 40, 5, 4, 1000, 1)
	for _, s := range p.layouts() {
		st := run(t, s, 1e-10)
		written, exact := p.primal(dense(p, st, false)), p.primal(dense(p, st, true))
		if written-st.Dual <= 1e-10*written || math.Abs(exact-st.Primal) > 1e-12*exact {
			t.Errorf("P %.15g, as written %.15g, of the vectors %.15g, D %.15g", st.Primal, written, exact, st.Dual)
		}
	}
}

// TestLayouts checks that both layouts give the same duals, up to rounding.
func TestLayouts(t *testing.T) {
	p := small(6, 100, 20, 9, 1, 1)
	a, b := p.NewSolver(), p.NewSolver()
	b.apart()
	var st [2]*State
	for k, s := range []*Solver{a, b} {
		for sweep := range 20 {
			next, _, err := s.Solve(context.Background(), st[k], Options{Gap: 1e-7, MaxEpochs: 100, Seed: uint64(sweep)})
			if err != nil {
				t.Fatal(err)
			}
			st[k] = next
		}
		for m, w := range s.Weights(st[k]) {
			if !slices.IsSorted(w.Feature) || len(w.Feature) == 0 || int(w.Feature[len(w.Feature)-1]) != p.Rows.X.Cols {
				t.Errorf("class %d has weights at %v", m, w.Feature)
			}
		}
	}
	if math.Abs(st[0].Dual-st[1].Dual) > 1e-6*st[0].Dual || math.Abs(st[0].Primal-st[1].Primal) > 1e-5*st[0].Primal {
		t.Errorf("P %.12g and %.12g, D %.12g and %.12g", st[0].Primal, st[1].Primal, st[0].Dual, st[1].Dual)
	}
	if big := small(6, 10, 5, interleaved+1, 1, 1).NewSolver(); big.classStride != big.width || a.classStride != 1 {
		t.Error("the layouts are not those of few classes and of many")
	}
}

// TestGoesOn checks that a solve does not depend on the solver's earlier solves.
func TestGoesOn(t *testing.T) {
	p := small(8, 200, 30, 7, 1, 1)
	s, o := p.NewSolver(), Options{Gap: 1e-9, MaxEpochs: 3}
	first, _, err := s.Solve(context.Background(), nil, o)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := s.Solve(context.Background(), first, o)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := p.NewSolver().Solve(context.Background(), first, o)
	if err != nil || !reflect.DeepEqual(second, again) {
		t.Errorf("another solver gets to other duals: %v", err)
	}
	for _, st := range []*State{first, second} {
		for i := range p.Class {
			class := st.Class[st.Begin[i]:st.Begin[i+1]]
			if !slices.IsSorted(class) || slices.Contains(class, uint32(p.Class[i])) {
				t.Fatalf("row %d of class %d looks at %v", i, p.Class[i], class)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := s.Solve(ctx, first, o); err == nil {
		t.Error("a cancelled solve goes on")
	}
}

// TestKernels checks that all kernels give equal bits, over one line of classes and several,
// including extrapolation.
func TestKernels(t *testing.T) {
	for _, p := range []*Problem{small(14, 90, 12, 3, 1, 1), small(15, 90, 12, 20, 50, 0).weigh(),
		small(16, 90, 40, 33, 10, 2), small(17, 90, 9, 70, 1, 1)} {
		var first []string
		for _, k := range mapper.Kernels() {
			p.Rows.Kernel = k
			s := p.NewSolver()
			var st *State
			var got []string
			for sweep := range 3 {
				next, sums, err := s.Solve(context.Background(), st, Options{Gap: 1e-6, MaxEpochs: 40, Seed: uint64(sweep)})
				if err != nil {
					t.Fatal(err)
				}
				st = next
				got = append(got, fmt.Sprintf("%x %v", sums, st))
			}
			if first == nil {
				first = got
			} else if !slices.Equal(got, first) {
				t.Errorf("%d classes: kernel %v differs", p.Classes, k)
			}
		}
	}
}

// TestManyClasses checks that, with more classes than the initial working sets have, the working
// sets find the relevant classes.
func TestManyClasses(t *testing.T) {
	p := small(9, 300, 60, 45, 2, 1)
	st := run(t, p.NewSolver().apart(), 1e-4)
	if got := p.primal(dense(p, st, false)); math.Abs(got-st.Primal) > 1e-9*got {
		t.Errorf("P %.12g, that of the weights is %.12g", st.Primal, got)
	}
}

// TestStart checks that different rows of a class begin with different classes, and that all
// classes occur.
func TestStart(t *testing.T) {
	p := small(10, 200, 9, 3*startClasses, 1, 1)
	st, seen := p.start(), map[uint32]bool{}
	for i := range p.Class {
		class := st.Class[st.Begin[i]:st.Begin[i+1]]
		if len(slices.Compact(slices.Clone(class))) != startClasses || slices.Contains(class, uint32(p.Class[i])) {
			t.Fatalf("row %d of class %d: %v", i, p.Class[i], class)
		}
		for _, m := range class {
			seen[m] = true
		}
	}
	if len(seen) != p.Classes {
		t.Errorf("%d of %d classes", len(seen), p.Classes)
	}
}

// TestCarry checks that converted duals satisfy the bounds of the new C, and are better than none.
func TestCarry(t *testing.T) {
	for _, to := range []float64{0.1, 10} {
		p := small(11, 200, 30, 7, 1, 1)
		st := run(t, p.NewSolver(), 1e-3)
		before := st.Dual
		st.Carry(1, to, false)
		q := small(11, 200, 30, 7, to, 1)
		for i := range q.Class {
			sum := 0.0 // at most C
			for _, b := range st.Value[st.Begin[i]:st.Begin[i+1]] {
				sum += b
			}
			if sum > to*(1+1e-12) {
				t.Fatalf("row %d: duals add up to %g of %g", i, sum, to)
			}
		}
		next, sums, err := q.NewSolver().Solve(context.Background(), st, Options{Gap: 0.1})
		if err != nil || sums.Epochs != 0 || next.Dual < min(before, 0.5*run(t, q.NewSolver(), 1e-3).Dual) {
			t.Errorf("to %g: %+v, %v; before %g", to, sums, err, before)
		}
	}
}

// TestPriced checks that working sets have all classes with a loss, unless there are many, and
// those close to one.
func TestPriced(t *testing.T) {
	p := small(12, 300, 20, 12, 1, 1)
	st, _, err := p.NewSolver().apart().Solve(context.Background(), nil, Options{Gap: 0.1, MaxEpochs: 2})
	if err != nil {
		t.Fatal(err)
	}
	w := dense(p, st, false)
	for i, y := range p.Class {
		x, total, least := p.row(i), 0.0, math.Inf(1)
		in := map[int]float64{}
		for k := st.Begin[i]; k < st.Begin[i+1]; k++ {
			in[int(st.Class[k])] = st.Value[k]
			if b := st.Value[k]; b > 0 {
				total += b
				least = min(least, 1+product(w[st.Class[k]], x))
			}
		}
		if total < p.Rows.RowC(i) {
			least = min(least, product(w[y], x))
		}
		for m := range w {
			g := 1 + product(w[m], x)
			if _, there := in[m]; m != int(y) && p.Rows.Norm(i) > 0 && (g > least-band+1e-4 && !there || g < least-band-1e-4 &&
				there && in[m] == 0) {
				t.Errorf("row %d, class %d: G %g, least %g, in the working set: %t", i, m, g, least, there)
			}
		}
	}
}

func BenchmarkSolve(b *testing.B) {
	p := small(1, 400, 30, 12, 1, 1)
	s := p.NewSolver()
	for b.Loop() {
		if _, _, err := s.Solve(context.Background(), nil, Options{Gap: 1e-3, MaxEpochs: 100}); err != nil {
			b.Fatal(err)
		}
	}
}
