package mapper

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"taxon/internal/coupling"
	"taxon/internal/sparse"
)

// dualSolver is what the solvers of both hinge losses share: duals over a working list, the
// descents that improve them, and the pricing pass that certifies them. It takes 196 bytes a
// feature and 240 bytes a visited row.
type dualSolver struct {
	tile
	list                      // the working list
	spare    list             // the one that a pricing pass draws
	refs     []rowRef         // the list as kernels see it
	v        [][Lanes]float64 // [d+1] v = sum a y x; zero outside touched; the weights while double descends
	support  []uint16         // [d+1] lanes with support on the feature
	touched  []uint32         // features with support, ascending
	rounding [Lanes]uint8     // State.Rounding

	single descent[float32]
	duals  [][Lanes]float32 // of single
	narrow narrowTile       // where single continues with few lanes
	double descent[float64]

	gather *gatherArgs
	start  *startArgs
	mark   []uint8  // [d] of listed rows' features, while they are sought
	needed []uint32 // the features that listed rows have
	sent   []sent   // of all contributions, feature by feature
	chunk  *[scoreChunk][Lanes]float32
}

// list is a working list: rows, ascending, with their lanes, signs and duals.
type list struct {
	rows []uint32
	work []uint16
	pos  []uint16 // positive lanes of each listed row
	live []uint16 // lanes with a dual
	a    [][Lanes]float64
}

func (t *list) clear() {
	t.rows, t.work, t.pos, t.live, t.a = t.rows[:0], t.work[:0], t.pos[:0], t.live[:0], t.a[:0]
}

// put appends a row.
func (t *list) put(i uint32, work, pos, live uint16, a *[Lanes]float64) {
	t.rows, t.work, t.pos, t.live = append(t.rows, i), append(t.work, work), append(t.pos, pos), append(t.live, live)
	t.a = append(t.a, *a)
}

func newDualSolver(p *Problem) dualSolver {
	d := p.X.Cols + 1
	return dualSolver{
		tile: newTile(p), v: make([][Lanes]float64, d), support: make([]uint16, d),
		single: descent[float32]{visitArgs: &visitArgs[float32]{}}, double: descent[float64]{visitArgs: &visitArgs[float64]{}},
		narrow: narrowTile{visit: p.Kernel.narrow[p.Loss]},
		gather: &gatherArgs{}, start: &startArgs{}, mark: make([]uint8, p.X.Cols), chunk: &[scoreChunk][Lanes]float32{},
	}
}

// open begins a block: it lays out the rows to visit, their lanes, signs and duals.
func (t *dualSolver) open(b *Block, warm *State) {
	t.tile.open(b)
	t.list.clear()
	t.rounding = [Lanes]uint8{}
	if warm == nil || !warm.Priced {
		var none [Lanes]float64
		stride := t.p.sampleStride()
		for i, norm := range t.p.norm {
			if norm > 0 && (i%stride == 0 || t.sign[i] != 0) {
				t.put(uint32(i), t.lanes, t.sign[i], 0, &none)
			}
		}
	} else {
		n := len(warm.Rows)
		t.rows = append(t.rows, warm.Rows...)
		t.work, t.pos, t.live, t.a = resized(t.work, n), resized(t.pos, n), resized(t.live, n), resized(t.a, n)
		clear(t.live)
		clear(t.a)
		for k, i := range warm.Rows {
			t.work[k], t.pos[k] = warm.Work[k]|warm.Live[k], t.sign[i]
		}
	}
	if warm != nil {
		t.scatterDuals(warm)
	}
	t.refs = t.refs[:0]
	for k, i := range t.rows {
		shard := &t.p.X.Shards[i>>sparse.RowShift]
		at := int(i & (1<<sparse.RowShift - 1))
		from, to := shard.Begin[at], shard.Begin[at+1]
		r := rowRef{n: uint32(to - from), scale: t.p.Loss.scale(t.p.norm[i]), active: t.work[k], pos: t.pos[k]}
		if r.n > 0 {
			r.idx, r.val = &shard.Index[from], &shard.Value[from]
			r.room = uint16(min(uint64(len(shard.Index))-from, math.MaxUint16))
		}
		t.refs = append(t.refs, r)
	}
}

