package mapper

import "math/bits"

// fillWeights sets the float32 tile w = y + v (nudged), rounded once; these are the weights
// that the certificate describes and that Weights returns.
func (t *Scratch) fillWeights(b *Block) {
	t.spread(b)
	for _, f := range t.touched {
		w, v := &t.w[f], &t.v[f]
		for m := t.stiff[f]; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			w[l] = weight(w[l], v[l], t.nudge[l])
		}
	}
}

// spread sets w[f][l] = y_l[f].
func (t *Scratch) spread(b *Block) {
	lanesOf := slotLanes(b)
	with := uint16(0)
	for _, m := range lanesOf {
		with |= m
	}
	if with != 1<<Lanes-1 {
		clear(t.w)
	}
	e := t.spreading
	for from := 0; from < len(t.w); from += spreadAtATime {
		n := min(spreadAtATime, len(t.w)-from)
		for slot, m := range lanesOf {
			if m != 0 {
				*e = spreading{w: &t.w[from], y: &b.Mean[slot][from : from+n][0], n: n, mask: uint64(m)}
				t.kernel.spread(e)
			}
		}
	}
}

// spreadAtATime is the number of lines that all parents fill before the next ones: they
// stay in the nearest cache.
const spreadAtATime = 256

// slotLanes are the lanes that have each slot's parent.
func slotLanes(b *Block) []uint16 {
	lanes := make([]uint16, len(b.Mean))
	for l, slot := range b.Slot {
		if slot >= 0 {
			lanes[slot] |= 1 << l
		}
	}
	return lanes
}

// fillPrecise sets the float64 tile w = y + v.
func (t *Scratch) fillPrecise(b *Block) {
	if t.w64 == nil {
		t.w64 = make([][Lanes]float64, len(t.w))
	}
	var y [Lanes][]float32
	for l := range y {
		y[l] = t.zero
		if l < len(b.Slot) && b.Slot[l] >= 0 {
			y[l] = b.Mean[b.Slot[l]][:len(t.w64)]
		}
	}
	for f := range t.w64 {
		w, v := &t.w64[f], &t.v[f]
		for l := range w {
			w[l] = float64(y[l][f]) + v[l]
		}
	}
}

// contributions gathers, parent by parent, what the internals' solve needs.
func (s *Solver) contributions(t *Scratch, b *Block) []Contribution {
	lanesOf := slotLanes(b)
	var of [Lanes]int // lane -> slot; lanes without a parent: none
	var with uint16
	for slot, m := range lanesOf {
		with |= m
		for ; m != 0; m &= m - 1 {
			of[bits.TrailingZeros16(m)] = slot
		}
	}
	count := make([]int, len(b.Mean))
	for _, f := range t.touched {
		for m := t.stiff[f] & with; m != 0; {
			slot := of[bits.TrailingZeros16(m)]
			count[slot]++
			m &^= lanesOf[slot]
		}
	}
	out := make([]Contribution, len(b.Mean))
	for slot, n := range count {
		out[slot] = Contribution{Slot: slot, Feature: make([]uint32, 0, n), Sum: make([]float64, 0, n), Stiff: make([]uint8, 0, n)}
	}
	for _, f := range t.touched {
		for rest := t.stiff[f] & with; rest != 0; {
			slot := of[bits.TrailingZeros16(rest)]
			m := rest & lanesOf[slot]
			rest &^= m
			sum := 0.0
			for r := m; r != 0; r &= r - 1 {
				sum += t.v[f][bits.TrailingZeros16(r)&15]
			}
			c := &out[slot]
			c.Feature = append(c.Feature, f)
			c.Sum = append(c.Sum, sum)
			c.Stiff = append(c.Stiff, t.stiffness(s.Loss, f, m))
		}
	}
	return out
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
	s.prepare(t)
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
