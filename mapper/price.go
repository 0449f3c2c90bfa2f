package mapper

import (
	"context"
	"math"
	"math/bits"
)

// scoreChunk is the number of rows that a full pass scores at a time, so that their scores stay in
// the nearest cache.
const scoreChunk = 256

// price runs a full pass at the tile's weights, w = y + v rounded to float32. It adds the exact
// float64 sums of the certificate to sums, and replaces the list by the next working set:
// positives, rows with a dual, and rows with a margin below 1+band-fall, or fewer of these in lanes
// whose band is crowded. fall is how far each lane's scores are expected to fall. behindSample says
// that the duals come from descents on a sample of the rows.
//
// A float32 pass finds the (row, lane) pairs that can matter. A score further from the margin than
// its rounding bound has loss zero for certain. Only the others are scored again in float64, so the
// sums are exact at float32's cost.
func (t *dualSolver) price(ctx context.Context, band float64, fall [Lanes]float64, behindSample bool,
	sums *Sums) error {
	vnorm := t.vnorms()
	q := pricing{dualSolver: t, band: band, wnorm: t.normBounds(&vnorm), fall: t.crowding(band, fall, behindSample)}
	t.spare.clear()
	rows := t.p.X.Rows
	for from := 0; from < rows; from += scoreChunk {
		if from&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		q.takeRows(from, min(from+scoreChunk, rows))
	}
	t.list, t.spare = t.spare, t.list
	sums.Visits += (t.p.X.NNZ + int64(rows)) * int64(len(t.b.Slot))
	edge, empty := t.edges(), t.emptyRows()
	for l := range t.b.Slot {
		zero := empty[l]
		sums.Primal += edge[l]/2 + q.loss[l] + zero
		sums.Dual += q.dual[l] - vnorm[l]/2 + zero
		sums.InnerGap += q.gap[l]
	}
	return nil
}

// A full pass on large data lists at most bandShare rows of a band for each positive and each
// support vector of a lane, and bandLeast more. It counts them beforehand on bandSample rows of
// each chunk, in bandBins bins of distance.
const bandShare, bandLeast, bandSample, bandBins = 3, 64, 16, 64

// crowding returns fall, enlarged for the lanes whose band holds too many rows. Where documents
// share few words with most classes, the scores of nearly all rows lie just beyond the margin. A
// band of a fixed width then lists many times more rows than the class has support vectors. Rows
// with a margin below 1 are listed in any case.
//
// After descents on a sample the same limit also holds inside the margin, from margin 0 on: weights
// fitted to a few thousand rows leave about one in a hundred of all others short of the margin.
// Only the worst of them are listed. Rows on the wrong side, with a margin below 0, are listed in
// any case.
func (t *dualSolver) crowding(band float64, fall [Lanes]float64, behindSample bool) [Lanes]float64 {
	if t.p.sampleStride() == 1 || band == math.MaxFloat64 || band == 0 && !behindSample {
		return fall
	}
	begin := 1.0 // margins from here on may be left out
	if behindSample {
		begin = 0
	}
	var width [Lanes]float64 // from begin to the end of the band
	for l := range width {
		width[l] = 1 + band - fall[l] - begin
	}
	var short [Lanes]int            // sampled rows before begin
	var within [Lanes][bandBins]int // those after it, by distance
	for l := range Lanes {
		t.score.floor[l] = math.Nextafter32(float32(-begin-width[l]), float32(math.Inf(-1)))
	}
	for from := 0; from < t.p.X.Rows; from += scoreChunk {
		n := min(bandSample, t.p.X.Rows-from)
		t.scoreRows(t.p.X, t.w, from, n, &t.chunk[0])
		for i, low := range t.low[:n] {
			for m := low & t.lanes &^ t.sign[from+i]; m != 0; m &= m - 1 {
				l := bits.TrailingZeros16(m) & 15
				switch beyond := -float64(t.chunk[i][l]) - begin; {
				case !(beyond > 0):
					short[l]++
				case beyond <= width[l]:
					within[l][min(int(beyond*bandBins/width[l]), bandBins-1)]++
				}
			}
		}
	}
	var own [Lanes]int
	for k, live := range t.live {
		for m := live | t.pos[k]; m != 0; m &= m - 1 {
			own[bits.TrailingZeros16(m)&15]++
		}
	}
	for l := range t.b.Slot {
		room := (bandShare*own[l]+bandLeast)*bandSample/scoreChunk - short[l]
		for b, n := range within[l] {
			if room -= n; room < 0 {
				fall[l] += width[l] * (bandBins - float64(b)) / bandBins
				break
			}
		}
	}
	return fall
}

