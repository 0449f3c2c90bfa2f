package solver

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"taxon/internal/linalg/sparse"
)

// sample draws rows over some columns, of which one never occurs, with a bias and weights.
func sample(seed uint64, rows, cols int, weights bool) Rows {
	r := rand.New(rand.NewPCG(seed, 1))
	index, value := make([][]uint32, rows), make([][]float32, rows)
	for i := range rows {
		for f := range uint32(cols) {
			if f != 3 && i > 0 && r.IntN(2) == 0 {
				index[i], value[i] = append(index[i], f), append(value[i], float32(r.NormFloat64()))
			}
		}
	}
	out := Rows{X: sparse.FromRows(cols, index, value), Bias: []float64{0, 1.5}[seed%2]}
	for i := 0; weights && i < rows; i++ {
		out.Weight = append(out.Weight, 0.2+2*r.Float64())
	}
	return out
}

func (r Rows) dense(i int) []float64 {
	x := make([]float64, r.Columns())
	index, value := r.X.Row(i)
	for k, f := range index {
		x[f] = float64(value[k])
	}
	if r.Bias > 0 {
		x[r.X.Cols] = r.Bias
	}
	return x
}

// posterior is a lane's negative log posterior by its definition.
func posterior(r Rows, b *Block, l int, w []float64) (sum float64) {
	for f, x := range w {
		above := 0.0
		if b.Above[l] != nil {
			above = b.Above[l][f]
		}
		sum += b.Precision[l].At(f) * (x - above) * (x - above) / 2
	}
	positive := map[int]bool{}
	for _, i := range b.Positive[l] {
		positive[int(i)] = true
	}
	for i := range r.X.Rows {
		z := 0.0
		for f, x := range r.dense(i) {
			z += w[f] * x
		}
		if positive[i] {
			z = -z
		}
		sum += r.WeightOf(i) * math.Log1p(math.Exp(z))
	}
	return sum
}

func leaves(seed uint64, r Rows, lanes int) *Block {
	rnd, b := rand.New(rand.NewPCG(seed, 2)), &Block{}
	for l := range lanes {
		var rows []uint32
		for i := range uint32(r.X.Rows) {
			if rnd.IntN(lanes) == 0 || int(i) == l {
				rows = append(rows, i)
			}
		}
		b.Positive = append(b.Positive, rows)
		prec := Precision{Value: []float64{math.Exp(2 * rnd.NormFloat64())}}
		above := make([]float64, r.Columns())
		for f := range above {
			above[f] = rnd.NormFloat64()
		}
		if l%2 == 1 { // M2: by feature
			prec = Precision{Value: make([]float64, r.Columns()), Step: 1}
			for f := range prec.Value {
				prec.Value[f] = math.Exp(3 * rnd.NormFloat64())
			}
		}
		if l == 2 {
			above = nil
		}
		b.Above, b.Precision = append(b.Above, above), append(b.Precision, prec)
	}
	return b
}

// TestPaperEq7 checks that a leaf's mean is the maximum of its posterior: by finite differences,
// the slope in every coordinate is 0. Its variance is 1/(sum_x x^2 p(1-p) + A). It starts from zero
// and from afar, with one lane and with sixteen.
func TestPaperEq7(t *testing.T) {
	for seed := range uint64(8) {
		r := sample(seed, 30, 7, seed%4 > 1)
		b := leaves(seed, r, []int{1, 3, 16, 5}[seed%4])
		lanes, s := len(b.Positive), &Scratch{}
		w := make([]float64, r.Columns()*lanes)
		for i := range w {
			w[i] = 40 * float64(seed%3) * rand.New(rand.NewPCG(seed, uint64(i))).NormFloat64()
		}
		s.Open(r, b)
		out, err := s.Solve(context.Background(), r, w, 1e-13)
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for l := range lanes {
			own := make([]float64, r.Columns())
			for f := range own {
				own[f] = w[f*lanes+l]
			}
			best := posterior(r, b, l, own)
			total += best
			for f := range own {
				const h = 1e-5
				old := own[f]
				own[f] = old + h
				up := posterior(r, b, l, own)
				own[f] = old - h
				down := posterior(r, b, l, own)
				own[f] = old
				curvature := (up + down - 2*best) / (h * h)
				if slope := (up - down) / (2 * h); math.Abs(slope) > 1e-6*(1+math.Abs(best)) {
					t.Errorf("seed %d lane %d column %d: slope %g", seed, l, f, slope)
				}
				if got := 1 / s.Variance(f, l); math.Abs(got-curvature) > 1e-3*(1+got) {
					t.Errorf("seed %d lane %d column %d: 1/variance %g, by differences %g", seed, l, f, got, curvature)
				}
			}
		}
		if math.Abs(out.Objective-total) > 1e-9*total {
			t.Errorf("seed %d: objective %.12g, by its definition %.12g", seed, out.Objective, total)
		}
	}
}

