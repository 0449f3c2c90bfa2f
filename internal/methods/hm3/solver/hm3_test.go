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

// small generates a problem over a tree of five nodes: instances of any length, one of them zero,
// and labels that are unions of partial paths, including the empty one.
func small(t testing.TB, seed uint64, loss string, virtual bool) *Problem {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	parent := []int32{-1, 0, 1, 1, 0}
	const rows, cols = 14, 5
	index, value, on := make([][]uint32, rows), make([][]float32, rows), make([][]int32, rows)
	for i := range rows {
		for f := range uint32(cols) {
			if i > 0 && r.IntN(2) == 0 {
				index[i], value[i] = append(index[i], f), append(value[i], float32(2*r.NormFloat64()))
			}
		}
		in := make([]bool, len(parent))
		for j, up := range parent {
			if in[j] = (up < 0 || in[up]) && r.IntN(3) > 0; in[j] {
				on[i] = append(on[i], int32(j))
			}
		}
	}
	x := mapper.NewProblem(sparse.FromRows(cols, index, value), mapper.Hinge, 0.8, 0.5)
	for i := range rows {
		x.Weight = append(x.Weight, 0.5+float64(i%3))
	}
	p, err := NewProblem(x, parent, virtual, loss, on)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// twin is a reference solver with one variable a for each of the 2^nodes labelings of each
// instance, and explicit joint feature vectors.
type twin struct {
	p *Problem
	a [][]float64
	w []float64

	joint map[[2]uint64][]float64
}

func newTwin(p *Problem) *twin {
	v := &twin{p: p, joint: map[[2]uint64][]float64{}, w: make([]float64, 4*len(p.Parent)*(p.Rows.X.Cols+1))}
	for range p.On {
		v.a = append(v.a, make([]float64, 1<<len(p.Parent)))
	}
	return v
}

// phi returns phi(x_i, y), which has a block for each edge and labeling.
func (v *twin) phi(i int, y uint64) []float64 {
	at := [2]uint64{uint64(i), y}
	if out := v.joint[at]; out != nil {
		return out
	}
	out := make([]float64, len(v.w))
	v.joint[at] = out
	width := v.p.Rows.X.Cols + 1
	index, value := v.p.Rows.X.Row(i)
	for j, up := range v.p.Parent {
		if up < 0 {
			continue
		}
		block := out[(4*j+int(2*(y>>up&1)+y>>j&1))*width:]
		for k, f := range index {
			block[f] = float64(value[k])
		}
		block[width-1] = float64(v.p.Rows.Bias)
	}
	return out
}

// paperLoss computes the losses of [JMLR] 2.1 as they are stated.
func (v *twin) paperLoss(loss string, virtual bool, y, u uint64) (sum float64) {
	n := len(v.p.Parent)
	below := func(j int) (size float64) {
		for k := range n {
			for at := int32(k); at >= 0; at = v.p.Parent[at] {
				if at == int32(j) {
					size++
				}
			}
		}
		return size
	}
	for j, up := range v.p.Parent {
		if y>>j&1 == u>>j&1 || virtual && up < 0 {
			continue
		}
		if loss != "delta" && up >= 0 && !(virtual && up == 0) && y>>up&1 != u>>up&1 {
			continue
		}
		c := 1.0
		switch loss {
		case "sibl":
			for at := j; v.p.Parent[at] >= 0; at = int(v.p.Parent[at]) {
				siblings := 0.0
				for _, q := range v.p.Parent {
					if q == v.p.Parent[at] {
						siblings++
					}
				}
				c /= siblings
			}
		case "subtree":
			total := float64(n)
			if virtual {
				total--
			}
			c = below(j) / total
		}
		sum += c
	}
	return sum
}

// bound returns D and the gap. It sets best to each instance's labeling with the largest gradient.
func (v *twin) bound(loss func(y, u uint64) float64) (dual, gap float64) {
	dual = -product(v.w, v.w) / 2
	for i, a := range v.a {
		y, most, mine := v.p.On[i][0], 0.0, 0.0
		true_ := product(v.w, v.phi(i, y))
		for u := range a {
			h := loss(y, uint64(u)) - true_ + product(v.w, v.phi(i, uint64(u)))
			most, mine = max(most, h), mine+a[u]*h
			dual += a[u] * loss(y, uint64(u))
		}
		gap += v.p.Rows.RowC(i)*most - mine
	}
	return dual, gap
}

// ascend moves mass between the labelings of one instance: if paper is set by Algorithm 2, from all
// labelings in proportion, and otherwise from the labeling with the smallest gradient.
func (v *twin) ascend(i int, paper bool, loss func(y, u uint64) float64) {
	y, c := v.p.On[i][0], v.p.Rows.RowC(i)
	a := v.a[i]
	rest := c
	to, from, high, low := int(y), int(y), 0.0, math.Inf(1)
	truth := v.phi(i, y)
	own := product(v.w, truth)
	mine := 0.0
	for u := range a {
		rest -= a[u]
		h := loss(y, uint64(u)) - own + product(v.w, v.phi(i, uint64(u)))
		mine += a[u] * h
		if h > high {
			to, high = u, h
		}
		if a[u] > 0 && h < low {
			from, low = u, h
		}
	}
	if rest > 1e-12*c && low > 0 {
		from, low = int(y), 0
	}
	d := make([]float64, len(v.w))
	step, q := 0.0, 0.0
	if paper {
		for u := range a { // mu* - mu, in terms of a
			by := -a[u]
			if u == to && to != int(y) {
				by += c
			}
			for k, x := range v.phi(i, uint64(u)) {
				d[k] += by * (truth[k] - x)
			}
		}
		step, q = 1, c*high-mine
	} else {
		for k, x := range v.phi(i, uint64(to)) {
			d[k] = truth[k] - x
		}
		for k, x := range v.phi(i, uint64(from)) {
			d[k] -= truth[k] - x
		}
		if step, q = a[from], high-low; from == int(y) {
			step = rest
		}
	}
	if curve := product(d, d); curve > 0 {
		step = min(step, max(q/curve, 0))
	}
	for k := range d {
		v.w[k] += step * d[k]
	}
	if paper {
		for u := range a {
			a[u] *= 1 - step
		}
		if to != int(y) {
			a[to] += step * c
		}
		return
	}
	if to != int(y) {
		a[to] += step
	}
	if from != int(y) {
		a[from] -= step
	}
}

// TestOptimum compares, for each loss of the paper, the dual optimum with that of a plain solver
// over all labelings. The paper's own steps approach it from below, D never decreases from solve to
// solve, and P - D is the sum of the instances' gaps.
func TestOptimum(t *testing.T) {
	for n, name := range append(slices.Clone(Losses), "delta", "sibl", "subtree") {
		virtual := n >= 4
		t.Run(fmt.Sprint(name, virtual), func(t *testing.T) {
			p := small(t, uint64(n), name, virtual)
			v, paper := newTwin(p), newTwin(p)
			loss := func(y, u uint64) float64 { return v.paperLoss(name, virtual, y, u) }
			for y := range uint64(32) {
				for u := range uint64(32) {
					if got := p.loss([]uint64{y}, []uint64{u}); math.Abs(got-loss(y, u)) > 1e-12 {
						t.Fatalf("loss of %b for %b: %g, want %g", u, y, got, loss(y, u))
					}
				}
			}
			gap := math.Inf(1)
			for round := 0; round < 3000 && gap > 1e-9; round++ {
				for i := range v.a {
					v.ascend(i, false, loss)
				}
				if round%20 == 0 {
					_, gap = v.bound(loss)
				}
			}
			want, gap := v.bound(loss)
			if gap > 1e-8*want {
				t.Fatalf("the twin's gap is %g of %g", gap, want)
			}
			for range 150 {
				for i := range v.a {
					paper.ascend(i, true, loss)
				}
			}
			if d, gap := paper.bound(loss); d > want*(1+1e-9) || d < 0.97*want || gap < 0 {
				t.Errorf("the paper's steps reach %g with a gap of %g, the optimum is %g", d, gap, want)
			}
			s := p.NewSolver()
			var st *State
			last := 0.0
			for sweep := range 40 {
				var sums Sums
				var err error
				if st, sums, err = s.Solve(context.Background(), st, Options{Gap: 1e-9, MaxEpochs: 300,
					Seed: uint64(sweep)}); err != nil {
					t.Fatal(err)
				}
				if sums.Dual < last-1e-9*want || sums.Dual > want+1e-8*want || sums.Primal < want*(1-1e-9) {
					t.Errorf("sweep %d: D %.12g after %.12g, P %.12g; the optimum is %.12g", sweep, sums.Dual, last, sums.Primal, want)
				}
				if last = sums.Dual; sums.Primal-sums.Dual <= 1e-8*sums.Primal {
					break
				}
			}
			if math.Abs(last-want) > 1e-7*want {
				t.Errorf("D %.12g, want %.12g", last, want)
			}
			checkMarginals(t, p, s, st)
			checkPrediction(t, p, s, st, v)
		})
	}
}

// checkMarginals checks the constraints of eq. 8, as corrected: edges agree at the nodes that they
// share, including the root, and each edge has the mass C.
func checkMarginals(t *testing.T, p *Problem, s *Solver, st *State) {
	t.Helper()
	s.open(st)
	for i, mu := range s.mu {
		at := [][2]float64{{mu[0], mu[1]}}
		for j, up := range p.Parent[1:] {
			e := mu[4*(j+1):][:4]
			at = append(at, [2]float64{e[0] + e[2], e[1] + e[3]})
			if slices.Min(e) < 0 || math.Abs(e[0]+e[1]+e[2]+e[3]-p.Rows.RowC(i)) > 1e-12 ||
				math.Abs(e[2]+e[3]-at[up][1]) > 1e-12 {
				t.Errorf("row %d, edge %d: marginals %v, the node above has %v", i, j+1, e, at[up])
			}
		}
	}
}

// checkPrediction checks that the sums of the nodes' vectors order the unions of partial paths as
// w.phi does.
func checkPrediction(t *testing.T, p *Problem, s *Solver, st *State, v *twin) {
	t.Helper()
	w := s.Weights(st)
	for i := range p.On {
		x := make([]float64, p.Rows.X.Cols+1)
		index, value := p.Rows.X.Row(i)
		for k, f := range index {
			x[f] = float64(value[k])
		}
		x[len(x)-1] = float64(p.Rows.Bias)
		empty := product(v.w, v.phi(i, 0))
		for y := range uint64(32) {
			sum, consistent := 0.0, true
			for j, up := range p.Parent {
				if y>>j&1 == 0 {
					continue
				}
				consistent = consistent && (up < 0 || y>>up&1 == 1)
				for k, f := range w[j].Feature {
					sum += float64(w[j].Value[k]) * x[f]
				}
			}
			if want := product(v.w, v.phi(i, y)) - empty; consistent && math.Abs(sum-want) > 1e-3*(1+math.Abs(want)) {
				t.Errorf("row %d, labeling %b: %g, want %g", i, y, sum, want)
			}
		}
	}
}

// loss returns l(y, u).
func (p *Problem) loss(y, u []uint64) (sum float64) {
	for j, up := range p.Parent {
		a := 0
		if up >= 0 {
			a = bit(u, up)
		}
		sum += p.cost(y, int32(j), a, bit(u, int32(j)))
	}
	return sum
}

// TestDirection checks that the dynamic programme finds the best of all labelings ([JMLR] 3.4), and
// that the mean of marginals concentrated on one labeling is that labeling's.
func TestDirection(t *testing.T) {
	p := small(t, 3, "sibl", false)
	s := p.NewSolver()
	r := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		for k := range s.s {
			s.s[k] = r.NormFloat64()
		}
		for _, truth := range p.On {
			of := func(u uint64) (sum float64) {
				y := []uint64{u}
				for j := range p.Parent[1:] {
					sum += s.s[p.place(y, int32(j)+1)]
				}
				return sum + p.loss(truth, y)
			}
			at, most := r.Uint64N(32), math.Inf(-1)
			mu := make([]float64, 4*len(p.Parent))
			for j := range p.Parent {
				mu[p.place([]uint64{at}, int32(j))] = 2
			}
			for u := range uint64(32) {
				most = max(most, of(u))
			}
			s.below(truth, mu, 0)
			if got, mean := s.highest(truth, mu); math.Abs(got-most) > 1e-12 || math.Abs(mean-2*of(at)) > 1e-12 {
				t.Fatalf("%g and %g, want %g and %g", got, mean, most, 2*of(at))
			}
		}
	}
}

