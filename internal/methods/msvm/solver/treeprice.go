package solver

import (
	"context"
	"math"

	"taxon/mapper"
)

// known appends to z the scores of the nodes on the path to an instance's leaf, by level. With
// Paths these are the sums of the scores from the top.
func (s *Solver) known(i int, z []float64) []float64 {
	t, sum := s.t, 0.0
	t.follow(s.p.Class[i])
	for _, n := range t.path[1:] {
		x := s.score(i, n)
		if sum += x; t.form == Paths {
			x = sum
		}
		z = append(z, x)
	}
	return z
}

// cost returns s_r (e_r - m_r), given what known returned.
func (s *Solver) cost(i int, r int32, z []float64) float64 {
	t := s.t
	scale, e := t.scale(s.p.Class[i], r)
	other := 0.0
	if t.form != Paths {
		return e - (z[t.level[r]-1] - s.score(i, r))
	}
	a := s.p.Class[i]
	// Down to the last common node both sums are alike.
	for a != r {
		if a > r {
			a = t.Parent[a]
		} else {
			other += s.score(i, r)
			r = t.Parent[r]
		}
	}
	if t.level[a] > 0 {
		other += z[t.level[a]-1]
	}
	return float64(scale * (e - (z[len(z)-1] - other)))
}

// priceTree does what price does for a tree. Choices are scored as classes are, and those that can
// matter again in float64. With Paths the scored vectors are sums over the paths.
func (s *Solver) priceTree(ctx context.Context, sums *Sums) (*State, error) {
	t, x := s.t, s.p.Rows.X
	rows, z := make([]priced, x.Rows), make([][]float64, x.Rows)
	flat := make([]float64, 0, x.Rows)
	for i := range rows {
		r := &rows[i]
		from := len(flat)
		flat = s.known(i, flat)
		z[i] = flat[from:len(flat):len(flat)]
		least, total := math.Inf(1), 0.0
		for k := s.state.Begin[i]; k < s.state.Begin[i+1]; k++ {
			if b := s.state.Value[k]; b > 0 {
				g := s.cost(i, int32(s.state.Class[k]), z[i])
				r.most, least = max(r.most, g), min(least, g)
				total += b
			}
		}
		if total < s.p.Rows.RowC(i) {
			least = min(least, 0)
		}
		r.floor = least - band
	}
	var targets []int32
	for n := int32(1); int(n) < len(t.Parent); n++ {
		if t.form == Paths && t.Leaf[n] || t.form != Paths && t.kidsFrom[t.Parent[n]+1]-t.kidsFrom[t.Parent[n]] > 1 {
			targets = append(targets, n)
		}
	}
	for first := 0; first < len(targets); first += mapper.Lanes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.priceTargets(targets[first:min(first+mapper.Lanes, len(targets))], rows, z)
	}
	sums.Visits += (x.NNZ + int64(x.Rows)) * int64(len(targets))
	return s.close(rows, sums), nil
}

// priceTargets scores all instances at up to sixteen leaves or nodes.
func (s *Solver) priceTargets(targets []int32, rows []priced, z [][]float64) {
	t := s.t
	norm := s.tile(len(targets), func(f, l int) float32 {
		n := targets[l]
		if t.form != Paths {
			return float32(s.w[f*s.step+int(n)*s.classStride])
		}
		sum := 0.0
		for ; n > 0; n = t.Parent[n] {
			sum += s.w[f*s.step+int(n)*s.classStride]
		}
		return float32(sum)
	})
	lanes := uint16(1)<<len(targets) - 1
	for from := 0; from < len(rows); from += mapper.ScoreRows {
		chunk := rows[from:min(from+mapper.ScoreRows, len(rows))]
		floor, slack := math.Inf(1), 0.0
		for i := range chunk {
			slack = max(slack, s.rounding(from+i)*norm)
			if own := z[from+i]; len(own) > 0 {
				floor = min(floor, t.reach(own, min(chunk[i].floor, chunk[i].most)))
			}
		}
		below := math.Nextafter32(float32(floor-slack), float32(math.Inf(-1)))
		for i, low := range s.scorer.Rows(from, len(chunk), below, &s.out) {
			if low &= lanes; low != 0 && s.p.Rows.Norm(from+i) > 0 {
				s.priceChoices(from+i, &chunk[i], targets, low, slack, z[from+i])
			}
		}
	}
}

// reach returns a score below which no choice costs as much as g, whichever Delta it has.
func (t *nodes) reach(own []float64, g float64) float64 {
	last := own[len(own)-1]
	switch {
	case t.form != Paths:
		for _, x := range own {
			last = min(last, x)
		}
		return last - 1 + g
	case t.Margin:
		return last - t.most + g
	}
	return last - 1 + min(g, g/t.most) // Delta is at least 1
}

// priceChoices considers the choices of an instance whose float32 score is not certainly too low.
func (s *Solver) priceChoices(i int, r *priced, targets []int32, low uint16, slack float64, z []float64) {
	t, y := s.t, s.p.Class[i]
	for l, n := range targets {
		if low>>l&1 == 0 || !t.chooses(y, n) {
			continue
		}
		own := z[len(z)-1]
		if t.form != Paths {
			own = z[t.level[n]-1]
		}
		scale, e := t.scale(y, n)
		g := float64(scale * (e - own + float64(s.out[i%mapper.ScoreRows][l])))
		if !(g+float64(scale*slack) < r.most) {
			r.most = max(r.most, s.cost(i, n, z))
		}
		if g >= r.floor {
			r.add(joined{uint32(n), g})
		}
	}
}
