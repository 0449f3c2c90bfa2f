package solver

import (
	"context"
	"math"
	"slices"

	"taxon/mapper"
)

// Options determines when a solve ends.
type Options struct {
	// Gap is the relative gap to reach.
	Gap float64

	// MaxEpochs bounds the number of passes over the instances. If it is 0, only P and D are computed.
	MaxEpochs int

	// Seed determines the order of the instances.
	Seed uint64
}

// Sums are the figures of a solve.
type Sums struct {
	Primal, Dual float64
	Moved        int   // instances off their true labeling
	Epochs       int   // passes
	Visits       int64 // nonzeros times microlabels touched
}

const (
	// A solve ends at aimShare times its first gap, or aimOfGap times the gap to reach if that is greater. aimAgain
	// multiplies the passes' own aim when they reached it and the exact gap is still too large.
	aimShare, aimOfGap, aimAgain = 0.1, 0.3, 0.3
	// maxVisits bounds the time of a solve.
	maxVisits = 1 << 32
	// passes is the number of passes over an instance's edges at a visit ([JMLR] Figure 3: few are best).
	passes = 3
	// everyPass is the distance between passes over all instances. Others visit those with a large gap.
	everyPass = 8
	// leapFrom is the pass from which on a solve extrapolates along the direction of its passes.
	// This magnifies rounding, by which edges cease to agree on the node between them. So no extrapolation is
	// longer than longestLeap times the direction or takes more than mostBack times the previous direction into
	// it, and after leapsUntilSettled extrapolations all edges are made to agree.
	leapFrom, longestLeap, mostBack, leapsUntilSettled = 4, 1e4, 10, 25
	// tiny is the share of P that rounding hides.
	tiny = 1e-15
	// rises is the rise of D, relative to the gap, that outweighs a greater gap.
	rises = 1e-3
	// cancelled is the share of its parts below which a slope is rounding.
	cancelled = 1e-13
	// nothing is the mass, relative to C, below which it is rounding.
	nothing = 1e-14
)

// Solver solves a problem. It owns the memory of solves, which is 96 bytes per microlabel and
// feature, and per microlabel and instance. Only one goroutine may use it at a time.
type Solver struct {
	p     *Problem
	width int     // features and the bias
	step  int     // four labelings of each edge
	end   []int32 // end of each microlabel's subtree
	// w holds w_e^(a,b) of feature f at f*step + 4j + 2a + b, j being the edge's child.
	w   []float64
	all []float64   // marginals of all instances
	mu  [][]float64 // marginals of each instance

	last, along point // end of the last extrapolation, direction
	leaps       int   // extrapolations since edges agreed

	// s holds the scores of an instance at all vectors, and coef the multiples of the instance that
	// its moves add to w.
	s, coef []float64
	// best is, by a microlabel's value, the gradient of the best labeling below it, and mean that of the marginals.
	best   [][2]float64
	mean   [][2]float64
	choice [][2]uint8 // best value, by the parent's
	flow   [][2]float64
	way    []float64
}

// point is a set of marginals, or a change of them, and the vectors that follow from it.
type point struct{ mu, w []float64 }

// NewSolver returns a solver of the problem.
func (p *Problem) NewSolver() *Solver {
	n := len(p.Parent)
	s := &Solver{p: p, width: p.Rows.X.Cols + 1, step: 4 * n, end: make([]int32, n), s: make([]float64, 4*n),
		coef: make([]float64, 4*n), way: make([]float64, 4*n),
		best: make([][2]float64, n), mean: make([][2]float64, n), choice: make([][2]uint8, n), flow: make([][2]float64, n)}
	s.w = make([]float64, s.width*s.step)
	for j := n - 1; j >= 0; j-- {
		s.end[j] = max(s.end[j], int32(j)+1)
		if up := p.Parent[j]; up >= 0 {
			s.end[up] = max(s.end[up], s.end[j])
		}
	}
	return s
}

// axpy sets y += a x.
func axpy(y []float64, a float64, x []float64) {
	x = x[:len(y)]
	for k := range y {
		y[k] += float64(a * x[k])
	}
}