// pricing accumulates a full pass. The sums are per lane.
type pricing struct {
	*dualSolver
	band float64
	fall [Lanes]float64
	// none is the duals of a row that is not listed: zeros.
	none [Lanes]float64
	// next is the place of the first listed row that the pass has not reached.
	next int
	// wnorm bounds ||w||.
	wnorm [Lanes]float64
	loss  [Lanes]float64 // sum_i C_i loss
	dual  [Lanes]float64 // sum_i a (- a^2/4C)
	gap   [Lanes]float64
}

// rounding returns a bound of |fl(x.w) - x.w| / ||w|| for a row with n nonzeros and squared norm q.
// The error is at most gamma_n ||x||, where gamma_n is about n 2^-24. The bound is twice that, for
// safety.
func rounding(n int, q float64) float64 { return float64(n+3) * 0x1p-23 * math.Sqrt(q) }

// takeRows prices the rows [from, to), which must lie in one shard.
func (q *pricing) takeRows(from, to int) {
	slack := float64(q.p.slack[from/scoreChunk])
	for l := range Lanes {
		beyond := max(1+q.band, 1+slack*q.wnorm[l])
		q.score.floor[l] = math.Nextafter32(float32(-beyond), float32(math.Inf(-1)))
	}
	q.scoreRows(q.p.X, q.w, from, to-from, &q.chunk[0])
	listed := q.rows
	for i := from; i < to; i++ {
		if q.next < len(listed) && listed[q.next] == uint32(i) {
			q.row(i, q.low[i-from], q.live[q.next], &q.a[q.next])
			q.next++
		} else if (q.low[i-from]|q.sign[i])&q.lanes != 0 {
			q.row(i, q.low[i-from], 0, &q.none)
		}
	}
}

// row adds instance i to the sums, and lists it if a lane's working set wants it. low is the mask
// of the lanes whose score is not certainly beyond the margin.
func (q *pricing) row(i int, low, live uint16, dual *[Lanes]float64) {
	t := q.dualSolver
	if t.p.norm[i] == 0 {
		return
	}
	pos := t.sign[i]
	work := (pos | live) & t.lanes
	exact := work
	slack := -1.0
	for m := low & t.lanes &^ work; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		z := -float64(t.chunk[i%scoreChunk][l])
		if slack < 0 {
			idx, _ := t.p.X.Row(i)
			slack = rounding(len(idx), t.p.norm[i])
		}
		if !(z > 1+q.band-q.fall[l]) {
			work |= 1 << l
		}
		if !(z > 1+slack*q.wnorm[l]) { // also true of NaN
			exact |= 1 << l
		}
	}
	if exact != 0 {
		q.add(i, exact, pos, dual)
	}
	if work != 0 {
		t.spare.put(uint32(i), work, pos, live, dual)
	}
}

// add adds a row's lanes to the sums in float64.
func (q *pricing) add(i int, lanes, pos uint16, dual *[Lanes]float64) {
	t, loss := q.dualSolver, q.p.Loss
	t.exactScores(i)
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		z, c := t.exact.out[l], t.rowC(uint32(i), pos, l)
		if pos>>l&1 == 0 {
			z = -z
		}
		cost := float64(c * loss.Value(z))
		q.loss[l] += cost
		if a := dual[l]; a != 0 {
			q.dual[l] += loss.DualTerm(a, c)
			q.gap[l] += loss.InnerGap(z, a, c)
		} else {
			q.gap[l] += cost
		}
	}
}

