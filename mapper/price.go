package mapper

import (
	"context"
	"math"
)

// price scores every row at the tile's weights, w = y + v rounded to float32, and
// leaves the exact float64 sums of the certificate in sums and the next working set in
// the scratch: positives, rows with a dual, rows with margin below 1+band.
//
// A float32 pass finds the (row, lane) pairs that can matter: a score that is further
// from the margin than its rounding bound has loss zero for certain. Only the others
// are scored again in float64, so the sums are exact at float32's cost.
func (s *Solver) price(ctx context.Context, t *Scratch, b *Block, band float64, sums *Sums) error {
	p := pricing{s: s, t: t, lanes: len(b.Slot), band: band}
	p.all = uint16(1)<<p.lanes - 1
	p.wnorm = laneNorms(t.w)
	var rows []uint32
	var work, pos []uint16
	var a [][Lanes]float64
	k := 0
	for i := range s.X.Rows {
		if i&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var dual [Lanes]float64
		if k < len(t.rows) && t.rows[k] == uint32(i) {
			dual = t.a[k]
			k++
		}
		if s.norm[i] == 0 {
			continue
		}
		if w := p.row(i, &dual); w != 0 {
			rows, work = append(rows, uint32(i)), append(work, w)
			pos, a = append(pos, t.sign[i]), append(a, dual)
		}
	}
	t.rows, t.work, t.pos, t.a = rows, work, pos, a
	sums.Visits += p.visits
	s.close(t, b, &p, sums)
	return nil
}

// pricing accumulates a pricing pass.
type pricing struct {
	s      *Solver
	t      *Scratch
	lanes  int
	band   float64
	all    uint16
	wnorm  [Lanes]float64
	loss   [Lanes]float64 // sum_i loss
	dual   [Lanes]float64 // sum_i a (- a^2/4C)
	gap    [Lanes]float64
	visits int64
}

// row adds instance i and returns the lanes whose working set it belongs to.
func (p *pricing) row(i int, dual *[Lanes]float64) (work uint16) {
	s, t := p.s, p.t
	var sc [Lanes]float32
	idx, val := s.X.Row(i)
	score(t.w, idx, val, s.Bias, p.all, &sc)
	p.visits += int64(len(idx)+1) * int64(p.lanes)
	// |fl(x.w) - x.w| <= gamma_n ||x|| ||w||, gamma_n ~ n 2^-24
	slack := float64(len(idx)+3) * 0x1p-23 * math.Sqrt(s.norm[i])
	pos := t.sign[i]
	for l := range p.lanes {
		z := float64(sc[l])
		positive := pos>>l&1 != 0
		if !positive {
			z = -z
		}
		a := dual[l]
		if a == 0 && !positive && z > 1+p.band {
			if z > 1+slack*p.wnorm[l] {
				continue
			}
		} else {
			work |= 1 << l
		}
		if a != 0 || !(z > 1+slack*p.wnorm[l]) { // so that a NaN counts, too
			p.exact(idx, val, l, positive, a)
		}
	}
	return work
}

// exact adds one (row, lane) pair in float64.
func (p *pricing) exact(idx []uint32, val []float32, l int, positive bool, a float64) {
	z := score64(p.t.w, idx, val, p.s.Bias, l)
	if !positive {
		z = -z
	}
	p.loss[l] += p.s.Loss.Value(z)
	p.dual[l] += p.s.Loss.DualTerm(a, p.s.C)
	p.gap[l] += p.s.Loss.InnerGap(z, a, p.s.C)
}

// close adds the quadratic terms and the zero rows' constants.
func (s *Solver) close(t *Scratch, b *Block, p *pricing, sums *Sums) {
	edge, vnorm := t.edges(b), t.vnorms()
	zero := float64(s.nzero) * s.C // loss C each in P; their duals give the same in D
	for l := range p.lanes {
		sums.Primal += edge[l]/2 + float64(s.C*p.loss[l]) + zero
		sums.Dual += p.dual[l] - vnorm[l]/2 + zero
		sums.InnerGap += p.gap[l]
	}
}
