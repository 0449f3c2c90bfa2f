package mapper

import (
	"math/bits"
	"unsafe"
)

// gathering is the argument of a gathering kernel: v_l += sum_i a_il y_il x_i over n listed
// rows. Its layout is known to assembly, as sweep's.
type gathering struct {
	rows  *rowRef
	n     int
	live  *uint16         // of each row, the lanes with a dual; the duals of others are zero
	dual  *[Lanes]float64 // of each row
	v     *[Lanes]float64 // the tile
	last  *[Lanes]float64 // its last line, the bias feature's
	stiff *uint16         // of each feature but the bias: the lanes of its rows are added
	bias  float64
}

// gatherRows adds row by row: equal bits whichever lanes it leaves out, as v never holds -0.
func gatherRows(e *gathering) {
	rows := unsafe.Slice(e.rows, e.n)
	live, dual := unsafe.Slice(e.live, e.n), unsafe.Slice(e.dual, e.n)
	var coef [Lanes]float64
	for k := range rows {
		r := &rows[k]
		for m := live[k]; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			coef[l] = dual[k][l]
			if r.pos>>l&1 == 0 {
				coef[l] = -coef[l]
			}
			e.last[l] += float64(e.bias * coef[l])
		}
		idx, val := unsafe.Slice(r.idx, r.n), unsafe.Slice(r.val, r.n)
		for j, f := range idx {
			if val[j] == 0 {
				continue
			}
			stiff := (*uint16)(unsafe.Add(unsafe.Pointer(e.stiff), uintptr(f)*2))
			v := (*[Lanes]float64)(unsafe.Add(unsafe.Pointer(e.v), uintptr(f)*unsafe.Sizeof(coef)))
			*stiff |= live[k]
			x := float64(val[j])
			for m := live[k]; m != 0; m &= m - 1 {
				l := bits.TrailingZeros16(m) & 15
				v[l] += float64(coef[l] * x)
			}
		}
	}
}

// rebuild sets v = sum_i a_i y_in x_i in float64 from the duals, row by row, and marks
// the stiff features. Incremental float32 updates drift; this does not.
func (s *Solver) rebuild(t *Scratch) {
	t.clearV()
	last := len(t.v) - 1
	for from := 0; from < len(t.refs); from += visitRowsAtMost {
		e := t.gathering
		*e = gathering{
			rows: &t.refs[from], n: min(visitRowsAtMost, len(t.refs)-from), live: &t.live[from], dual: &t.a[from],
			v: &t.v[0], last: &t.v[last], stiff: &t.stiff[0], bias: float64(s.Bias),
		}
		s.Kernel.gather(e)
	}
	if s.Bias != 0 {
		for _, live := range t.live {
			t.stiff[last] |= live
		}
	}
	t.listTouched()
}

// listTouched lists the features that a lane has support on, ascending, four at a look.
func (t *Scratch) listTouched() {
	t.touched = t.touched[:0]
	f := 0
	for ; f+4 <= len(t.stiff); f += 4 {
		four := (*[4]uint16)(t.stiff[f:])
		if four[0]|four[1]|four[2]|four[3] == 0 {
			continue
		}
		for j, lanes := range four {
			if lanes != 0 {
				t.touched = append(t.touched, uint32(f+j))
			}
		}
	}
	for ; f < len(t.stiff); f++ {
		if t.stiff[f] != 0 {
			t.touched = append(t.touched, uint32(f))
		}
	}
}
