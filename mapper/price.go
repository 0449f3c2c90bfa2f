package mapper

import (
	"context"
	"math"
	"math/bits"

	"taxon/internal/sparse"
)

// scoreChunk is the number of rows that a pricing pass scores at a time: their scores
// stay in the nearest cache.
const scoreChunk = 256

// price scores every row at the tile's weights, w = y + v rounded to float32, and
// leaves the exact float64 sums of the certificate in sums and the next working set in
// the scratch: positives, rows with a dual, rows with margin below 1+band (less what foresee
// says if the descent saw a sample alone).
//
// A float32 pass finds the (row, lane) pairs that can matter: a score that is further
// from the margin than its rounding bound has loss zero for certain. Only the others
// are scored again in float64, so the sums are exact at float32's cost.
func (s *Solver) price(ctx context.Context, t *Scratch, b *Block, band float64, sampled bool, sums *Sums) error {
	p := pricing{s: s, t: t, lanes: len(b.Slot), band: band}
	if sampled && s.Loss == SquaredHinge {
		s.foresee(t, &p)
	}
	p.all = uint16(1)<<p.lanes - 1
	p.wnorm = t.normBounds(b)
	t.spare.clear()
	for from := 0; from < s.X.Rows; from += scoreChunk {
		if from&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p.score(from, min(from+scoreChunk, s.X.Rows))
	}
	t.list, t.spare = t.spare, t.list
	sums.Visits += (s.X.NNZ + int64(s.X.Rows)) * int64(p.lanes)
	s.close(t, b, &p, sums)
	return nil
}

// pricing accumulates a pricing pass.
type pricing struct {
	s     *Solver
	t     *Scratch
	lanes int
	band  float64
	fall  [Lanes]float64 // by which scores are expected to fall: see foresee
	all   uint16
	none  [Lanes]float64 // duals of a row that is not listed
	next  int            // first listed row that was not passed yet
	wnorm [Lanes]float64
	loss  [Lanes]float64 // sum_i C_i loss
	dual  [Lanes]float64 // sum_i a (- a^2/4C)
	gap   [Lanes]float64
}

// rounding bounds |fl(x.w) - x.w| / ||w|| of a row with n nonzeros and squared norm q:
// gamma_n ||x||, gamma_n ~ n 2^-24, twice that for safety.
func rounding(n int, q float64) float64 { return float64(n+3) * 0x1p-23 * math.Sqrt(q) }

// score takes rows from..to-1, which lie in one shard.
func (p *pricing) score(from, to int) {
	s, t, e := p.s, p.t, p.t.scoring
	shard := &s.X.Shards[from>>sparse.RowShift]
	*e = scoring{
		begin: &shard.Begin[from&(1<<sparse.RowShift-1)], n: to - from, w: &t.w[0], last: &t.w[len(t.w)-1],
		out: &t.chunk[0], low: &t.low[0], entries: uint64(len(shard.Index)), features: len(t.w),
	}
	if len(shard.Index) > 0 {
		e.idx, e.val = &shard.Index[0], &shard.Value[0]
	}
	slack := float64(s.slack[from/scoreChunk])
	for l := range Lanes {
		e.bias[l] = s.Bias
		beyond := max(1+p.band, 1+slack*p.wnorm[l])
		e.floor[l] = math.Nextafter32(float32(-beyond), float32(math.Inf(-1)))
	}
	s.Kernel.score(e)
	listed := t.rows
	for i := from; i < to; i++ {
		if p.next < len(listed) && listed[p.next] == uint32(i) {
			p.row(i, t.low[i-from], t.live[p.next], &t.a[p.next])
			p.next++
		} else if (t.low[i-from]|t.sign[i])&p.all != 0 {
			p.row(i, t.low[i-from], 0, &p.none)
		}
	}
}

// row adds instance i and lists it if a lane's working set wants it. low holds the lanes
// whose score is not certainly beyond the margin.
func (p *pricing) row(i int, low, live uint16, dual *[Lanes]float64) {
	s, t := p.s, p.t
	if s.norm[i] == 0 {
		return
	}
	pos := t.sign[i]
	var work, exact uint16
	slack := -1.0
	for m := (low | pos | live) & p.all; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		if (pos|live)>>l&1 == 0 {
			z := -float64(t.chunk[i%scoreChunk][l])
			if slack < 0 {
				idx, _ := s.X.Row(i)
				slack = rounding(len(idx), s.norm[i])
			}
			if !(z > 1+p.band-p.fall[l]) {
				work |= 1 << l
			}
			if !(z > 1+slack*p.wnorm[l]) { // so that a NaN counts, too
				exact |= 1 << l
			}
			continue
		}
		work |= 1 << l
		exact |= 1 << l
	}
	if exact != 0 {
		p.exact(i, exact, pos, dual)
	}
	if work != 0 {
		t.spare.put(uint32(i), work, pos, live, dual)
	}
}

// exact adds a row's lanes in float64.
func (p *pricing) exact(i int, lanes, pos uint16, dual *[Lanes]float64) {
	s, t, e := p.s, p.t, p.t.exacting
	idx, val := s.X.Row(i)
	s.exactScores(t, idx, val)
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		z, c := e.out[l], s.rowC(t, uint32(i), pos, l)
		if pos>>l&1 == 0 {
			z = -z
		}
		p.loss[l] += float64(c * s.Loss.Value(z))
		if a := dual[l]; a != 0 {
			p.dual[l] += s.Loss.DualTerm(a, c)
			p.gap[l] += s.Loss.InnerGap(z, a, c)
		} else {
			p.gap[l] += float64(c * s.Loss.Value(z))
		}
	}
}

// exactScores leaves the row's sixteen float64 scores in t.exacting.out.
func (s *Solver) exactScores(t *Scratch, idx []uint32, val []float32) {
	e := t.exacting
	e.n, e.w, e.last, e.features, e.bias = len(idx), &t.w[0], &t.w[len(t.w)-1], len(t.w), float64(s.Bias)
	if len(idx) > 0 {
		e.idx, e.val = &idx[0], &val[0]
	}
	s.Kernel.exact(e)
}

// close adds the quadratic terms and the zero rows' constants.
func (s *Solver) close(t *Scratch, b *Block, p *pricing, sums *Sums) {
	edge, vnorm := t.edges(b), t.vnorms()
	for l := range p.lanes {
		zero := s.zeroRows(t, b, l)
		sums.Primal += edge[l]/2 + p.loss[l] + zero
		sums.Dual += p.dual[l] - vnorm[l]/2 + zero
		sums.InnerGap += p.gap[l]
	}
}

// zeroRows is the loss of the rows without nonzeros, C_in each; their duals give the same
// in D.
func (s *Solver) zeroRows(t *Scratch, b *Block, l int) float64 {
	if s.nzero == 0 {
		return 0
	}
	positive := 0.0
	for _, i := range b.Positive[l] {
		if s.norm[i] == 0 {
			positive += s.weighted(i, 1)
		}
	}
	all := float64(s.nzero)
	if s.Weight != nil {
		all = 0
		for i, w := range s.Weight {
			if s.norm[i] == 0 {
				all += w
			}
		}
	}
	return float64(positive*t.cPos[l]) + float64((all-positive)*s.C)
}
