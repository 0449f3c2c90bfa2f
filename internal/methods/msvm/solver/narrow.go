package solver

import (
	"cmp"
	"context"
	"math"
	"slices"

	"taxon/mapper"
)

// With few classes an instance is scored at all of them as fast as at some, so there are no working
// sets. A visit knows the instance's whole gap and lets any class have a dual. The last pass, at fixed
// weights, is the certificate. Passes skip instances far from any change until then (they rest).

const (
	// rests is a lead of an instance's own class over the others. Above it an instance without
	// duals rests, that is, passes skip it.
	rests = 0.1
	// narrowShare determines the gap at which a solve ends. It is a share of the gap at the solve's
	// beginning.
	narrowShare = 0.01
	// likely is the usual ratio of the exact gap to the sum of the gaps that a pass finds.
	likely = 0.6
	// leapFrom is the number of passes before the first extrapolation, which many problems do not
	// need.
	leapFrom = 10
	// climbAfter is the number of passes between two climbs. By then the duals above zero may be the
	// right ones, and conjugate gradients find their values. Where they are not, a climb soon ends
	// at a bound, so it may take one part in climbShare of the passes' time.
	climbAfter = 100
	climbShare = 8
	// narrowVisits bounds the time of a solve.
	narrowVisits = 1 << 34
)

// dual is a dual variable b_im that is above zero.
type dual struct {
	class uint32
	value float64
}

// solveNarrow does what Solve does, for few classes.
func (s *Solver) solveNarrow(ctx context.Context, warm *State, o Options) (*State, Sums, error) {
	var sums Sums
	aim := max(narrowShare*(warm.Primal-warm.Dual), o.Gap*warm.Dual)
	if warm.Primal == 0 { // there was no full pass
		for i := range s.p.Class {
			aim += float64(firstShare * s.p.Rows.RowC(i))
		}
	}
	s.unpack(warm)
	s.rebuild()
	trust := likely     // exact gap / sum of the pass
	climbed := int64(0) // visits at the last climb
	s.momentum = 0
	for s.wake(); sums.Epochs < o.MaxEpochs; {
		if err := ctx.Err(); err != nil {
			return nil, sums, err
		}
		mapper.Shuffle(s.order, o.Seed, uint64(sums.Epochs))
		gap := s.passAll(&sums)
		if s.t != nil && s.t.form == Orthogonal {
			s.state = s.pack(0, 0)
			gap += s.turn(signShare*aim, &sums)
		}
		sums.Epochs++
		if sums.Visits >= narrowVisits {
			break
		}
		if gap*trust <= aim {
			primal := s.certify(&sums, o.Gap)
			if primal-sums.Dual <= aim || sums.Primal-sums.Dual <= o.Gap*sums.Primal {
				return s.pack(primal, sums.Dual), sums, nil
			}
			trust = (primal - sums.Dual) / max(gap, still)
			s.fill() // restores the float64 vectors
			s.wake()
		}
		switch {
		case sums.Epochs == o.MaxEpochs:
		case sums.Epochs%climbAfter == 0:
			s.state = s.pack(0, 0)
			s.climb(&sums, (sums.Visits-climbed)/climbShare)
			s.unpack(s.state)
			s.wake()
			climbed, s.momentum = sums.Visits, 0
		case sums.Epochs >= leapFrom:
			s.extrapolate()
		}
	}
	primal := s.certify(&sums, o.Gap)
	return s.pack(primal, sums.Dual), sums, nil
}

// unpack copies duals and sums from a state.
func (s *Solver) unpack(st *State) {
	n := len(s.p.Class)
	s.state, s.total = &State{Begin: st.Begin, Class: st.Class, Value: st.Value, Sign: slices.Clone(st.Sign)},
		resized(s.total, n)
	s.duals = resized(s.duals, n)
	for i := range s.duals {
		s.duals[i], s.total[i] = s.duals[i][:0], 0
		for k := st.Begin[i]; k < st.Begin[i+1]; k++ {
			if b := st.Value[k]; b > 0 {
				s.duals[i] = append(s.duals[i], dual{st.Class[k], b})
				s.total[i] += b
			}
		}
	}
}

