package mapper

import (
	"math/bits"
	"unsafe"
)

// scoreArgs is the argument of a score kernel: the scores of n consecutive rows of a shard.
// Assembly knows its layout, as it does that of visitArgs.
type scoreArgs struct {
	begin    *uint64         // n+1 bounds of the rows' entries
	n        int             //
	idx      *uint32         // the shard's entries
	val      *float32        //
	w        *[Lanes]float32 // the tile, features lines
	last     *[Lanes]float32 // its last line
	out      *[Lanes]float32 // out: the scores of each row
	low      *uint16         // out: lanes of each row, see scoreRows
	entries  uint64          // of the shard
	features int
	_        [6]int

	bias  [Lanes]float32 // the bias feature's value, in every lane
	floor [Lanes]float32
}

// scoreRows sets out[i][l] = w_l.x_i and bit l of low[i] where it is not below floor[l].
func scoreRows(e *scoreArgs) {
	w := unsafe.Slice(e.w, e.features)
	begin := unsafe.Slice(e.begin, e.n+1)
	out, low := unsafe.Slice(e.out, e.n), unsafe.Slice(e.low, e.n)
	idx, val := unsafe.Slice(e.idx, e.entries), unsafe.Slice(e.val, e.entries)
	for i := range out {
		a, b := begin[i], begin[i+1]
		scoreRow(w, idx[a:b], val[a:b], &e.bias, 1<<Lanes-1, &out[i])
		low[i] = 0
		for l, s := range &out[i] {
			if !(s < e.floor[l]) {
				low[i] |= 1 << l
			}
		}
	}
}

// addArgs is the argument of an add kernel: w_l += coef[i][l] x_i for n consecutive rows of a
// shard. Assembly knows its layout, as it does that of visitArgs.
type addArgs struct {
	begin    *uint64         // n+1 bounds of the rows' entries
	n        int             //
	idx      *uint32         // the shard's entries
	val      *float32        //
	w        *[Lanes]float32 // the tile, features lines
	last     *[Lanes]float32 // its last line
	coef     *[Lanes]float32 // of each row
	entries  uint64          // of the shard
	features int
	_        [7]int

	bias [Lanes]float32 // the bias feature's value, in every lane
}

// addRows adds the rows in order, feature by feature.
func addRows(e *addArgs) {
	w := unsafe.Slice(e.w, e.features)
	begin, coef := unsafe.Slice(e.begin, e.n+1), unsafe.Slice(e.coef, e.n)
	idx, val := unsafe.Slice(e.idx, e.entries), unsafe.Slice(e.val, e.entries)
	for i := range coef {
		a, b := begin[i], begin[i+1]
		addRow(w, idx[a:b], val[a:b], &e.bias, 1<<Lanes-1, &coef[i])
	}
}

// scoreRow sets s[l] = bias w[last][l] + sum_j val[j] w[idx[j]][l] for the lanes of mask,
// by the partial sums that parts describes. Other lanes of s are undefined.
func scoreRow[T real](w [][Lanes]T, idx []uint32, val []float32, bias *[Lanes]T, mask uint16, s *[Lanes]T) {
	for mask != 0 {
		l0 := bits.TrailingZeros16(mask) & 15
		if mask &= mask - 1; mask == 0 {
			s[l0], _ = scoreTwo(w, idx, val, bias, l0, l0)
			return
		}
		l1 := bits.TrailingZeros16(mask) & 15
		mask &= mask - 1
		s[l0], s[l1] = scoreTwo(w, idx, val, bias, l0, l1)
	}
}

// scoreTwo scores lanes l and k. Its eight chains of additions fit into the registers.
func scoreTwo[T real](w [][Lanes]T, idx []uint32, val []float32, bias *[Lanes]T, l, k int) (T, T) {
	l, k = l&15, k&15
	p := &w[len(w)-1]
	var l1, l2, l3, k1, k2, k3 T
	l0, k0 := T(bias[l]*p[l]), T(bias[k]*p[k])
	for ; len(idx) >= parts; idx, val = idx[parts:], val[parts:] {
		v := (*[parts]float32)(val)
		p0, p1, p2, p3 := &w[idx[0]], &w[idx[1]], &w[idx[2]], &w[idx[3]]
		l0 += T(T(v[0]) * p0[l])
		k0 += T(T(v[0]) * p0[k])
		l1 += T(T(v[1]) * p1[l])
		k1 += T(T(v[1]) * p1[k])
		l2 += T(T(v[2]) * p2[l])
		k2 += T(T(v[2]) * p2[k])
		l3 += T(T(v[3]) * p3[l])
		k3 += T(T(v[3]) * p3[k])
	}
	if len(idx) > 0 {
		p, x := &w[idx[0]], T(val[0])
		l0 += T(x * p[l])
		k0 += T(x * p[k])
	}
	if len(idx) > 1 {
		p, x := &w[idx[1]], T(val[1])
		l1 += T(x * p[l])
		k1 += T(x * p[k])
	}
	if len(idx) > 2 {
		p, x := &w[idx[2]], T(val[2])
		l2 += T(x * p[l])
		k2 += T(x * p[k])
	}
	return (l0 + l1) + (l2 + l3), (k0 + k1) + (k2 + k3)
}