// score sets s to w_e^u.x_i of all edges and labelings.
func (s *Solver) score(i int) {
	clear(s.s)
	index, value := s.p.Rows.X.Row(i)
	for k, f := range index {
		axpy(s.s, float64(value[k]), s.w[int(f)*s.step:])
	}
	axpy(s.s, float64(s.p.Rows.Bias), s.w[(s.width-1)*s.step:])
}

// add sets w += coef x_i.
func (s *Solver) add(i int, w []float64) {
	index, value := s.p.Rows.X.Row(i)
	for c, by := range s.coef {
		if by == 0 {
			continue
		}
		for k, f := range index {
			w[int(f)*s.step+c] += float64(by * float64(value[k]))
		}
		w[(s.width-1)*s.step+c] += float64(by * float64(s.p.Rows.Bias))
	}
}

// place returns the index of an edge's labeling in y. For the root it is the index of the root's value.
func (p *Problem) place(y []uint64, j int32) int {
	if up := p.Parent[j]; up >= 0 {
		return 4*int(j) + 2*bit(y, up) + bit(y, j)
	}
	return bit(y, j)
}

// share returns how the mass with a at the parent of j is divided by j's value. If there is no
// mass, the best value gets all of it.
func (s *Solver) share(mu []float64, j int32, a int) (zero, one float64) {
	zero, one = mu[4*int(j)+2*a], mu[4*int(j)+2*a+1]
	if sum := zero + one; sum > 0 {
		return zero / sum, one / sum
	}
	return 1 - float64(s.choice[j][a]), float64(s.choice[j][a])
}

// value returns what edge j and the part below it add to the gradient where the parent has a: at best, and on average.
func (s *Solver) value(truth []uint64, j int32, a int) (best, mean [2]float64) {
	for b := range 2 {
		edge := s.p.cost(truth, j, a, b)
		if j > 0 {
			edge += s.s[4*int(j)+2*a+b]
		}
		best[b], mean[b] = edge+s.best[j][b], edge+s.mean[j][b]
	}
	return best, mean
}

// passUp adds edge j's part to the values of its parent ([JMLR] 3.4, and the same for the mean).
func (s *Solver) passUp(truth []uint64, mu []float64, j int32) {
	up := s.p.Parent[j]
	for a := range 2 {
		best, mean := s.value(truth, j, a)
		s.choice[j][a] = 0
		if best[1] > best[0] {
			s.choice[j][a] = 1
		}
		s.best[up][a] += max(best[0], best[1])
		zero, one := s.share(mu, j, a)
		s.mean[up][a] += float64(zero*mean[0]) + float64(one*mean[1])
	}
}

// below recomputes the values of microlabel j from the part below it.
func (s *Solver) below(truth []uint64, mu []float64, j int32) {
	clear(s.best[j:s.end[j]])
	clear(s.mean[j:s.end[j]])
	for k := s.end[j] - 1; k > j; k-- {
		s.passUp(truth, mu, k)
	}
}

// highest returns the greatest gradient of a labeling, and the mean times C. Both include the part
// that all labelings share. below must have been called for the root.
func (s *Solver) highest(truth []uint64, mu []float64) (most, mean float64) {
	best, m := s.value(truth, 0, 0)
	return max(best[0], best[1]), float64(mu[0]*m[0]) + float64(mu[1]*m[1])
}

// shift moves mass at edge j, of the mass with a at its parent, from the value that gains less to
// the other. k is K(x_i, x_i). It reports whether any mass moved.
func (s *Solver) shift(truth []uint64, mu []float64, j int32, a int, k, c float64) bool {
	_, mean := s.value(truth, j, a)
	to := 0
	if mean[1] > mean[0] {
		to = 1
	}
	from := 1 - to
	at := 4*int(j) + 2*a
	most, gain := mu[at+from], mean[to]-mean[from]
	if most <= 0 || gain <= 1e-15*(1+mean[to]) {
		return false
	}
	way := s.way[4*j : 4*s.end[j]]
	clear(way)
	way[2*a+from], way[2*a+to] = -1, 1
	s.flow[j][from], s.flow[j][to] = -1, 1
	square := 0.0
	if j > 0 {
		square = 2
	}
	for n := j + 1; n < s.end[j]; n++ {
		up, out := s.p.Parent[n], way[4*(n-j):][:4]
		s.flow[n] = [2]float64{}
		for b, f := range s.flow[up] {
			zero, one := s.share(mu, n, b)
			zero, one = float64(f*zero), float64(f*one)
			out[2*b], out[2*b+1] = zero, one
			s.flow[n][0] += zero
			s.flow[n][1] += one
			square += float64(zero*zero) + float64(one*one)
		}
	}
	t := most
	if curve := k * square; curve > 0 {
		t = min(gain/curve, most)
	}
	for n, d := range way {
		if d == 0 {
			continue
		}
		n += 4 * int(j)
		if mu[n] += float64(t * d); mu[n] < nothing*c {
			mu[n] = 0
		}
		if n > 3 { // the root has no vectors
			s.coef[n] -= float64(t * d)
			s.s[n] -= float64(float64(t*k) * d)
		}
	}
	return true
}