// emptyRows returns, for each lane, the sum of the losses of the rows without nonzeros. Each has
// the loss C_in. Their duals add the same sum to D.
func (t *dualSolver) emptyRows() (loss [Lanes]float64) {
	if t.p.empty == 0 {
		return loss
	}
	all := 0.0
	for i, norm := range t.p.norm {
		if norm == 0 {
			all += t.p.weighted(uint32(i), 1)
		}
	}
	for l, rows := range t.b.Positive {
		positive := 0.0
		for _, i := range rows {
			if t.p.norm[i] == 0 {
				positive += t.p.weighted(i, 1)
			}
		}
		loss[l] = float64(positive*t.cPos[l]) + float64((all-positive)*t.c)
	}
	return loss
}

// edges returns ||w-y||^2 of each lane, for the float32 tile w.
func (t *dualSolver) edges() (edge [Lanes]float64) {
	y := t.parents()
	for _, line := range t.touched {
		f := t.feature(line)
		w := &t.w[f]
		for m := t.support[line]; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			e := float64(w[l]) - float64(y[l][f])
			edge[l] += float64(e * e)
		}
	}
	return edge
}

// vnorms returns ||v||^2 of each lane.
func (t *dualSolver) vnorms() (norm [Lanes]float64) {
	for _, line := range t.touched {
		v := &t.v[line]
		for m := t.support[line]; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			norm[l] += float64(v[l] * v[l])
		}
	}
	return norm
}

// normBounds returns an upper bound of ||w|| for each lane, which is ||y|| + ||v|| with room for
// roundings. vnorm holds ||v||^2.
func (t *dualSolver) normBounds(vnorm *[Lanes]float64) (n [Lanes]float64) {
	y := make([]float64, len(t.b.Mean))
	for slot, mean := range t.b.Mean {
		var q0, q1, q2, q3 float64 // to hide the additions' latency
		for ; len(mean) >= 4; mean = mean[4:] {
			m := (*[4]float32)(mean)
			x0, x1, x2, x3 := float64(m[0]), float64(m[1]), float64(m[2]), float64(m[3])
			q0 += float64(x0 * x0)
			q1 += float64(x1 * x1)
			q2 += float64(x2 * x2)
			q3 += float64(x3 * x3)
		}
		for _, x := range mean {
			q0 += float64(float64(x) * float64(x))
		}
		y[slot] = math.Sqrt((q0 + q1) + (q2 + q3))
	}
	for l, q := range vnorm {
		n[l] = math.Sqrt(q)
		if l < len(t.b.Slot) && t.b.Slot[l] >= 0 {
			n[l] += y[t.b.Slot[l]]
		}
		n[l] *= 1 + 0x1p-16
	}
	return n
}

// Scorer scores rows at up to Lanes vectors by the float32 kernels. Only one goroutine may use it
// at a time.
type Scorer struct{ tile }

// NewScorer returns a scorer of the problem's rows.
func (p *Problem) NewScorer() *Scorer { return &Scorer{newTile(p)} }

// Weights returns the memory of the vectors, feature by feature, with the bias last. The caller
// writes the vectors there before it calls Rows.
func (s *Scorer) Weights() [][Lanes]float32 { return s.w }

// ScoreRows is the greatest number of rows that Rows scores at a time.
const ScoreRows = scoreChunk

// Rows scores rows from to from+n-1. n is at most ScoreRows, and from a multiple of it. Bit l of
// low[i] says that row from+i's score at vector l is not below floor. low is valid until the next
// call.
func (s *Scorer) Rows(from, n int, floor float32, out *[ScoreRows][Lanes]float32) (low []uint16) {
	for l := range s.score.floor {
		s.score.floor[l] = floor
	}
	s.scoreRows(s.p.X, s.w, from, n, &out[0])
	return s.low[:n]
}

// Norm returns the squared norm of row i, including the bias.
func (p *Problem) Norm(i int) float64 { return p.norm[i] }

// Rounding bounds the error of a float32 score of row i at w by Rounding(i) ||w||.
func (p *Problem) Rounding(i int) float64 {
	idx, _ := p.X.Row(i)
	return rounding(len(idx), p.norm[i])
}

// RowC returns C of row i, multiplied by the row's weight.
func (p *Problem) RowC(i int) float64 { return p.weighted(uint32(i), p.C) }
