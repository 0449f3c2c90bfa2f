package mapper

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
)

// lane is one class's descent: LIBLINEAR's shrinking bounds and the running estimate
// of its inner gap.
type lane[T real] struct {
	upper, lower       T // shrink bounds: last epoch's largest and smallest projected gradient
	newUpper, newLower T
	estimate           float64 // sum of InnerGap over the rows as they were visited
}

// descend runs epochs of dual coordinate descent over the working list.
//
//	for rows i in random order, lanes l active on i:
//	  G = y_il w_l.x_i - 1 (+ a_il/(2C))
//	  a_il <- min(max(a_il - G/(||x_i||^2 (+ 1/(2C))), 0), C)   (squared hinge: no upper bound)
//	  w_l += (change of a_il) y_il x_i
//
// [TKDD] section 4 with Algorithm 3 of Hsieh et al. 2008; an epoch costs one pass over
// the active rows' nonzeros. A lane ends when its estimated inner gap is at most
// o.InnerGap (not before o.Epochs, not after o.MaxEpochs).
func descend[T real](ctx context.Context, s *Solver, t *Scratch, w [][Lanes]T, lanes int, o Options, sums *Sums) error {
	var st [Lanes]lane[T]
	inf := T(math.Inf(1))
	running := uint16(1<<lanes - 1)
	for l := range st {
		st[l].upper, st[l].lower = inf, -inf
	}
	t.startOrder()
	for epoch := 0; running != 0 && epoch < max(o.Epochs, o.MaxEpochs); epoch++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		shuffle(t.order, o.Seed, uint64(epoch))
		for l := range st {
			st[l].newUpper, st[l].newLower, st[l].estimate = -inf, inf, 0
		}
		sums.Visits += visit(s, t, w, running, &st)
		sums.Epochs = epoch + 1
		sums.Estimate = 0
		for l := range lanes {
			st[l].nextBounds()
			sums.Estimate += st[l].estimate
			if epoch+1 >= o.Epochs && st[l].estimate <= o.InnerGap {
				running &^= 1 << l
			}
		}
		t.compactOrder()
	}
	return nil
}

func (l *lane[T]) nextBounds() {
	inf := T(math.Inf(1))
	l.upper, l.lower = l.newUpper, l.newLower
	if l.upper <= 0 {
		l.upper = inf
	}
	if l.lower >= 0 {
		l.lower = -inf
	}
}

// startOrder makes every listed row active on its working lanes.
func (t *Scratch) startOrder() {
	t.order = t.order[:0]
	t.active = append(t.active[:0], t.work...)
	for k := range t.rows {
		if t.active[k] != 0 {
			t.order = append(t.order, uint32(k))
		}
	}
}

// compactOrder drops the rows that no lane looks at any more.
func (t *Scratch) compactOrder() {
	kept := t.order[:0]
	for _, k := range t.order {
		if t.active[k] != 0 {
			kept = append(kept, k)
		}
	}
	t.order = kept
}

// shuffle permutes order; the same seed and epoch give the same permutation.
func shuffle(order []uint32, seed, epoch uint64) {
	r := rand.NewPCG(seed, epoch)
	for i := len(order) - 1; i > 0; i-- {
		hi, _ := bits.Mul64(r.Uint64(), uint64(i+1)) // uniform to within 2^-40: enough for an order
		order[i], order[hi] = order[hi], order[i]
	}
}

// visit takes the rows in order, once, and returns the nonzeros touched.
func visit[T real](s *Solver, t *Scratch, w [][Lanes]T, running uint16, st *[Lanes]lane[T]) (visits int64) {
	var score16, delta [Lanes]T
	bias, bound, soft := T(s.Bias), T(s.Loss.Bound(s.C)), T(0)
	if s.Loss == SquaredHinge {
		soft = T(1 / (2 * s.C))
	}
	for _, k := range t.order {
		mask := t.active[k] & running
		if mask == 0 {
			continue
		}
		i := t.rows[k]
		idx, val := s.X.Row(int(i))
		score(w, idx, val, bias, mask, &score16)
		visits += int64(len(idx)+1) * int64(bits.OnesCount16(mask))
		step := 1 / (T(s.norm[i]) + soft)
		a, pos := &t.a[k], t.pos[k]
		var changed uint16
		for m := mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			sign := T(-1)
			if pos>>l&1 != 0 {
				sign = 1
			}
			z := sign * score16[l]
			old := T(a[l])
			g := z - 1 + T(old*soft)
			ln := &st[l]
			ln.estimate += s.Loss.InnerGap(float64(z), float64(old), s.C)
			if old == 0 {
				if g > ln.upper {
					t.active[k] &^= 1 << l
					continue
				}
				ln.newUpper = max(ln.newUpper, min(g, 0))
				ln.newLower = min(ln.newLower, min(g, 0))
				if g >= 0 {
					continue
				}
			} else if old == bound {
				if g < ln.lower {
					t.active[k] &^= 1 << l
					continue
				}
				ln.newUpper = max(ln.newUpper, max(g, 0))
				ln.newLower = min(ln.newLower, max(g, 0))
				if g <= 0 {
					continue
				}
			} else {
				ln.newUpper = max(ln.newUpper, g)
				ln.newLower = min(ln.newLower, g)
			}
			now := min(max(old-T(g*step), 0), bound)
			if now != old {
				a[l] = float64(now)
				delta[l] = sign * (now - old)
				changed |= 1 << l
			}
		}
		if changed != 0 {
			update(w, idx, val, bias, changed, &delta)
		}
	}
	return visits
}