// visit improves the marginals of an instance until its gap is at most enough, and returns the gap
// that it had.
func (s *Solver) visit(i int, enough float64) (gap float64) {
	truth, mu, k, c := s.p.On[i], s.mu[i], s.p.Rows.Norm(i), s.p.Rows.RowC(i)
	s.score(i)
	clear(s.coef)
	moved := false
	for pass := range passes {
		s.below(truth, mu, 0)
		most, mean := s.highest(truth, mu)
		left := float64(c*most) - mean
		if pass == 0 {
			gap = left
		}
		if left <= enough {
			break
		}
		clear(s.best)
		clear(s.mean)
		for j := int32(len(s.p.Parent)) - 1; j >= 0; j-- {
			// Edges below j have moved their own marginals, and changed their values for j.
			for a := range 2 {
				if j == 0 && a == 1 {
					break
				}
				if s.shift(truth, mu, j, a, k, c) {
					moved = true
					s.below(truth, mu, j)
				}
			}
			if j > 0 {
				s.passUp(truth, mu, j)
			}
		}
	}
	if moved {
		s.add(i, s.w)
	}
	return gap
}

// settle makes the edges of an instance agree to the last bit: it divides C anew from the root
// down.
func (s *Solver) settle(i int) {
	truth, mu := s.p.On[i], s.mu[i]
	scale := s.p.Rows.RowC(i) / (mu[0] + mu[1])
	mu[0], mu[1] = mu[0]*scale, mu[1]*scale
	s.flow[0] = [2]float64{mu[0], mu[1]}
	for j, up := range s.p.Parent[1:] {
		j := int32(j) + 1
		s.flow[j] = [2]float64{}
		for a, f := range s.flow[up] {
			s.choice[j][a] = uint8(bit(truth, j))
			zero, one := s.share(mu, j, a)
			at := mu[4*int(j)+2*a:]
			at[0], at[1] = float64(f*zero), float64(f*one)
			s.flow[j][0] += at[0]
			s.flow[j][1] += at[1]
		}
	}
}

// open copies the marginals from a state and computes w.
func (s *Solver) open(st *State) {
	n := len(s.p.On)
	if len(s.mu) == 0 {
		s.all = make([]float64, n*s.step)
		for i := range n {
			s.mu = append(s.mu, s.all[i*s.step:(i+1)*s.step])
		}
	}
	for i, mu := range s.mu {
		clear(mu)
		if st != nil {
			for k, at := range st.Rows[i].At {
				mu[at] = st.Rows[i].Value[k]
			}
		}
		for j := range s.p.Parent {
			if e := mu[4*j:][:4]; e[0] == 0 && e[1] == 0 && e[2] == 0 && e[3] == 0 {
				mu[s.p.place(s.p.On[i], int32(j))] = s.p.Rows.RowC(i)
			}
		}
	}
	s.rebuild()
}

// rebuild computes w from the marginals, instance by instance.
func (s *Solver) rebuild() {
	clear(s.w)
	for i, mu := range s.mu {
		moved := false
		for n, m := range mu[4:] {
			s.coef[n+4] = -m
		}
		for j := range s.p.Parent[1:] {
			at := s.p.place(s.p.On[i], int32(j)+1)
			s.coef[at] += s.p.Rows.RowC(i)
			moved = moved || s.coef[at] != 0
		}
		if s.coef[0], s.coef[1] = 0, 0; moved {
			s.add(i, s.w)
		}
	}
}