// pack returns the present duals as a state with these values of P and D.
func (s *Solver) pack(primal, below float64) *State {
	st := &State{Primal: primal, Dual: below, Begin: make([]uint64, 1, len(s.duals)+1), Sign: s.state.Sign}
	for _, list := range s.duals {
		slices.SortFunc(list, func(a, b dual) int { return cmp.Compare(a.class, b.class) })
		for _, d := range list {
			st.Class, st.Value = append(st.Class, d.class), append(st.Value, d.value)
		}
		st.Begin = append(st.Begin, uint64(len(st.Class)))
	}
	return st
}

// wake makes passes visit all instances again.
func (s *Solver) wake() {
	s.order = s.order[:0]
	for i := range s.p.Class {
		if s.p.Rows.Norm(i) > 0 {
			s.order = append(s.order, uint32(i))
		}
	}
}

// passAll visits the instances that do not rest, in order, and returns the sum of the gaps that it
// found.
func (s *Solver) passAll(sums *Sums) (gap float64) {
	left := 0
	for _, i := range s.order {
		idx, _ := s.p.Rows.X.Row(int(i))
		sums.Visits += int64(len(idx)+1) * int64(s.p.Classes)
		part, stays := s.visitAll(int(i))
		gap += part
		if stays {
			s.order[left] = i
			left++
		}
	}
	s.order = s.order[:left]
	return gap
}

// costsAll sets s.all to the costs G of all choices of instance i, and returns the cost of its own
// class and the greatest of the others.
func (s *Solver) costsAll(i int) (own, rival float64) {
	if s.t != nil {
		return 0, s.costsAllTree(i)
	}
	z, y := s.all[:s.p.Classes], s.p.Class[i]
	s.scoreAll(i, s.all)
	own = z[y] - 1
	rival = math.Inf(-1)
	z[y] = rival
	for _, g := range z {
		if g > rival {
			rival = g
		}
	}
	return own, rival
}

// gapOf returns instance i's part of P - D, and the least cost among the classes that share its C.
func (s *Solver) gapOf(i int, own, most float64) (gap, least float64) {
	least = math.Inf(1)
	if rest := s.p.Rows.RowC(i) - s.total[i]; rest > 0 {
		least = own
		gap = float64(rest * (most - own))
	}
	for _, d := range s.duals[i] {
		g := s.all[d.class]
		gap += float64(d.value * (most - g))
		least = min(least, g)
	}
	return gap, least
}

// visitAll solves an instance's problem. stays reports that the next pass must visit the instance
// again.
func (s *Solver) visitAll(i int) (gap float64, stays bool) {
	own, rival := s.costsAll(i)
	if len(s.duals[i]) == 0 && rival <= own {
		return 0, rival > own-rests
	}
	most := max(own, rival)
	gap, least := s.gapOf(i, own, most)
	if most-least <= still {
		return gap, true
	}
	if s.t != nil {
		s.improveAllTree(i, least)
	} else {
		s.improveAll(i, own, most)
	}
	return gap, true
}

// improveAll solves the problem of instance i exactly, as improve does but without sorting: it
// drops candidates that are not above beta until all are.
func (s *Solver) improveAll(i int, own, most float64) {
	a, c := s.p.Rows.Norm(i), s.p.Rows.RowC(i)
	list := s.duals[i]
	for _, d := range list { // duals of the class count
		s.all[d.class] += float64(d.value * a)
		most = max(most, s.all[d.class])
	}
	own += float64((c - s.total[i]) * a)
	most = max(most, own)
	// The beta of any set of choices is a lower bound. That of the classes with duals is close.
	sum := own
	for _, d := range list {
		sum += s.all[d.class]
	}
	floor := max(most-float64(c*a), (sum-float64(c*a))/float64(len(list)+1))
	sum = own
	sub := s.sub[:0]
	for m, g := range s.all[:s.p.Classes] {
		if g > floor {
			sub = append(sub, candidate{m, g})
			sum += g
		}
	}
	n, beta, mine := float64(len(sub)+1), 0.0, true
	for {
		beta = (sum - float64(c*a)) / n
		left := 0
		sum = 0
		if mine = mine && own > beta; mine {
			sum = own
		}
		for _, x := range sub {
			if x.score > beta {
				sub[left] = x
				left++
				sum += x.score
			}
		}
		dropped := left < len(sub)
		sub = sub[:left]
		now := float64(left)
		if mine {
			now++
		}
		if !dropped && now == n {
			break
		}
		n = now
	}
	s.sub = sub
	moves := s.moves[:0]
	for _, d := range list {
		moves = append(moves, move{int32(d.class), d.value})
	}
	list, before := list[:0], s.total[i]
	s.total[i] = 0
	for _, x := range sub {
		b := (x.score - beta) / a
		list = append(list, dual{uint32(x.at), b})
		s.total[i] += b
		moves = append(moves, move{int32(x.at), -b})
	}
	if s.total[i] > c { // possible by rounding
		s.total[i] = c
	}
	s.duals[i] = list
	if s.total[i] != before {
		moves = append(moves, move{s.p.Class[i], s.total[i] - before})
	}
	s.addAll(i, moves)
	s.moves = moves[:0]
}