// TestCurvatureMajorises checks that h as a diagonal bounds the loss's Hessian: x'Hx <= x'diag(h)x.
func TestCurvatureMajorises(t *testing.T) {
	r := sample(3, 40, 7, true)
	b := leaves(3, r, 3)
	lanes, s := 3, &Scratch{}
	w, bound := make([]float64, r.Columns()*lanes), make([]float64, r.Columns()*lanes)
	s.Open(r, b)
	s.Evaluate(r, w)
	s.Curvature(r, bound)
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		v := make([]float64, r.Columns())
		most := 0.0
		for f := range v {
			v[f] = rnd.NormFloat64()
			most += v[f] * v[f] * bound[f*lanes]
		}
		got := 0.0
		for i := range r.X.Rows {
			z := 0.0
			for f, x := range r.dense(i) {
				z += v[f] * x
			}
			got += r.WeightOf(i) * z * z / 4 // p(1-p) at w = 0
		}
		if got > most*(1+1e-12) {
			t.Fatalf("%g above its bound %g", got, most)
		}
	}
}

// forest is a tree with chains, an only child and leaves of several depths.
func forest() *Tree {
	return NewTree([]int32{-1, 0, 1, 1, 0, 4, 5, 5, 0}, []bool{false, false, true, true, false, false, true, true, true})
}

func randomAlpha(t *Tree, v Variant, columns int, r *rand.Rand) Alpha {
	n := len(t.Parent)
	if v == M2 {
		n = len(t.Nodes) * columns
	}
	a := make(Alpha, n)
	for i := range a {
		a[i] = math.Exp(r.NormFloat64())
	}
	return a
}

// TestPaperEq5 checks that at given leaves, with curvature that does not relax them (K = sum A_c),
// the internals' means solve Psi^-1 mu_n = A_n mu_parent + sum_c A_c mu_c all at once, and that
// Average keeps them. Psi_n is 1/(A_n + sum_c A_c).
func TestPaperEq5(t *testing.T) {
	const columns = 4
	for _, v := range []Variant{M1, M2, M3} {
		tree, r := forest(), rand.New(rand.NewPCG(uint64(v), 8))
		a := randomAlpha(tree, v, columns, r)
		mu := make([][]float64, len(tree.Parent))
		m, contribution := make([]float64, len(tree.Nodes)*columns), NewContribution(v, len(tree.Nodes)*columns)
		for i := range m {
			m[i] = r.NormFloat64()
		}
		for n := range mu {
			mu[n] = make([]float64, columns)
			for j := range mu[n] {
				mu[n][j] = r.NormFloat64()
				if up := tree.above(int32(n)); tree.Leaf[n] {
					at, prec := int(up)*columns+j, tree.Precision(v, a, int32(n), columns).At(j)
					contribution.Slope[at] += prec * (mu[n][j] - m[at])
					contribution.Curvature[at] += prec
				}
			}
		}
		got := tree.Solve(v, a, m, contribution, 1, columns)
		for i, n := range tree.Nodes {
			mu[n] = got[i*columns:][:columns]
		}
		for i, n := range tree.Nodes {
			for j := range columns {
				prec := tree.Precision(v, a, n, columns).At(j)
				sum := 0.0
				if up := tree.Parent[n]; up >= 0 {
					sum = prec * mu[up][j]
				}
				for _, c := range tree.Children[n] {
					k := tree.Precision(v, a, c, columns).At(j)
					prec += k
					sum += k * mu[c][j]
				}
				if want := sum / prec; math.Abs(got[i*columns+j]-want) > 1e-12 {
					t.Errorf("M%d node %d column %d: mean %g, want %g", v, n, j, got[i*columns+j], want)
				}
				if variance := tree.Variance(v, a, n, columns, j); math.Abs(variance-1/prec) > 1e-12 {
					t.Errorf("M%d node %d: Psi %g, want %g", v, n, variance, 1/prec)
				}
			}
		}
		// The slope of the same leaves at the means found.
		for i, n := range tree.Nodes {
			for j := range columns {
				contribution.Slope[i*columns+j] = 0
				for _, c := range tree.Children[n] {
					if tree.Leaf[c] {
						contribution.Slope[i*columns+j] += tree.Precision(v, a, c, columns).At(j) * (mu[c][j] - got[i*columns+j])
					}
				}
			}
		}
		still := append([]float64{}, got...)
		tree.Average(v, a, still, contribution, columns, func(int32) bool { return true })
		for i := range still {
			if math.Abs(still[i]-got[i]) > 1e-12 {
				t.Errorf("M%d: Average moves %g to %g", v, got[i], still[i])
			}
		}
	}
}

