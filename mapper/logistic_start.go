package mapper

import "math"

// startBias sets v of lanes that begin at zero to the best weight of the bias feature alone,
//
//	min_u  1/2 u^2 + sum_i C_i log(1 + exp(-y_i B u)),
//
// which for a rare class is far below zero: Newton's method would take five steps to get
// there, during which every row bends the loss.
func (s *Solver) startBias(t *Scratch, b *Block, e *logit) {
	last := len(e.v) - 1
	if s.Bias == 0 {
		return
	}
	for l, slot := range b.Slot {
		if slot >= 0 && b.Mean[slot][last] != 0 {
			continue
		}
		n := float64(len(b.Positive[l]))
		positive, negative, scale := t.cPos[l]*n, s.C*(float64(s.X.Rows)-n), float64(s.Bias)
		slope := func(u float64) float64 {
			x := u * scale
			return u - positive*scale/(1+math.Exp(x)) + negative*scale/(1+math.Exp(-x))
		}
		lo, hi := -64/scale, 64/scale
		for range 20 { // to a digit or three: the digits of exp do not matter
			if mid := (lo + hi) / 2; slope(mid) > 0 {
				hi = mid
			} else {
				lo = mid
			}
		}
		e.v[last][l] = float32(math.Round(lo*64) / 64)
	}
}