// addRow adds delta[l] x to the lanes of mask: w[idx[j]][l] += val[j] delta[l].
func addRow[T real](w [][Lanes]T, idx []uint32, val []float32, bias *[Lanes]T, mask uint16, delta *[Lanes]T) {
	for ; mask != 0; mask &= mask - 1 {
		l := bits.TrailingZeros16(mask) & 15
		d := delta[l]
		w[len(w)-1][l] += T(bias[l] * d)
		for j, c := range idx {
			w[c][l] += T(T(val[j]) * d)
		}
	}
}

// exactArgs is the argument of an exact kernel: one row's sixteen scores in float64, in which
// products of float32 are exact. Assembly knows its layout, as it does that of visitArgs.
type exactArgs struct {
	idx      *uint32
	val      *float32
	n        int
	w        *[Lanes]float32 // the tile, features lines
	last     *[Lanes]float32 // its last line
	features int
	bias     float64
	_        int
	out      [Lanes]float64 // out
}

// exactRow sets out to the scores. It sums each lane's products from the bias on, in the row's
// order.
func exactRow(e *exactArgs) {
	w := unsafe.Slice(e.w, e.features)
	idx, val := unsafe.Slice(e.idx, e.n), unsafe.Slice(e.val, e.n)
	for l, x := range &w[len(w)-1] {
		e.out[l] = e.bias * float64(x)
	}
	for j, c := range idx {
		x, p := float64(val[j]), &w[c]
		for l := range p {
			e.out[l] += float64(x * float64(p[l]))
		}
	}
}

// score64 returns one lane's score in float64, with the bits that exactRow gives.
func score64(w [][Lanes]float32, idx []uint32, val []float32, bias float32, l int) float64 {
	s := float64(bias) * float64(w[len(w)-1][l])
	for j, c := range idx {
		s += float64(float64(val[j]) * float64(w[c][l]))
	}
	return s
}

// spreadArgs is the argument of a spread kernel: w[f][l] = y[f] for the lanes l of mask.
// Assembly knows its layout, as it does that of visitArgs.
type spreadArgs struct {
	w    *[Lanes]float32
	y    *float32
	n    int // features
	mask uint64
}

// spreadLine copies one parent's vector to its lanes.
func spreadLine(e *spreadArgs) {
	w, y := unsafe.Slice(e.w, e.n), unsafe.Slice(e.y, e.n)
	var lanes []int
	for m := uint16(e.mask); m != 0; m &= m - 1 {
		lanes = append(lanes, bits.TrailingZeros16(m)&15)
	}
	for f, x := range y {
		for _, l := range lanes {
			w[f][l] = x
		}
	}
}

// gatherArgs is the argument of a gather kernel: v_l += sum_i a_il y_il x_i over n listed
// rows. Assembly knows its layout, as it does that of visitArgs.
type gatherArgs struct {
	rows    *rowRef
	n       int
	live    *uint16         // mask of each row's lanes with a dual
	dual    *[Lanes]float64 // of each row; zero in other lanes
	v       *[Lanes]float64 // the tile
	last    *[Lanes]float64 // its last line, the bias feature's
	support *uint16         // of each feature but the bias: out
	bias    float64
}

// gatherRows adds row by row, and adds the lanes of a row to the support of its features. It gives
// equal bits whichever lanes without a dual it skips, as v never holds -0.
func gatherRows(e *gatherArgs) {
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
			support := (*uint16)(unsafe.Add(unsafe.Pointer(e.support), uintptr(f)*2))
			v := (*[Lanes]float64)(unsafe.Add(unsafe.Pointer(e.v), uintptr(f)*unsafe.Sizeof(coef)))
			*support |= live[k]
			x := float64(val[j])
			for m := live[k]; m != 0; m &= m - 1 {
				l := bits.TrailingZeros16(m) & 15
				v[l] += float64(coef[l] * x)
			}
		}
	}
}

// startArgs is the argument of a start kernel: w_l += sum_i a_il y_il x_i over n listed
// rows, in float32. Assembly knows its layout, as it does that of visitArgs.
type startArgs struct {
	rows *rowRef
	n    int
	live *uint16         // mask of each row's lanes with a dual
	dual *[Lanes]float32 // of each row; zero in other lanes
	w    *[Lanes]float32 // the tile
	last *[Lanes]float32 // its last line, the bias feature's
	bias float32
}

// startRows adds row by row. Implementations may add +0 or -0 to lanes without a dual.
func startRows(e *startArgs) {
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
