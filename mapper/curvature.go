package mapper

import (
	"math"
	"math/bits"
)

// StiffUnit is what one wholly stiff terminal counts in the contributions of losses that
// are stiff by degrees.
const StiffUnit = 15

// degree is the stiffness of a terminal's Moreau envelope where its loss has curvature h.
func degree(h float32) float32 {
	if !(h < math.MaxFloat32/2) {
		return 1
	}
	return h / (1 + h)
}

// stiffUnits is a sum of degrees in StiffUnits, rounded up.
func stiffUnits(sum float32) uint8 { return uint8(math.Ceil(float64(sum * StiffUnit))) }

// bendSquared bounds the squared hinge's Hessian 2 sum_{i: a_i > 0} C_i x_i x_i' by its row
// sums, feature by feature, from the rows with a dual: h_f = 2 sum C_i |x_if| ||x_i||_1.
// Stiffness h/(1+h) then majorises the envelope (operator monotony of t/(1+t)).
// Values below zero would need |x|: there every terminal counts as wholly stiff, which
// t.curve nil says, too, where degrees aren't wanted.
//
// It overwrites a32 and the listed rows' signs: the descent is over.
func (s *Solver) bendSquared(t *Scratch, wanted bool) {
	if t.curve = nil; !wanted || s.negative || s.Bias < 0 {
		return
	}
	if t.curves == nil {
		t.curves = make([][Lanes]float32, len(t.w))
	}
	t.curve = t.curves
	for _, f := range t.touched {
		t.curve[f] = [Lanes]float32{}
	}
	t.a32 = resized(t.a32, len(t.live))
	for k, live := range t.live {
		t.a32[k], t.refs[k].pos = [Lanes]float32{}, 1<<Lanes-1 // rows add up whatever their sign
		if live == 0 {
			continue
		}
		size := s.Bias
		_, val := s.X.Row(int(t.rows[k]))
		for _, x := range val {
			size += x
		}
		for m := live; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			t.a32[k][l] = float32(2 * s.rowC(t, t.rows[k], t.pos[k], l) * float64(size))
		}
	}
	s.layList(t, t.curve)
}

// stiffness of a parent's lanes at a touched feature.
func (t *Scratch) stiffness(loss Loss, f uint32, lanes uint16) uint8 {
	n := uint8(bits.OnesCount16(lanes))
	switch {
	case loss == Hinge:
		return n
	case t.curve == nil:
		return n * StiffUnit
	}
	sum := float32(0)
	for m := lanes; m != 0; m &= m - 1 {
		sum += degree(t.curve[f][bits.TrailingZeros16(m)&15])
	}
	return stiffUnits(sum)
}