// price makes all edges agree, computes w from the marginals, sets P and D, and returns the state.
func (s *Solver) price(sums *Sums) *State {
	for i := range s.mu {
		s.settle(i)
	}
	s.rebuild()
	st := &State{Rows: make([]Marginals, len(s.mu))}
	for i, mu := range s.mu {
		truth, c := s.p.On[i], s.p.Rows.RowC(i)
		s.score(i)
		s.below(truth, mu, 0)
		most, _ := s.highest(truth, mu)
		own := 0.0
		row := &st.Rows[i]
		for j := range int32(len(s.p.Parent)) {
			at := s.p.place(truth, j)
			if j > 0 {
				own += s.s[at]
			}
			if mu[at] == c {
				continue
			}
			for n, m := range mu[4*j:][:4] {
				if m != 0 {
					row.At, row.Value = append(row.At, uint32(4*int(j)+n)), append(row.Value, m)
					sums.Dual += float64(m * s.p.cost(truth, j, n/2, n%2))
				}
			}
		}
		if len(row.At) > 0 {
			sums.Moved++
		}
		sums.Primal += float64(c * (most - own))
	}
	square := 0.0
	for _, v := range s.w {
		square += float64(v * v)
	}
	sums.Primal += square / 2
	sums.Dual -= square / 2
	st.Primal, st.Dual = sums.Primal, sums.Dual
	return st
}

// product returns the inner product of two vectors.
func product(a, b []float64) (sum float64) {
	b = b[:len(a)]
	for k, x := range a {
		sum += float64(x * b[k])
	}
	return sum
}

// cost returns the loss of a change of the marginals.
func (s *Solver) cost(mu []float64) (sum float64) {
	for i, truth := range s.p.On {
		for n, m := range mu[i*s.step:][:s.step] {
			if m != 0 {
				sum += float64(m * s.p.cost(truth, int32(n/4), n/2%2, n%2))
			}
		}
	}
	return sum
}

// extrapolate raises D along the change of the marginals since the last extrapolation. Passes move
// one instance at a time, by steps of gain/K(x, x), so they creep where C is large and instances
// hold each other: of equal rows with different labels all masses have to grow together. The
// direction is made conjugate to the previous one, as in conjugate gradients, with the passes in
// place of the gradient. The step ends at the maximum of D, or where a marginal becomes 0.
func (s *Solver) extrapolate() {
	if s.leaps++; s.last.mu == nil || s.leaps > leapsUntilSettled {
		for i := range s.mu {
			s.settle(i)
		}
		s.rebuild()
		s.leaps, s.last, s.along = 0, point{slices.Clone(s.all), make([]float64, len(s.w))}, point{}
		return
	}
	for k, m := range s.all {
		s.last.mu[k] = m - s.last.mu[k]
	}
	s.free(s.last)
	back := math.Inf(1)
	if s.along.mu == nil {
		s.along = point{make([]float64, len(s.all)), make([]float64, len(s.w))}
	} else if square := product(s.along.w, s.along.w); square > 0 {
		back = product(s.last.w, s.along.w) / square
	}
	if math.Abs(back) <= mostBack {
		for k, d := range s.last.mu {
			s.along.mu[k] = d - float64(back*s.along.mu[k])
		}
		s.free(s.along)
	}
	// Otherwise begin anew with the passes' own direction.
	if !(math.Abs(back) <= mostBack && s.walk(s.along)) {
		copy(s.along.mu, s.last.mu)
		copy(s.along.w, s.last.w)
		s.walk(s.along)
	}
	copy(s.last.mu, s.all)
}

// free removes from a direction the instances that could not move along it again, and computes
// its vectors.
func (s *Solver) free(d point) {
	clear(d.w)
	for i, mu := range s.mu {
		way, some := d.mu[i*s.step:][:s.step], false
		for n, x := range way {
			if some = some || x != 0; mu[n] < -x {
				clear(way)
				some = false
				break
			}
		}
		if some {
			for n, x := range way {
				s.coef[n] = -x
			}
			s.coef[0], s.coef[1] = 0, 0 // the root has no vectors
			s.add(i, d.w)
		}
	}
}