// certify sets P and D. P is the objective of the vectors rounded to float32, as they are written.
// If rounding alone keeps a small problem above the gap, P is the objective of the float64 vectors
// instead. primal is P of the float64 vectors, where both are known. s.w holds the last of the
// vectors that were scored.
func (s *Solver) certify(sums *Sums, gap float64) (primal float64) {
	s.state = s.pack(0, 0)
	sums.Dual = s.value()
	s.round()
	s.scoreRows(sums)
	primal = sums.Primal
	if primal-sums.Dual > gap*primal && len(s.w) <= smallWeights {
		rounded := primal
		s.fill()
		s.scoreRows(sums)
		if primal = sums.Primal; primal-sums.Dual > gap*primal {
			sums.Primal = rounded
		}
	}
	sums.Support = len(s.state.Class)
	sums.Working = sums.Support
	return primal
}

// round rounds the vectors to float32.
func (s *Solver) round() {
	for k, x := range s.w {
		s.w[k] = float64(float32(x))
	}
}

// scoreRows sets P to the objective of the present vectors.
func (s *Solver) scoreRows(sums *Sums) {
	sums.Primal, _ = s.regular()
	for i := range s.p.Class {
		if s.p.Rows.Norm(i) == 0 {
			sums.Primal += s.lost(i)
			continue
		}
		own, rival := s.costsAll(i)
		sums.Primal += float64(s.p.Rows.RowC(i) * (max(own, rival) - own))
	}
	sums.Visits += (s.p.Rows.X.NNZ + int64(s.p.Rows.X.Rows)) * int64(s.p.Classes)
}

// costsAllTree does what costsAll does on a tree. It also lists the choices of instance i.
func (s *Solver) costsAllTree(i int) (rival float64) {
	t, y, z := s.t, s.p.Class[i], s.all
	s.scoreAll(i, z)
	t.follow(y)
	t.need, rival = t.need[:0], math.Inf(-1)
	if t.form == Paths {
		for n := 1; n < len(t.Parent); n++ {
			if a := t.Parent[n]; a > 0 {
				z[n] += z[a]
			}
		}
		own := z[y]
		for _, r := range t.leaves {
			if int32(r) != y {
				scale, e := t.scale(y, int32(r))
				z[r] = float64(scale * (e - (own - z[r])))
				t.need = append(t.need, r)
				rival = max(rival, z[r])
			}
		}
		return rival
	}
	for _, n := range t.path[1:] {
		own, a := z[n], t.Parent[n]
		for _, r := range t.kids[t.kidsFrom[a]:t.kidsFrom[a+1]] {
			if r != n {
				z[r] = 1 - (own - z[r])
				t.need = append(t.need, uint32(r))
				rival = max(rival, z[r])
			}
		}
	}
	return rival
}

// improveAllTree solves the problem of instance i approximately, over the choices that have a dual
// and the choices that cost more than the least of these.
func (s *Solver) improveAllTree(i int, least float64) {
	r := priced{join: s.join[:0]}
	for _, m := range s.t.need {
		if g := s.all[m]; g > least && !slices.ContainsFunc(s.duals[i], func(d dual) bool { return d.class == m }) {
			r.add(joined{m, g})
		}
	}
	s.join = r.join
	list := s.duals[i]
	for _, j := range r.join {
		list = append(list, dual{j.class, 0})
	}
	n := len(list)
	s.class, s.b, s.g = resized(s.class, n), resized(s.b, n), resized(s.g, n)
	class, b, g := s.class, s.b, s.g
	for k, d := range list {
		class[k], b[k], g[k] = d.class, d.value, s.all[d.class]
	}
	s.improveTree(i, g, class, b, s.p.Rows.RowC(i))
	list = list[:0]
	for k, m := range class {
		if b[k] > 0 {
			list = append(list, dual{m, b[k]})
		}
	}
	s.duals[i] = list
}

