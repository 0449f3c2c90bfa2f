package mapper

import (
	"math"
	"math/bits"
)

// Nudges of w = y + v before it is rounded: (1+nudge) w, on the features that v touches,
// which are all features of its support. The hinge's corner makes P feel rounding at first
// order: a margin of 1 that comes out as 1 - 1e-8 costs C 1e-8, which is 1e-5 of a small P
// at C = 100. Each margin of 1 clears the corner by a nudge, whatever share of it y has, at
// the cost of a nudge times the sum of the free duals, by first-order optimality. The
// greater ones are for features whose products are large beside their sum.
var nudges = [...]float64{0, 0x1p-24, 0x1p-23, 0x1p-22, 0x1p-21, 0x1p-20, 0x1p-19, 0x1p-18, 0x1p-17, 0x1p-16}

// chooseNudges sets each lane's nudge to the one with the least primal over the listed
// rows (the first of equals). It is a choice of W alone: duals and D stay as they are.
func (s *Solver) chooseNudges(t *Scratch, b *Block) {
	var best [Lanes]float64
	var choice [Lanes]uint8
	for c := range nudges {
		for l := range t.nudge {
			t.nudge[l] = uint8(c)
		}
		t.fillWeights(b)
		cost := s.lanePrimals(t, b)
		for l := range b.Slot {
			if c == 0 || cost[l] < best[l] {
				best[l], choice[l] = cost[l], uint8(c)
			}
		}
	}
	t.nudge = choice
}

// lanePrimals is 1/2 ||w-y||^2 + C sum loss of each lane over the listed rows.
func (s *Solver) lanePrimals(t *Scratch, b *Block) (cost [Lanes]float64) {
	for l, e := range t.edges(b) {
		cost[l] = e / 2
	}
	for k, i := range t.rows {
		idx, val := s.X.Row(int(i))
		for m := t.work[k] | t.live[k]; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			z := score64(t.w, idx, val, s.Bias, l)
			if t.pos[k]>>l&1 == 0 {
				z = -z
			}
			cost[l] += float64(s.rowC(t, i, t.pos[k], l) * s.Loss.Value(z))
		}
	}
	return cost
}

// edges are the lanes' ||w-y||^2, of the float32 tile.
func (t *Scratch) edges(b *Block) (edge [Lanes]float64) {
	for _, f := range t.touched {
		for m := t.stiff[f]; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			y := 0.0
			if slot := b.Slot[l]; slot >= 0 {
				y = float64(b.Mean[slot][f])
			}
			e := float64(t.w[f][l]) - y
			edge[l] += float64(e * e)
		}
	}
	return edge
}

// vnorms are the lanes' ||v||^2.
func (t *Scratch) vnorms() (norm [Lanes]float64) {
	for _, f := range t.touched {
		for m := t.stiff[f]; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			norm[l] += float64(t.v[f][l] * t.v[f][l])
		}
	}
	return norm
}

// weight rounds (1+nudge)(y + v) once to float32; where v is zero it is y. Adding +0 keeps
// -0 out of the tile, so that masked and unmasked updates give equal bits.
func weight(y float32, v float64, nudge uint8) float32 {
	if v == 0 {
		return y + 0
	}
	w := float64(y) + v
	return float32(w+float64(w*nudges[nudge])) + 0
}

// normBounds are bounds of the lanes' ||w|| <= ||y|| + ||v||, with room for roundings.
func (t *Scratch) normBounds(b *Block) (n [Lanes]float64) {
	y := make([]float64, len(b.Mean))
	for slot, mean := range b.Mean {
		var q [4]float64 // to hide the additions' latency
		for ; len(mean) >= 4; mean = mean[4:] {
			for j := range q {
				x := float64(mean[j])
				q[j] += float64(x * x)
			}
		}
		for j, x := range mean {
			q[j] += float64(float64(x) * float64(x))
		}
		y[slot] = math.Sqrt((q[0] + q[1]) + (q[2] + q[3]))
	}
	for l, q := range t.vnorms() {
		n[l] = math.Sqrt(q)
		if l < len(b.Slot) && b.Slot[l] >= 0 {
			n[l] += y[b.Slot[l]]
		}
		n[l] *= 1 + 0x1p-16
	}
	return n
}

// ValidNudge says whether the state's nudges are known ones: to check what was read.
func (s *State) ValidNudge() bool {
	for _, c := range s.Nudge {
		if int(c) >= len(nudges) {
			return false
		}
	}
	return true
}