// scatterDuals copies the state's duals into the listed rows, a superset of its rows.
func (t *dualSolver) scatterDuals(warm *State) {
	at, k := 0, 0
	for j, i := range warm.Rows {
		for t.rows[k] != i {
			k++
		}
		t.live[k] = warm.Live[j]
		for m := warm.Live[j]; m != 0; m &= m - 1 {
			t.a[k][bits.TrailingZeros16(m)] = warm.Dual[at]
			at++
		}
	}
}

// close leaves the solver clean for the next block.
func (t *dualSolver) close() {
	t.tile.close()
	t.clearV()
}

func (t *dualSolver) clearV() {
	for _, f := range t.touched {
		t.v[f] = [Lanes]float64{}
		t.support[f] = 0
	}
	t.touched = t.touched[:0]
}

// descend improves the duals in the arithmetic asked for. It returns the lanes that have not
// reached their aim.
func (t *dualSolver) descend(ctx context.Context, o Options, sums *Sums) (uint16, error) {
	if o.Precise {
		t.rebuild()
		t.fillPrecise(t.v)
		t.double.onTile(t.v, t.p.Kernel.visit64[t.p.Loss])
		running, err := t.double.run(ctx, t, t.a, o, sums)
		clear(t.v)
		for k := range t.refs {
			if t.refs[k].moved != 0 {
				t.live[k] = liveLanes(&t.a[k])
			}
		}
		return running, err
	}
	t.roundDuals()
	t.startWeights()
	t.single.onTile(t.w, t.p.Kernel.visit32[t.p.Loss])
	if len(t.b.Slot) <= narrowLanes && t.narrow.visit != nil && t.single.byLane == nil {
		t.narrow.take(t)
	}
	running, err := t.single.run(ctx, t, t.duals, o, sums)
	for k := range t.refs {
		if t.refs[k].moved == 0 && t.live[k] == 0 {
			continue
		}
		t.live[k] = 0
		for m := t.work[k]; m != 0; m &= m - 1 { // no other lane looked at the row
			l := bits.TrailingZeros16(m) & 15
			a := t.duals[k][l]
			if t.a[k][l] = float64(a); a != 0 {
				t.live[k] |= 1 << l
			}
		}
	}
	return running, err
}

// liveLanes are those with a dual.
func liveLanes(duals *[Lanes]float64) (live uint16) {
	for l, a := range duals {
		if a != 0 {
			live |= 1 << l
		}
	}
	return live
}

// roundDuals copies the duals for a descent in float32, within the box.
func (t *dualSolver) roundDuals() {
	t.duals = slices.Grow(t.duals[:0], len(t.a))[:len(t.a)]
	clear(t.duals)
	for k, live := range t.live {
		for m := live; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			t.duals[k][l] = min(float32(t.a[k][l]), t.p.Loss.Bound(t.rowC(t.rows[k], t.pos[k], l)))
		}
	}
}

// startWeights sets the float32 tile to y + v at the features of the listed rows and at the bias.
// A descent starts from there. Its result is summed again in float64.
func (t *dualSolver) startWeights() {
	if t.findNeeded(); t.needsMost() {
		t.fillParents()
	} else {
		t.fillNeeded()
	}
	t.addList(t.w)
}

// addList adds the listed rows to a tile, duals times each.
func (t *dualSolver) addList(w [][Lanes]float32) {
	for from := 0; from < len(t.refs); from += visitRowsAtMost {
		*t.start = startArgs{
			rows: &t.refs[from], n: min(visitRowsAtMost, len(t.refs)-from), live: &t.live[from], dual: &t.duals[from],
			w: &w[0], last: &w[len(w)-1], bias: t.p.Bias,
		}
		t.p.Kernel.start(t.start)
	}
}

