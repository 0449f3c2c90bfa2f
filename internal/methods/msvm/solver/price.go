package solver

import (
	"cmp"
	"context"
	"math"
	"slices"

	"taxon/mapper"
)

const (
	// band determines which classes may join an instance's working set. The score of such a class
	// is at most this much below the least score in the set.
	band = 0.1
	// joinAtMost is the number of classes without a dual that may join a working set. Those with
	// the greatest scores do.
	joinAtMost = 16
)

// joined is a class that may join a working set.
type joined struct {
	class uint32
	score float64
}

// priced holds what a full pass has computed for an instance.
type priced struct {
	// own is G_iy.
	own float64
	// most is the greatest G so far.
	most float64
	// floor is the G below which classes neither cost nor join.
	floor float64
	join  []joined
}

// certified runs a full pass at the vectors rounded to float32, as they are written. If rounding
// alone keeps a small problem above the gap, it runs it at the float64 vectors instead.
func (s *Solver) certified(ctx context.Context, sums *Sums, gap float64) (*State, error) {
	s.rebuild()
	_, below := s.regular()
	s.round()
	next, err := s.price(ctx, sums, below)
	if err != nil || sums.Primal-sums.Dual <= gap*sums.Primal || len(s.w) > smallWeights {
		return next, err
	}
	s.fill()
	exact := *sums
	if next, err = s.price(ctx, &exact, below); err != nil || exact.Primal-exact.Dual <= gap*exact.Primal {
		*sums = exact
	}
	return next, err
}

// price scores every instance at every class, sets P and D, to which the vectors contribute -below,
// and returns the duals with new working sets. A pass in float32 finds the scores that can matter,
// and these are computed again in float64.
func (s *Solver) price(ctx context.Context, sums *Sums, below float64) (*State, error) {
	sums.Primal, sums.Dual, sums.Support = 0, -below, 0
	if s.t != nil {
		return s.priceTree(ctx, sums)
	}
	x, rows := s.p.Rows.X, make([]priced, s.p.Rows.X.Rows)
	for i := range rows {
		r := &rows[i]
		r.own = s.score(i, s.p.Class[i])
		r.most = r.own
		least, total := math.Inf(1), 0.0
		for k := s.state.Begin[i]; k < s.state.Begin[i+1]; k++ {
			if b := s.state.Value[k]; b > 0 {
				g := 1 + s.score(i, int32(s.state.Class[k]))
				r.most, least = max(r.most, g), min(least, g)
				total += b
			}
		}
		if total < s.p.Rows.RowC(i) {
			least = min(least, r.own)
		}
		r.floor = least - band
	}
	for first := 0; first < s.p.Classes; first += mapper.Lanes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.priceClasses(first, min(s.p.Classes-first, mapper.Lanes), rows)
	}
	sums.Visits += (x.NNZ + int64(x.Rows)) * int64(s.p.Classes)
	return s.close(rows, sums), nil
}

// score returns the score of instance i at a class.
func (s *Solver) score(i int, m int32) float64 {
	idx, val := s.p.Rows.X.Row(i)
	return s.product(int(m), idx, val[:len(idx)])
}

// float32Unit bounds the relative error of rounding to float32.
const float32Unit = 1.0 / (1 << 24)

// rounding bounds the error of a score of instance i at vectors rounded to float32, for vectors of
// norm 1.
func (s *Solver) rounding(i int) float64 {
	return s.p.Rows.Rounding(i) + float64(2*float32Unit*math.Sqrt(s.p.Rows.Norm(i)))
}

// tile sets the scorer's first n vectors to what weight returns, and the others to zero. It returns
// the greatest norm.
func (s *Solver) tile(n int, weight func(f, l int) float32) (norm float64) {
	w := s.scorer.Weights()
	for l := range mapper.Lanes {
		if l >= n {
			for f := range w {
				w[f][l] = 0
			}
			continue
		}
		square := 0.0
		for f := range w {
			r := weight(f, l)
			w[f][l] = r
			square += float64(float64(r) * float64(r))
		}
		norm = max(norm, square)
	}
	return math.Sqrt(norm)
}