// TestShare checks that with half of the leaves' curvature the internals reach the same means as
// with all of it, in fewer steps, if the leaves' loss is curved in one direction only, where the
// row sums are exact.
func TestShare(t *testing.T) {
	const columns, leaves = 3, 4
	tree := NewTree([]int32{-1, 0, 1, 1, 1, 1}, []bool{false, false, true, true, true, true})
	a := Alpha{0, 0.5, 20, 40, 10, 30}
	r := rand.New(rand.NewPCG(4, 9))
	var bend, goal [leaves][columns]float64 // loss of leaf l: 1/2 (bend.(w-goal))^2
	for l := range leaves {
		for j := range columns {
			bend[l][j], goal[l][j] = 5*r.Float64(), r.NormFloat64()
		}
	}
	settle := func(share float64) (m []float64, steps int) {
		m = make([]float64, 2*columns)
		for change := 1.0; change > 1e-12 && steps < 5000; steps++ {
			c := NewContribution(M3, 2*columns)
			for l := range leaves {
				prec, z, square, sum := a[2+l], 0.0, 0.0, 0.0
				for j, u := range bend[l] {
					z += u * (goal[l][j] - m[columns+j])
					square += u * u
					sum += u
				}
				for j, u := range bend[l] { // w - m = u z / (A + u.u)
					c.Add(columns+j, prec, u*z/(prec+square), u*sum, 0)
				}
			}
			next := tree.Solve(M3, a, m, c, share, columns)
			change = 0
			for i, x := range next {
				change = max(change, math.Abs(x-m[i]))
			}
			m = next
		}
		return m, steps
	}
	want, all := settle(1)
	got, half := settle(0.5)
	for i, x := range got {
		if math.Abs(x-want[i]) > 1e-9 {
			t.Errorf("mean %d: %g with half, %g with all", i, x, want[i])
		}
	}
	if half >= all || all >= 5000 {
		t.Errorf("%d steps with half, %d with all", half, all)
	}
}

// TestPaperEq6 checks that Gamma's fixed point is that of the paper's step, (a + k/2)/(b + 1/2 sum
// e), including the factor 1/2 that the paper omits.
func TestPaperEq6(t *testing.T) {
	const a, b, k, rest = 2, 0.3, 5.0, 1.7
	variance := func(alpha float64) float64 { // the children's losses have these curvatures
		sum := 0.0
		for _, h := range []float64{0, 0.1, 1, 10, 100} {
			sum += 1 / (h + alpha)
		}
		return sum
	}
	alpha := 1.0
	for range 1000 {
		alpha = Gamma(a, b, k, alpha, variance(alpha), rest)
	}
	if em := (a + k/2) / (b + (variance(alpha)+rest)/2); math.Abs(em/alpha-1) > 1e-12 {
		t.Errorf("%g is moved to %g by the paper's step", alpha, em)
	}
}