// findNeeded lists the features of the listed rows and the bias, ascending. It may stop early
// when the features are many: callers then take all features.
func (t *dualSolver) findNeeded() {
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
	t.needed = append(appendMarked(t.needed, t.mark), uint32(last))
	clear(t.mark)
}

// needsMost says whether so many features are needed that it is cheaper to take all.
func (t *dualSolver) needsMost() bool { return len(t.needed) > len(t.w)/3 }

// fillNeeded is fillParents at the needed features alone.
func (t *dualSolver) fillNeeded() {
	lanesOf, with := t.slotLanes()
	if with != 1<<Lanes-1 {
		for _, f := range t.needed {
			t.w[f] = [Lanes]float32{}
		}
	}
	for from := 0; from < len(t.needed); from += spreadLines {
		n := min(spreadLines, len(t.needed)-from)
		for slot, m := range lanesOf {
			if m != 0 {
				*t.spread = spreadArgs{w: &t.w[0], y: &t.b.Mean[slot][:len(t.w)][0], n: n, mask: uint64(m), at: &t.needed[from]}
				t.p.Kernel.spreadAt(t.spread)
			}
		}
	}
}

// fillPrecise sets a float64 tile to w = y + v.
func (t *dualSolver) fillPrecise(to [][Lanes]float64) {
	var y [Lanes][]float32
	for l := range y {
		y[l] = t.parent(l)[:len(to)]
	}
	for f := range to {
		w, v := &to[f], &t.v[f]
		for l := range w {
			w[l] = float64(y[l][f]) + v[l]
		}
	}
}

// rebuild sets v = sum_i a_i y_in x_i in float64 from the duals, row by row, and finds the
// features with support. Incremental float32 updates drift; this does not.
func (t *dualSolver) rebuild() {
	t.clearV()
	last := len(t.v) - 1
	for from := 0; from < len(t.refs); from += visitRowsAtMost {
		*t.gather = gatherArgs{
			rows: &t.refs[from], n: min(visitRowsAtMost, len(t.refs)-from), live: &t.live[from], dual: &t.a[from],
			v: &t.v[0], last: &t.v[last], support: &t.support[0], bias: float64(t.p.Bias),
		}
		t.p.Kernel.gather(t.gather)
	}
	if t.p.Bias != 0 {
		for _, live := range t.live {
			t.support[last] |= live
		}
	}
	t.touched = appendMarked(t.touched[:0], t.support)
}

// appendMarked appends the places of marks that are not zero. Which of them are is hard to foresee,
// so that no branch asks for one mark alone.
func appendMarked[T uint8 | uint16](list []uint32, mark []T) []uint32 {
	list = slices.Grow(list, len(mark))
	n := len(list)
	list = list[:n+len(mark)]
	const step = 8
	f := 0
	for ; f+step <= len(mark); f += step {
		m := (*[step]T)(mark[f:])
		if m[0]|m[1]|m[2]|m[3]|m[4]|m[5]|m[6]|m[7] == 0 {
			continue
		}
		for j, x := range m {
			list[n] = uint32(f + j)
			if x != 0 {
				n++
			}
		}
	}
	for ; f < len(mark); f++ {
		list[n] = uint32(f)
		if mark[f] != 0 {
			n++
		}
	}
	return list[:n]
}

// fillWeights sets the float32 tile w = y + v, rounded once with t.rounding: the weights that
// the certificate describes and that Weights returns.
func (t *dualSolver) fillWeights() {
	t.fillParents()
	for _, f := range t.touched {
		w, v := &t.w[f], &t.v[f]
		for m := t.support[f]; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			w[l] = weight(w[l], v[l], t.rounding[l])
		}
	}
}