// priceClasses scores all instances at up to sixteen classes.
func (s *Solver) priceClasses(first, n int, rows []priced) {
	norm := s.tile(n, func(f, l int) float32 { return float32(s.w[f*s.step+(first+l)*s.classStride]) })
	lanes := uint16(1)<<n - 1
	for from := 0; from < len(rows); from += mapper.ScoreRows {
		chunk := rows[from:min(from+mapper.ScoreRows, len(rows))]
		floor, slack := math.Inf(1), 0.0
		for i := range chunk {
			slack = max(slack, s.rounding(from+i)*norm)
			floor = min(floor, min(chunk[i].floor, chunk[i].most))
		}
		below := math.Nextafter32(float32(floor-1-slack), float32(math.Inf(-1)))
		for i, low := range s.scorer.Rows(from, len(chunk), below, &s.out) {
			if low &= lanes; low != 0 {
				s.priceRow(from+i, &chunk[i], first, low, slack)
			}
		}
	}
}

// priceRow considers the classes of an instance whose float32 score is not certainly too low.
func (s *Solver) priceRow(i int, r *priced, first int, low uint16, slack float64) {
	own := int(s.p.Class[i]) - first
	for l, z := range &s.out[i%mapper.ScoreRows] {
		if low>>l&1 == 0 || l == own {
			continue
		}
		if g := 1 + float64(z); !(g+slack < r.most) {
			r.most = max(r.most, 1+s.score(i, int32(first+l)))
		}
		if g := 1 + float64(z); g >= r.floor {
			r.add(joined{uint32(first + l), float64(z)})
		}
	}
}

// add lets a class join. If joinAtMost have joined, it replaces the one with the lowest score, if
// that is lower.
func (r *priced) add(j joined) {
	if len(r.join) < joinAtMost {
		r.join = append(r.join, j)
		return
	}
	least := 0
	for k := range r.join {
		if r.join[k].score < r.join[least].score {
			least = k
		}
	}
	if r.join[least].score < j.score {
		r.join[least] = j
	}
}

// lost returns the loss of an instance without features, which does not depend on the vectors.
func (s *Solver) lost(i int) float64 {
	if s.t == nil {
		return s.p.Rows.RowC(i)
	}
	return float64(s.p.Rows.RowC(i) * s.t.lost(s.p.Class[i]))
}

// close adds up P and D and returns the new working sets.
func (s *Solver) close(rows []priced, sums *Sums) *State {
	next := &State{Begin: make([]uint64, 1, len(rows)+1)}
	var list []dual
	for i := range rows {
		r, c := &rows[i], s.p.Rows.RowC(i)
		if s.p.Rows.Norm(i) == 0 { // its dual is at the bound
			sums.Primal += s.lost(i)
			sums.Dual += s.lost(i)
			next.Begin = append(next.Begin, uint64(len(next.Class)))
			continue
		}
		sums.Primal += float64(c * (r.most - r.own))
		list = list[:0]
		for k := s.state.Begin[i]; k < s.state.Begin[i+1]; k++ {
			if b := s.state.Value[k]; b > 0 {
				list = append(list, dual{s.state.Class[k], b})
				if s.t != nil {
					scale, e := s.t.scale(s.p.Class[i], int32(s.state.Class[k]))
					sums.Dual += float64(b * scale * e)
				} else {
					sums.Dual += b
				}
				sums.Support++
			}
		}
		with := list
		for _, j := range r.join {
			if !slices.ContainsFunc(with, func(d dual) bool { return d.class == j.class }) {
				list = append(list, dual{j.class, 0})
			}
		}
		slices.SortFunc(list, func(a, b dual) int { return cmp.Compare(a.class, b.class) })
		for _, d := range list {
			next.Class, next.Value = append(next.Class, d.class), append(next.Value, d.value)
		}
		next.Begin = append(next.Begin, uint64(len(next.Class)))
	}
	above, _ := s.regular()
	sums.Primal += above
	next.Sign = s.state.Sign
	sums.Working = len(next.Class)
	next.Primal, next.Dual = sums.Primal, sums.Dual
	return next
}