// TestPaperEq6ByVariant checks that the paper's step of each variant is tau/ups by their
// definitions, e_c = Psi_n + Psi_c + (mu_n - mu_c)^2 summed over features and children (M1),
// children (M2), features (M3).
func TestPaperEq6ByVariant(t *testing.T) {
	scale := []float64{0.7, 0.2, 1.3, 0.4}
	for _, v := range []Variant{M1, M2, M3} {
		tree, r, columns := forest(), rand.New(rand.NewPCG(uint64(v), 9)), len(scale)
		a := randomAlpha(tree, v, columns, r)
		p := tree.NewPrior([]float64{0, 0, 3, 4, 0, 0, 5, 6, 7}, 25)
		mu, psi := make([][]float64, len(tree.Parent)), make([][]float64, len(tree.Parent))
		m, contribution := make([]float64, len(tree.Nodes)*columns), NewContribution(v, len(tree.Nodes)*columns)
		below := Below{Variance: make([]float64, len(mu)), Distance: make([]float64, len(mu))}
		mean := 0.0
		for n := range mu {
			mu[n], psi[n] = make([]float64, columns), make([]float64, columns)
			for j := range columns {
				mu[n][j] = r.NormFloat64()
				if i := tree.Internal[n]; i >= 0 {
					m[int(i)*columns+j], psi[n][j] = mu[n][j], tree.Variance(v, a, int32(n), columns, j)
				} else {
					psi[n][j] = 1 / (r.ExpFloat64() + tree.Precision(v, a, int32(n), columns).At(j))
					contribution.Add(int(tree.above(int32(n)))*columns+j, 1, mu[n][j]-mu[tree.Parent[n]][j], 1, psi[n][j])
					below.Variance[n] += psi[n][j]
				}
				if up := tree.Parent[n]; up >= 0 {
					below.Distance[n] += (mu[n][j] - mu[up][j]) * (mu[n][j] - mu[up][j])
				}
			}
		}
		for _, s := range scale {
			mean += s / float64(columns)
		}
		e := func(c int32, j int) float64 {
			n := tree.Parent[c]
			return psi[n][j] + psi[c][j] + (mu[n][j]-mu[c][j])*(mu[n][j]-mu[c][j])
		}
		check := func(n int32, k, b, sum, got float64) {
			t.Helper()
			if want := (p.Shape[n] + k/2) / (b + sum/2); math.Abs(got-want) > 1e-12*want {
				t.Errorf("M%d node %d: alpha %g, want %g", v, n, got, want)
			}
		}
		if v == M2 {
			got := tree.UpdateByFeature(GammaEM, a, p, m, contribution, scale)
			for i, n := range tree.Nodes {
				for j, s := range scale {
					sum := 0.0
					for _, c := range tree.Children[n] {
						sum += e(c, j)
					}
					check(n, float64(len(tree.Children[n])), p.Weight[n]*s, sum, got[i*columns+j])
				}
			}
			continue
		}
		got := tree.Update(GammaEM, v, a, p, below, columns, mean)
		for n := range int32(len(tree.Parent)) {
			if !tree.Owns(v, n) {
				continue
			}
			of := tree.Children[n]
			if v == M3 {
				of = []int32{n}
			}
			sum := 0.0
			for _, c := range of {
				for j := range columns {
					sum += e(c, j)
				}
			}
			check(n, float64(len(of)*columns), p.Weight[n]*mean, sum, got[n])
		}
	}
}

// TestPaperEq4 checks Bouchard's bound on the soft-max ([TKDD] eq. 4), as the blocks and the rows'
// step compute it from xi^2 = x' Psi x + (w.x - beta)^2: with lambda by its definition it is above
// log sum exp, and Beta minimises it. The bound for map (Gopal & Yang, ICML 2013) is tight at the
// offset that LogSums returns.
func TestPaperEq4(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, leaves := range []int{2, 3, 16} {
		score, spread := make([]float64, leaves), make([]float64, leaves)
		for l := range score {
			score[l], spread[l] = 3*r.NormFloat64(), r.ExpFloat64()
		}
		exact := 0.0
		for _, f := range score {
			exact += math.Exp(f)
		}
		exact = math.Log(exact)
		xi := make([]float64, leaves)
		bound := func(beta float64) float64 {
			sum := beta
			for l, f := range score {
				u := f - beta
				sum += (u-xi[l])/2 + lambdaOf(xi[l])*(u*u-xi[l]*xi[l]) + math.Log1p(math.Exp(xi[l]))
			}
			return sum
		}
		beta := r.NormFloat64()
		for range 20 {
			s := &Bounded{lanes: leaves, score: make([]float64, leaves), variance: spread}
			for l, f := range score {
				s.score[l] = f - beta
				xi[l] = math.Sqrt(spread[l] + (f-beta)*(f-beta))
			}
			var tau, pull [1]float64
			s.Share(tau[:], pull[:])
			next := Beta(beta, tau[0], pull[0], leaves)
			best, sum, weight := bound(next), (float64(leaves)/2-1)/2, 0.0
			for l, f := range score {
				sum += lambdaOf(xi[l]) * f
				weight += lambdaOf(xi[l])
			}
			if want := sum / weight; math.Abs(next-want) > 1e-10*(1+math.Abs(want)) {
				t.Errorf("%d leaves: beta %g, want %g", leaves, next, want)
			}
			for _, at := range []float64{beta, next - 1e-3, next + 1e-3} {
				if bound(at) < best-1e-12 {
					t.Errorf("%d leaves: the bound is %g at %g, and %g at the best beta %g", leaves, bound(at), at, best, next)
				}
			}
			if best < exact {
				t.Errorf("%d leaves: the bound %g is below log sum exp %g", leaves, best, exact)
			}
			beta = next
		}
		z := make([]float64, 1)
		LogSums([][]float64{{logSum(score[:1])}, {logSum(score[1:])}}, z)
		for _, at := range []float64{z[0], z[0] - 1, z[0] + 1} {
			sum := at - 1
			for _, f := range score {
				sum += math.Exp(f - at)
			}
			if at == z[0] && math.Abs(sum-exact) > 1e-12*(1+math.Abs(exact)) || sum < exact-1e-12*(1+math.Abs(exact)) {
				t.Errorf("%d leaves: the bound at %g is %g, log sum exp %g", leaves, at, sum, exact)
			}
		}
	}
}