// walk moves along d as far as D rises. It returns false if it cannot move.
func (s *Solver) walk(d point) bool {
	cost, held, curve := s.cost(d.mu), product(s.w, d.w), product(d.w, d.w)
	slope := cost - held
	if slope <= float64(cancelled*(math.Abs(cost)+math.Abs(held))) {
		return false
	}
	t := float64(longestLeap)
	for k, x := range d.mu {
		if x < 0 {
			t = min(t, s.all[k]/-x)
		}
	}
	if curve > 0 {
		t = min(t, slope/curve)
	}
	if t == 0 {
		return false
	}
	for i, mu := range s.mu {
		least := nothing * s.p.Rows.RowC(i)
		for n, x := range d.mu[i*s.step:][:s.step] {
			if x != 0 {
				if mu[n] += float64(t * x); mu[n] < least {
					mu[n] = 0
				}
			}
		}
	}
	axpy(s.w, t, d.w)
	return true
}

// Solve improves the marginals by passes over the instances, and returns the best state that it
// found. If warm is nil, it starts afresh. It returns an error only if ctx is cancelled. The result
// shares no memory with warm.
func (s *Solver) Solve(ctx context.Context, warm *State, o Options) (*State, Sums, error) {
	var sums Sums
	n := len(s.p.On)
	s.open(warm)
	if warm == nil || warm.Primal == 0 {
		warm = s.price(&Sums{})
	}
	best := warm.clone()
	// keep makes st the best state if it is better. Near the optimum D stays as it is while rounding
	// moves P up and down.
	keep := func(st *State) {
		if gap := best.Primal - best.Dual; st.Primal-st.Dual < gap || st.Dual-best.Dual > float64(rises*gap) {
			best = st
		}
	}
	s.last, s.along = point{}, point{}
	aim := max(aimShare*(warm.Primal-warm.Dual), aimOfGap*o.Gap*warm.Primal)
	within := aim // for the sum of the visits' gaps
	each := (s.p.Rows.X.NNZ + int64(n)) / int64(max(n, 1)) * int64(len(s.p.Parent))
	order, gaps := []uint32(nil), make([]float64, n)
	for epoch := range o.MaxEpochs {
		if err := ctx.Err(); err != nil {
			return nil, sums, err
		}
		order = order[:0]
		for i := range n {
			if epoch%everyPass == 0 || gaps[i] > 0.5*within/float64(n) {
				order = append(order, uint32(i))
			}
		}
		mapper.Shuffle(order, o.Seed, uint64(epoch))
		for _, i := range order {
			gaps[i] = s.visit(int(i), 0.1*within/float64(n))
			sums.Visits += each
		}
		if epoch >= leapFrom {
			s.extrapolate()
		}
		left := 0.0
		for _, g := range gaps {
			left += g
		}
		sums.Epochs++
		last := epoch+1 == o.MaxEpochs || sums.Visits >= maxVisits
		if left > within && !last {
			continue
		}
		// An instance's gap at its visit is small where others will move the vectors again.
		sums.Primal, sums.Dual, sums.Moved = 0, 0, 0
		keep(s.price(&sums))
		if last || sums.Primal-sums.Dual <= aim || within < tiny*sums.Primal {
			break
		}
		within *= aimAgain
	}
	sums.Primal, sums.Dual, sums.Moved = best.Primal, best.Dual, best.moved()
	return best, sums, nil
}

// Weights returns a vector for each microlabel, in float32, such that the sum of v_j.x over the
// nodes of a union of partial paths is w.phi(x, y), up to a part that all y share:
//
//	v_j = w_e^(1,1) - w_e^(1,0) of the edge e above j  +  sum over edges e' below j of w_e'^(1,0) - w_e'^(0,0)
func (s *Solver) Weights(st *State) []mapper.Override {
	s.open(st)
	out := make([]mapper.Override, len(s.p.Parent))
	v := make([]float64, len(out))
	for f := range s.width {
		clear(v)
		w := s.w[f*s.step:][:s.step]
		for j, up := range s.p.Parent[1:] {
			e := w[4*(j+1):][:4]
			v[j+1] += e[3] - e[2]
			v[up] += e[2] - e[0]
		}
		for j, x := range v {
			if x := float32(x); x != 0 {
				out[j].Feature, out[j].Value = append(out[j].Feature, uint32(f)), append(out[j].Value, x)
			}
		}
	}
	return out
}