// TestRepeats checks that the same seed gives the same bits, from the start and from an
// intermediate state.
func TestRepeats(t *testing.T) {
	p := small(t, 5, "unif", false)
	var states [2]*State
	for k := range states {
		s := p.NewSolver()
		for sweep := range 3 {
			var err error
			if k == 1 {
				s = p.NewSolver()
			}
			if states[k], _, err = s.Solve(context.Background(), states[k], Options{Gap: 1e-6, MaxEpochs: 3,
				Seed: uint64(sweep)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !reflect.DeepEqual(states[0], states[1]) {
		t.Error("two solvers differ")
	}
	states[0].Carry(1, 0.25)
	if a, b := states[0].Rows[2].Value[0], states[1].Rows[2].Value[0]; a != b/4 {
		t.Errorf("a dual of %g is carried to %g", b, a)
	}
	if _, err := NewProblem(p.Rows, p.Parent, false, "zero-one", nil); err == nil {
		t.Error("a loss that does not decompose is taken")
	}
}

// TestTight solves rows that constrain each other, including equal rows with different labels, at a
// large C. A pass hardly raises D there, because the masses of such rows have to grow together, and
// the instances' gaps at their visits do not predict P - D. The expected optimum is that of a
// quadratic programme with a constraint for each labeling (test/solvers, case 55 of hm3).
func TestTight(t *testing.T) {
	rows := [][]float32{{0.21875, -0.96875, 0.625}, {0.25, 0, -0.84375}, {0.25, 0, -0.84375}, {-0.09375, 0.6875, -0.1875},
		{0.21875, -0.96875, 0.625}, {0.4375, -0.0625, -0.34375}, {-0.375, 0.1875, 0}}
	on := [][]int32{{0, 1}, {0, 2}, {0, 1}, {0, 2}, {0, 1, 2}, {0, 2}, {0, 2}}
	index := make([][]uint32, len(rows))
	for i := range index {
		index[i] = []uint32{0, 1, 2}
	}
	p, err := NewProblem(mapper.NewProblem(sparse.FromRows(3, index, rows), mapper.Hinge, 1000, 1), []int32{-1, 0, 0},
		false, "subtree", on)
	if err != nil {
		t.Fatal(err)
	}
	var st *State
	var sums Sums
	for sweep := 0; sweep < 12 && (sweep == 0 || sums.Primal-sums.Dual > 1e-6*sums.Primal); sweep++ {
		if st, sums, err = p.NewSolver().Solve(context.Background(), st, Options{Gap: 1e-6, MaxEpochs: 300,
			Seed: uint64(sweep)}); err != nil {
			t.Fatal(err)
		}
	}
	if want := 2000.28845; math.Abs(sums.Primal-want) > 1e-4*want || math.Abs(sums.Dual-want) > 1e-4*want {
		t.Errorf("P %g, D %g after twelve sweeps, want %g", sums.Primal, sums.Dual, want)
	}
}

func BenchmarkSolve(b *testing.B) {
	p := small(b, 1, "delta", false)
	s := p.NewSolver()
	for b.Loop() {
		if _, _, err := s.Solve(context.Background(), nil, Options{Gap: 1e-4, MaxEpochs: 100}); err != nil {
			b.Fatal(err)
		}
	}
}
