package solver

import (
	"cmp"
	"context"
	"math"
	"slices"

	"taxon/mapper"
)

// These constants say at which gap of the duals a solve aims, and bound its time.
const (
	// A solve aims at aimShare times the gap that it began with, or at aimOfGap times the gap to
	// reach if that is greater.
	aimShare = 0.1
	aimOfGap = 0.3
	// firstShare, multiplied by P at zero, is the aim while no gap is known.
	firstShare = 0.05
	// maxVisits bounds the time of a solve.
	maxVisits = 1 << 33
)

// Solve improves the duals by passes over the working sets, and ends with a full pass. If warm is
// nil, it starts afresh. It returns an error only if ctx is cancelled. The result shares no memory
// with warm.
func (s *Solver) Solve(ctx context.Context, warm *State, o Options) (*State, Sums, error) {
	var sums Sums
	if warm == nil {
		warm = s.p.start()
	}
	if s.classStride == 1 {
		return s.solveNarrow(ctx, warm, o)
	}
	aim := max(aimShare*(warm.Primal-warm.Dual), aimOfGap*o.Gap*warm.Primal)
	if warm.Primal == 0 { // there was no full pass
		for i := range s.p.Rows.X.Rows {
			aim += float64(firstShare * s.p.Rows.RowC(i))
		}
	}
	s.state = &State{Begin: warm.Begin, Class: slices.Clone(warm.Class), Value: slices.Clone(warm.Value),
		Sign: slices.Clone(warm.Sign)}
	s.open()
	s.rebuild()
	// climbed is the visits at the last climb, and whole says that the pass visits all classes.
	climbed, whole := int64(0), true
	for epoch := 0; epoch < o.MaxEpochs; epoch++ {
		if err := ctx.Err(); err != nil {
			return nil, sums, err
		}
		mapper.Shuffle(s.order, o.Seed, uint64(epoch))
		estimate := s.pass(&sums)
		if s.t != nil && s.t.form == Orthogonal {
			estimate += s.turn(signShare*aim, &sums)
		}
		sums.Epochs++
		if estimate <= aim && whole || sums.Visits >= maxVisits {
			break
		}
		if whole = estimate <= aim; whole {
			s.open()
		}
		if sums.Epochs >= climbFrom && sums.Epochs%climbEvery == 0 {
			s.climb(&sums, sums.Visits-climbed)
			climbed = sums.Visits
		}
	}
	next, err := s.certified(ctx, &sums, o.Gap)
	return next, sums, err
}

// open makes all classes of the working sets live again.
func (s *Solver) open() {
	n := s.p.Rows.X.Rows
	s.live, s.total, s.order = resized(s.live, n), resized(s.total, n), s.order[:0]
	most := 0
	for i := range n {
		from, to := s.state.Begin[i], s.state.Begin[i+1]
		s.live[i], s.total[i] = uint32(to-from), 0
		for _, b := range s.state.Value[from:to] {
			s.total[i] += b
		}
		most = max(most, int(to-from))
		if to > from && s.p.Rows.Norm(i) > 0 {
			s.order = append(s.order, uint32(i))
		}
	}
	s.sub, s.g = resized(s.sub, most+1), resized(s.g, most+1)
}

// candidate is a class in an instance's problem.
type candidate struct {
	// at is the class's place among the instance's classes, or -1 for the instance's own.
	at int
	// score is G without the effect of the present duals.
	score float64
}

// pass visits every instance with live classes once, in order. It returns the sum of the gaps that
// it found.
func (s *Solver) pass(sums *Sums) (estimate float64) {
	left := 0
	for _, row := range s.order {
		gap, stays := s.visit(int(row), sums)
		estimate += gap
		if stays {
			s.order[left] = row
			left++
		}
	}
	s.order = s.order[:left]
	return estimate
}

// still is a bound on the violation of an instance's optimality conditions. Below it the instance's
// duals stay as they are.
const still = 1e-12

// visit solves an instance's problem over its live classes. It returns the instance's gap, and
// whether it has live classes left.
func (s *Solver) visit(i int, sums *Sums) (gap float64, stays bool) {
	from, c := s.state.Begin[i], s.p.Rows.RowC(i)
	n := int(s.live[i])
	class, b := s.state.Class[from:s.state.Begin[i+1]], s.state.Value[from:s.state.Begin[i+1]]
	g := s.g[:n]
	idx, _ := s.p.Rows.X.Row(i)
	sums.Visits += int64(len(idx)+1) * int64(n+1)
	mine := s.costs(i, class[:n], g)
	most, least := mine, math.Inf(1)
	if s.total[i] < c {
		least = mine
	}
	for k := range g {
		most = max(most, g[k])
		if b[k] > 0 {
			least = min(least, g[k])
		}
	}
	gap = float64((c - s.total[i]) * (most - mine))
	for k := 0; k < n; k++ {
		if b[k] > 0 {
			gap += float64(b[k] * (most - g[k]))
		} else if g[k] < least { // it stays at zero
			n--
			g[k], g[n] = g[n], g[k]
			class[k], class[n] = class[n], class[k]
			b[k], b[n] = b[n], b[k]
			k--
		}
	}
	s.live[i] = uint32(n)
	if n == 0 {
		return gap, false
	}
	if most-least <= still {
		return gap, true
	}
	if s.t != nil {
		s.improveTree(i, g[:n], class, b, c)
	} else {
		s.improve(i, mine, g[:n], class, b, c)
	}
	return gap, true
}

// costs sets g to the classes' costs G, and returns the cost of the instance's own class.
func (s *Solver) costs(i int, classes []uint32, g []float64) (own float64) {
	if s.t != nil {
		s.costsTree(i, classes, g)
		return 0
	}
	own = s.scores(i, int(s.p.Class[i]), classes, g)
	for k := range g {
		g[k]++
	}
	return own
}

// improve solves the problem of instance i exactly. Let a = ||x_i||^2, A_m = b_m + G_m/a for the
// others, and A_y = G_y/a - b_i + c. The new duals are max(A_m - beta, 0). beta is such that they
// and max(A_y - beta, 0), which is c - b_i, add up to c.
func (s *Solver) improve(i int, mine float64, g []float64, class []uint32, b []float64, c float64) {
	a := s.p.Rows.Norm(i)
	sub := append(s.sub[:0], candidate{-1, mine/a + (c - s.total[i])})
	for k, x := range g {
		sub = append(sub, candidate{k, x/a + b[k]})
	}
	slices.SortFunc(sub, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.score, x.score),
			cmp.Compare(x.at, y.at))
	})
	sum, beta := 0.0, 0.0
	for r, x := range sub {
		sum += x.score
		if beta = (sum - c) / float64(r+1); r+1 == len(sub) || sub[r+1].score <= beta {
			break
		}
	}
	moves := s.moves[:0]
	for _, x := range sub {
		if x.at < 0 {
			continue
		}
		now := max(x.score-beta, 0)
		if delta := now - b[x.at]; delta != 0 {
			b[x.at] = now
			moves = append(moves, move{int32(class[x.at]), -delta})
		}
	}
	before := s.total[i]
	if s.sum(i, b, c); s.total[i] != before {
		moves = append(moves, move{s.p.Class[i], s.total[i] - before})
	}
	s.add(i, moves)
	s.moves = moves
}

// sum sets the sum of the duals of instance i.
func (s *Solver) sum(i int, b []float64, c float64) {
	total := 0.0
	for _, x := range b {
		total += x
	}
	s.total[i] = min(total, c) // the sum may exceed C by rounding
}

// resized returns a slice of n elements with undefined values.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
