package mapper

import (
	"math/bits"
	"unsafe"
)

// starting is the argument of a starting kernel: w_l += sum_i a_il y_il x_i over n listed
// rows, in float32. Its layout is known to assembly, as sweep's.
type starting struct {
	rows *rowRef
	n    int
	live *uint16         // of each row, the lanes with a dual; the duals of others are zero
	dual *[Lanes]float32 // of each row
	w    *[Lanes]float32 // the tile
	last *[Lanes]float32 // its last line, the bias feature's
	bias float32
}

// layRows adds row by row. Lanes without a dual may get +0 or -0 added.
func layRows(e *starting) {
	rows := unsafe.Slice(e.rows, e.n)
	live, dual := unsafe.Slice(e.live, e.n), unsafe.Slice(e.dual, e.n)
	for k := range rows {
		r := &rows[k]
		idx, val := unsafe.Slice(r.idx, r.n), unsafe.Slice(r.val, r.n)
		for m := live[k]; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			coef := dual[k][l]
			if r.pos>>l&1 == 0 {
				coef = -coef
			}
			e.last[l] += float32(e.bias * coef)
			for j, f := range idx {
				w := (*[Lanes]float32)(unsafe.Add(unsafe.Pointer(e.w), uintptr(f)*unsafe.Sizeof(*e.w)))
				w[l] += float32(coef * val[j])
			}
		}
	}
}

// startWeights sets the float32 tile to y + v where listed rows look: their features and
// the bias. A descent goes on from there; what it ends at is added up anew, in float64.
func (s *Solver) startWeights(t *Scratch, b *Block) {
	if t.findNeeded(); t.needsMost() {
		t.spread(b)
	} else {
		t.spreadNeeded(b)
	}
	s.layList(t, t.w)
}

// layList adds the listed rows to a tile, a32 times each.
func (s *Solver) layList(t *Scratch, tile [][Lanes]float32) {
	for from := 0; from < len(t.refs); from += visitRowsAtMost {
		e := t.starting
		*e = starting{
			rows: &t.refs[from], n: min(visitRowsAtMost, len(t.refs)-from), live: &t.live[from], dual: &t.a32[from],
			w: &tile[0], last: &tile[len(tile)-1], bias: s.Bias,
		}
		s.Kernel.start(e)
	}
}

// findNeeded lists the features of the listed rows and the bias, ascending. If they are
// many the list may be cut short: all are as good.
func (t *Scratch) findNeeded() {
	t.needed = t.needed[:0]
	entries := 0
	for k := range t.refs {
		entries += int(t.refs[k].n)
	}
	last := len(t.w) - 1
	if entries > 4*last {
		t.needed = resized(t.needed, last)
		return
	}
	for k := range t.refs {
		for _, f := range unsafe.Slice(t.refs[k].idx, t.refs[k].n) {
			t.mark[f] = 1
		}
	}
	for f, m := range t.mark {
		if m != 0 {
			t.needed = append(t.needed, uint32(f))
			t.mark[f] = 0
		}
	}
	t.needed = append(t.needed, uint32(last))
}

// needsMost says whether so many features are needed that taking all of them costs less.
func (t *Scratch) needsMost() bool { return len(t.needed) > len(t.w)/3 }

// spreadNeeded is spread at the needed features alone.
func (t *Scratch) spreadNeeded(b *Block) {
	lanesOf := slotLanes(b)
	with := uint16(0)
	for _, m := range lanesOf {
		with |= m
	}
	if with != 1<<Lanes-1 {
		for _, f := range t.needed {
			t.w[f] = [Lanes]float32{}
		}
	}
	e := t.spreading
	for from := 0; from < len(t.needed); from += spreadAtATime {
		n := min(spreadAtATime, len(t.needed)-from)
		for slot, m := range lanesOf {
			if m != 0 {
				*e = spreading{w: &t.w[0], y: &b.Mean[slot][:len(t.w)][0], n: n, mask: uint64(m), at: &t.needed[from]}
				t.kernel.spreadAt(e)
			}
		}
	}
}