// TestPrior checks the priors of [TKDD] eq. 8 and 3.4: leaves have (1, [I^-1]_ii), with the share
// of the class in place of p in I; internals have the sums.
func TestPrior(t *testing.T) {
	r := sample(1, 30, 7, true)
	scale := r.DiagonalScales()
	if d, mean := Occurring(scale, nil); scale[3] != 0 || d != 7 || !(mean > 0) {
		t.Errorf("%d features occur, mean scale %g, of the one that does not %g", d, mean, scale[3])
	}
	tree := forest()
	weights := []float64{0, 0, 3, 4, 0, 0, 5, 6, 7}
	p := tree.NewPrior(weights, r.Total())
	for n, leaf := range tree.Leaf {
		shape, rate := 0.0, 0.0
		for _, c := range tree.Children[n] {
			shape += p.Shape[c]
			rate += p.Weight[c] * scale[0]
		}
		if leaf {
			share, fisher := weights[n]/r.Total(), 0.0
			for i := range r.X.Rows {
				fisher += r.WeightOf(i) * share * (1 - share) * r.dense(i)[0] * r.dense(i)[0]
			}
			shape, rate = 1, 1/fisher
		}
		if p.Shape[n] != shape || math.Abs(p.Weight[n]*scale[0]-rate) > 1e-12*rate ||
			math.Abs(p.Start(int32(n), scale[0])-shape/rate) > 1e-9*shape/rate {
			t.Errorf("node %d: (%g, %g), want (%g, %g)", n, p.Shape[n], p.Weight[n]*scale[0], shape, rate)
		}
	}
}

// TestFullScales checks that the scales are the diagonal of the inverse of sum_x x x', by
// multiplying the inverse with the matrix. A feature that repeats another one gives no scale.
func TestFullScales(t *testing.T) {
	r := sample(1, 60, 7, true)
	scale, ok := r.FullScales()
	if !ok || scale[3] != 0 {
		t.Fatal(ok, scale)
	}
	var columns []int
	for f, s := range scale {
		if s > 0 {
			columns = append(columns, f)
		}
	}
	d := len(columns)
	for at, f := range columns { // column f of the inverse, by elimination
		a := make([][]float64, d)
		for i := range a {
			a[i] = make([]float64, d+1)
			if i == at {
				a[i][d] = 1
			}
			for k := range r.X.Rows {
				x := r.dense(k)
				for j := range d {
					a[i][j] += r.WeightOf(k) * x[columns[i]] * x[columns[j]]
				}
			}
		}
		for i := range a {
			for k := range a {
				if k == i {
					continue
				}
				by := a[k][i] / a[i][i]
				for j := i; j <= d; j++ {
					a[k][j] -= by * a[i][j]
				}
			}
		}
		if want := a[at][d] / a[at][at]; math.Abs(scale[f]-want) > 1e-9*want {
			t.Errorf("column %d: %g, want %g", f, scale[f], want)
		}
	}
	twice := Rows{X: sparse.FromRows(2, [][]uint32{{0, 1}, {0, 1}, {0, 1}}, [][]float32{{1, 2}, {3, 6}, {-1, -2}})}
	if _, ok := twice.FullScales(); ok {
		t.Error("a singular matrix was inverted")
	}
	if m := Median([]float64{0, 4, 1, 0, 3, 2}); m != 2.5 {
		t.Errorf("median %g", m)
	}
	if d, mean := Occurring([]float64{0, 4, 1}, []float64{9, 1, 2}); d != 2 || mean != 2 {
		t.Errorf("%d features, mean %g", d, mean)
	}
}