// extrapolate takes a Nesterov step: it moves the duals and vectors further in the direction of the
// last pass. Passes alone creep where C is large and instances are alike. If D has fallen since the
// last extrapolation, it restores the iterate before that.
func (s *Solver) extrapolate() {
	d := s.value()
	switch {
	case s.momentum > 0 && d < s.before:
		for i, list := range s.then {
			s.duals[i] = append(s.duals[i][:0], list...)
			s.addUp(i)
		}
		copy(s.w, s.wThen)
		s.momentum = 0
		s.wake()
	case s.momentum == 0:
		s.then, s.wThen = resized(s.then, len(s.duals)), append(s.wThen[:0], s.w...)
		for i, list := range s.duals {
			s.then[i] = append(s.then[i][:0], list...)
		}
		s.momentum, s.before = 1, d
	default:
		s.momentum++
		s.before = d
		beta := (s.momentum - 1) / (s.momentum + 2)
		for k, x := range s.w {
			s.wThen[k] = x + float64(beta*(x-s.wThen[k]))
		}
		s.w, s.wThen = s.wThen, s.w
		for i := range s.duals {
			s.beyond(i, beta)
		}
	}
	// With Orthogonal's changing signs w is not linear in the duals.
	if s.t != nil && s.t.form == Orthogonal {
		s.state = s.pack(0, 0)
		s.fill()
	}
}

// beyond moves the duals of instance i further, by beta times their change since the last pass,
// within their bounds. w has already moved as if there were no bounds.
func (s *Solver) beyond(i int, beta float64) {
	now, then, c := s.duals[i], s.then[i], s.p.Rows.RowC(i)
	if len(now)+len(then) == 0 {
		return
	}
	x, sum := s.spread, 0.0
	for _, d := range now {
		x[d.class] = d.value + float64(beta*d.value)
	}
	for _, d := range then {
		x[d.class] -= float64(beta * d.value)
	}
	for _, d := range now {
		sum += max(x[d.class], 0)
	}
	scale := 1.0
	if sum > c*(1+1e-13) {
		scale = c / sum
	}
	list, moves, own := s.list[:0], s.moves[:0], 0.0
	for _, part := range [2][]dual{now, then} {
		for _, d := range part {
			from := x[d.class]
			x[d.class] = 0
			to := float64(scale * max(from, 0))
			if to > 0 {
				list = append(list, dual{d.class, to})
			}
			if to != from {
				moves = append(moves, move{int32(d.class), from - to})
				own += to - from
			}
		}
	}
	s.list, s.then[i], s.duals[i] = list, now, append(then[:0], list...)
	s.addUp(i)
	if len(moves) == 0 {
		return
	}
	if s.t == nil {
		moves = append(moves, move{s.p.Class[i], own})
		s.addAll(i, moves)
	} else if s.t.form != Orthogonal {
		s.t.follow(s.p.Class[i])
		for _, m := range moves {
			scale, _ := s.t.scale(s.p.Class[i], m.class)
			s.t.put(m.class, float64(-m.by*scale))
		}
		s.flush(i, s.t.form != Paths)
	}
	s.moves = moves[:0]
}

// addUp sets the sum of instance i's duals.
func (s *Solver) addUp(i int) {
	sum := 0.0
	for _, d := range s.duals[i] {
		sum += d.value
	}
	s.total[i] = min(sum, s.p.Rows.RowC(i)) // the sum may exceed C by rounding
}

// value returns D. No weights change the loss of a row without features, so its dual is at the
// bound.
func (s *Solver) value() (d float64) {
	for i, list := range s.duals {
		if s.p.Rows.Norm(i) == 0 {
			d += s.lost(i)
		}
		for _, x := range list {
			scale, e := 1.0, 1.0
			if s.t != nil {
				scale, e = s.t.scale(s.p.Class[i], int32(x.class))
			}
			d += float64(x.value * scale * e)
		}
	}
	_, below := s.regular()
	return d - below
}
