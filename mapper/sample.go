package mapper

// sampleStride is the distance of the rows that a fresh block begins with, beside its positives.
func (s *Solver) sampleStride() int { return max(1, len(s.norm)/StartRows) }

// foresee tells a pricing pass behind descents on the sample alone how far biases have yet
// to fall. All rows pull a lane's bias down sampleStride times as hard as the sample's do, so
// that scores of rows without support will fall by b, where
//
//	stride sum_i max(0, a_i - 2C b) = sum_i a_i + b/Bias^2
//
// over the sample's negatives with a dual: the squared hinge's a_i = 2C(1 - m_i) follow their
// margins m_i, and the bias gives back what its own regulariser asks. Rows whose margin is
// 1+band-b or more are not listed. Without it wordnet-freq (C = 0.15, positives weighted 8)
// lists 17 M of 150 M pairs in its first pricing, of which the next leaves 1.2 M.
//
// Rows with weights count as if each had their mean. It is a guess that costs nothing but sweeps if wrong: the next pricing lists what it missed.
func (s *Solver) foresee(t *Scratch, p *pricing) {
	stride := float64(s.sampleStride())
	if stride == 1 || s.Bias == 0 {
		return
	}
	curve := 2 * s.C * s.Total() / float64(s.X.Rows)
	give := 1 / (curve * float64(s.Bias) * float64(s.Bias))
	duals := make([]float64, 0, len(t.rows))
	for l := range p.lanes {
		duals = duals[:0]
		for k := range t.rows {
			if a := t.a[k][l]; a > 0 && t.pos[k]>>l&1 == 0 {
				duals = append(duals, a)
			}
		}
		p.fall[l] = lowering(duals, stride, give) / curve
	}
}

// lowering is the u >= 0 with stride sum_i max(0, a_i - u) = sum_i a_i + give u, for
// stride >= 1 and give >= 0. Duals at or below the value reached stay out, until none is:
// the value grows, and never beyond the solution (Michelot's projection onto a simplex). a is
// used up.
func lowering(a []float64, stride, give float64) (u float64) {
	sum := 0.0
	for _, x := range a {
		sum += x
	}
	above := sum
	for len(a) > 0 {
		next := (float64(stride*above) - sum) / (float64(stride*float64(len(a))) + give)
		if !(next > u) {
			break
		}
		u = next
		kept := a[:0]
		above = 0
		for _, x := range a {
			if x > u {
				kept = append(kept, x)
				above += x
			}
		}
		if len(kept) == len(a) {
			break
		}
		a = kept
	}
	return u
}