// result gathers what a solve leaves. curvature is that of a parent's lanes at a touched feature.
func (t *dualSolver) result(sums Sums, priced bool, curvature func(f uint32, lanes uint16) uint8) *Result {
	r := &Result{Contributions: t.contributions(curvature), State: t.save(priced), Sums: sums}
	for k := range r.State.Rows {
		r.Sums.Support += bits.OnesCount16(r.State.Live[k])
		r.Sums.Working += bits.OnesCount16(r.State.Work[k])
	}
	return r
}

// save gathers the state: the rows that have work or duals. If no pricing pass has drawn a
// working set, all rows are visited anyway, and only duals are kept.
func (t *dualSolver) save(priced bool) State {
	s := State{Priced: priced, Rounding: t.rounding}
	rows, duals := 0, 0
	for k, live := range t.live {
		if live != 0 || priced && t.work[k] != 0 {
			rows++
			duals += bits.OnesCount16(live)
		}
	}
	s.Rows, s.Work, s.Live, s.Dual = make([]uint32, 0, rows), make([]uint16, 0, rows), make([]uint16, 0, rows), make([]float64, 0, duals)
	for k, live := range t.live {
		if live == 0 && !(priced && t.work[k] != 0) {
			continue
		}
		s.Rows, s.Work, s.Live = append(s.Rows, t.rows[k]), append(s.Work, t.work[k]), append(s.Live, live)
		for m := live; m != 0; m &= m - 1 {
			s.Dual = append(s.Dual, t.a[k][bits.TrailingZeros16(m)])
		}
	}
	return s
}

// contributions gathers, parent by parent, what the internals' solve needs.
func (t *dualSolver) contributions(curvature func(f uint32, lanes uint16) uint8) []coupling.Contribution {
	lanesOf, with := t.slotLanes()
	var of [Lanes]int // lane -> slot; lanes without a parent: none
	for slot, m := range lanesOf {
		for ; m != 0; m &= m - 1 {
			of[bits.TrailingZeros16(m)] = slot
		}
	}
	t.sent = t.sent[:0]
	count := make([]int, len(lanesOf))
	for _, f := range t.touched {
		v := &t.v[f]
		for rest := t.support[f] & with; rest != 0; {
			slot := of[bits.TrailingZeros16(rest)&15]
			m := rest & lanesOf[slot]
			rest &^= m
			sum := 0.0
			for r := m; r != 0; r &= r - 1 {
				sum += v[bits.TrailingZeros16(r)&15]
			}
			t.sent = append(t.sent, sent{sum, f, uint8(slot), curvature(f, m)})
			count[slot]++
		}
	}
	out := make([]coupling.Contribution, len(lanesOf))
	for slot, n := range count {
		out[slot] = coupling.Contribution{Parent: int32(slot), Feature: make([]uint32, n), Sum: make([]float64, n), Curvature: make([]uint8, n)}
		count[slot] = 0
	}
	for i := range t.sent {
		e := &t.sent[i]
		c, n := &out[e.slot], count[e.slot]
		c.Feature[n], c.Sum[n], c.Curvature[n] = e.feature, e.sum, e.curvature
		count[e.slot]++
	}
	return out
}

// sent is an entry of a contribution to a slot's parent.
type sent struct {
	sum       float64
	feature   uint32
	slot      uint8
	curvature uint8
}

// Weights implements Solver.
func (t *dualSolver) Weights(b *Block, s *State) []Override {
	t.open(b, &State{Priced: true, Rows: s.Rows, Work: s.Work, Live: s.Live, Dual: s.Dual})
	defer t.close()
	t.rounding = s.Rounding
	t.rebuild()
	out := make([]Override, len(b.Slot))
	for l := range out {
		y := t.parent(l)
		for _, f := range t.touched {
			if w := weight(y[f], t.v[f][l], t.rounding[l]); w != y[f] {
				out[l].Feature = append(out[l].Feature, f)
				out[l].Value = append(out[l].Value, w)
			}
		}
	}
	return out
}
