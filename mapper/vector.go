package mapper

import (
	"math/bits"
	"slices"
)

// rebuild sets v = sum_i a_i y_in x_i in float64 from the duals, row by row, and marks
// the stiff features. Incremental float32 updates drift; this does not.
func (s *Solver) rebuild(t *Scratch) {
	t.clearV()
	bias := float64(s.Bias)
	last := uint32(s.X.Cols)
	for k, i := range t.rows {
		live := t.liveLanes(k)
		if live == 0 {
			continue
		}
		idx, val := s.X.Row(int(i))
		for j, f := range idx {
			if val[j] != 0 {
				t.add(f, float64(val[j]), live, k)
			}
		}
		if bias != 0 {
			t.add(last, bias, live, k)
		}
	}
	slices.Sort(t.touched)
}

// add puts x times the signed duals of listed row k into feature f.
func (t *Scratch) add(f uint32, x float64, live uint16, k int) {
	if t.stiff[f] == 0 {
		t.touched = append(t.touched, f)
	}
	t.stiff[f] |= live
	v, a, pos := &t.v[f], &t.a[k], t.pos[k]
	for m := live; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		p := float64(a[l] * x)
		if pos>>l&1 == 0 {
			p = -p
		}
		v[l] += p
	}
}

// fillWeights sets the float32 tile w = y + v (nudged), rounded once; these are the weights
// that the certificate describes and that Weights returns.
func (t *Scratch) fillWeights(b *Block) {
	var y [Lanes][]float32
	for l := range y {
		y[l] = t.zero
		if l < len(b.Slot) && b.Slot[l] >= 0 {
			y[l] = b.Mean[b.Slot[l]][:len(t.w)]
		}
	}
	spread(t.w, &y)
	for _, f := range t.touched {
		w, v := &t.w[f], &t.v[f]
		for l := range b.Slot {
			w[l] = weight(w[l], v[l], t.nudge[l])
		}
	}
}

// fillPrecise sets the float64 tile w = y + v.
func (t *Scratch) fillPrecise(b *Block) {
	if t.w64 == nil {
		t.w64 = make([][Lanes]float64, len(t.w))
	}
	for l := range Lanes {
		y := t.zero
		if l < len(b.Slot) && b.Slot[l] >= 0 {
			y = b.Mean[b.Slot[l]]
		}
		for f := range t.w64 {
			t.w64[f][l] = float64(y[f]) + t.v[f][l]
		}
	}
}

// spread interleaves sixteen vectors: w[f][l] = y[l][f].
func spread(w [][Lanes]float32, y *[Lanes][]float32) {
	for from := 0; from < Lanes; from += 4 {
		y0, y1, y2, y3 := y[from][:len(w)], y[from+1][:len(w)], y[from+2][:len(w)], y[from+3][:len(w)]
		for f := range w {
			p := (*[4]float32)(w[f][from:])
			p[0], p[1], p[2], p[3] = y0[f], y1[f], y2[f], y3[f]
		}
	}
}

// contributions gathers, parent by parent, what the internals' solve needs.
func (t *Scratch) contributions(b *Block) []Contribution {
	lanesOf := make([]uint16, len(b.Mean))
	for l, slot := range b.Slot {
		if slot >= 0 {
			lanesOf[slot] |= 1 << l
		}
	}
	out := make([]Contribution, len(b.Mean))
	for slot := range out {
		out[slot] = t.contribution(slot, lanesOf[slot])
	}
	return out
}

func (t *Scratch) contribution(slot int, lanes uint16) Contribution {
	n := 0
	for _, f := range t.touched {
		if t.stiff[f]&lanes != 0 {
			n++
		}
	}
	c := Contribution{Slot: slot, Feature: make([]uint32, 0, n), Sum: make([]float64, 0, n), Stiff: make([]uint8, 0, n)}
	for _, f := range t.touched {
		m := t.stiff[f] & lanes
		if m == 0 {
			continue
		}
		sum := 0.0
		for r := m; r != 0; r &= r - 1 {
			sum += t.v[f][bits.TrailingZeros16(r)]
		}
		c.Feature = append(c.Feature, f)
		c.Sum = append(c.Sum, sum)
		c.Stiff = append(c.Stiff, uint8(bits.OnesCount16(m)))
	}
	return c
}

// Override is a lane's weights where they differ from its parent's: Feature ascending
// (the bias is feature d), Value the whole weight, not the difference.
type Override struct {
	Feature []uint32
	Value   []float32
}

// Weights returns the lanes' final float32 weights y + v as overrides of their
// parents', by the same rounding that the certificate used.
func (s *Solver) Weights(t *Scratch, b *Block, st *State) []Override {
	if s.Loss == Logistic {
		return s.smoothWeights(t, b, st)
	}
	t.load(s, b, &State{Priced: true, Rows: st.Rows, Work: st.Work, Live: st.Live, Dual: st.Dual})
	t.nudge = st.Nudge
	defer t.unload(b)
	s.rebuild(t)
	out := make([]Override, len(b.Slot))
	for l, slot := range b.Slot {
		for _, f := range t.touched {
			y := float32(0)
			if slot >= 0 {
				y = b.Mean[slot][f]
			}
			if w := weight(y, t.v[f][l], t.nudge[l]); w != y {
				out[l].Feature = append(out[l].Feature, f)
				out[l].Value = append(out[l].Value, w)
			}
		}
	}
	return out
}
