package mapper

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"taxon/internal/linalg/contribution"
	"taxon/internal/linalg/sparse"
)

// dualSolver is the part that the solvers of both hinge losses share: the duals over a working
// list, the descents that improve them, and the full pass that certifies them. It takes 64 bytes
// per feature, 138 more per line, 240 bytes per visited row, and 4 per entry of a visited row.
type dualSolver struct {
	tile
	// list is the working list.
	list
	// spare is the list that a full pass draws.
	spare list
	// refs is the list as kernels see it.
	refs []rowRef
	// lines are those of v, of support, and of the tile that descents work on.
	lines
	// v is sum a y x, zero outside of touched. While a precise descent runs it holds the weights.
	v [][Lanes]float64
	// support is the mask of the lanes with support on each line's feature.
	support []uint16
	// touched lists the lines with support, ascending.
	touched []uint32
	// rounding is State.Rounding.
	rounding [Lanes]uint8

	single descent[float32]
	// duals are those of single, narrow the tile on which it continues with few lanes.
	duals  [][Lanes]float32
	narrow narrowTile
	double descent[float64]

	gather *gatherArgs
	start  *startArgs
	// sent lists the entries of all contributions, feature by feature.
	sent  []sent
	chunk *[scoreChunk][Lanes]float32
}

// list is a working list. It holds rows in ascending order, each with its lanes, signs and duals.
type list struct {
	rows []uint32
	// work is the mask of the lanes that visit each row.
	work []uint16
	// pos is the mask of each row's positive lanes.
	pos []uint16
	// live is the mask of the lanes with a nonzero dual.
	live []uint16
	// a holds the duals.
	a [][Lanes]float64
}

// clear empties the list.
func (t *list) clear() {
	t.rows, t.work, t.pos, t.live, t.a = t.rows[:0], t.work[:0], t.pos[:0], t.live[:0], t.a[:0]
}

// put appends a row.
func (t *list) put(i uint32, work, pos, live uint16, a *[Lanes]float64) {
	t.rows, t.work, t.pos, t.live = append(t.rows, i), append(t.work, work), append(t.pos, pos), append(t.live, live)
	t.a = append(t.a, *a)
}

func newDualSolver(p *Problem) dualSolver {
	return dualSolver{
		tile: newTile(p), lines: newLines(p.X.Cols),
		single: descent[float32]{visitArgs: &visitArgs[float32]{}},
		double: descent[float64]{visitArgs: &visitArgs[float64]{}},
		narrow: narrowTile{visit: p.Kernel.narrow[p.Loss]},
		gather: &gatherArgs{}, start: &startArgs{}, chunk: &[scoreChunk][Lanes]float32{},
	}
}

// open begins a block. It lists the rows to visit, with their lanes, signs and duals.
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
	t.lay(t.refs, t.p.X.Cols)
	// Both are zero between blocks, also beyond their length.
	t.v, t.support = resized(t.v, t.lines.n), resized(t.support, t.lines.n)
}

// scatterDuals copies the duals of a state into the listed rows, which include all rows of the
// state.
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

// close clears the solver for the next block.
func (t *dualSolver) close() {
	t.tile.close()
	t.clearV()
}

// clearV sets v and the marks of the support to zero, visiting only entries that are not zero.
func (t *dualSolver) clearV() {
	for _, line := range t.touched {
		t.v[line] = [Lanes]float64{}
		t.support[line] = 0
	}
	t.touched = t.touched[:0]
}

// descend improves the duals in the arithmetic that o asks for. It returns the lanes that have not
// reached o.InnerGap.
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
	w := t.w[:t.lines.n]
	t.startWeights(w)
	t.single.onTile(w, t.p.Kernel.visit32[t.p.Loss])
	if len(t.b.Slot) <= narrowLanes && t.narrow.visit != nil && t.single.byLane == nil {
		t.narrow.take(&t.single, w)
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

// liveLanes returns the mask of the lanes with a nonzero dual.
func liveLanes(duals *[Lanes]float64) (live uint16) {
	for l, a := range duals {
		if a != 0 {
			live |= 1 << l
		}
	}
	return live
}

// roundDuals copies the duals, rounded to float32, for a descent in that arithmetic. The rounded
// duals stay within the box [0, C].
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

// startWeights sets the float32 tile of a descent to y + v. It computes v in float32. After the
// descent, rebuild computes v again in float64.
func (t *dualSolver) startWeights(w [][Lanes]float32) {
	t.spreadParents(w, t.needed)
	t.addList(w)
}

// addList adds to a tile the listed rows, each multiplied by its signed duals.
func (t *dualSolver) addList(w [][Lanes]float32) {
	for from := 0; from < len(t.refs); from += visitRowsAtMost {
		*t.start = startArgs{
			rows: &t.refs[from], n: min(visitRowsAtMost, len(t.refs)-from), live: &t.live[from], dual: &t.duals[from],
			w: &w[0], last: &w[len(w)-1], bias: t.p.Bias,
		}
		t.p.Kernel.start(t.start)
	}
}

// fillPrecise sets a float64 tile to w = y + v.
func (t *dualSolver) fillPrecise(to [][Lanes]float64) {
	y := t.parents()
	for line := range to {
		f, w, v := t.feature(uint32(line)), &to[line], &t.v[line]
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

// appendMarked appends the indices of the nonzero marks. The loop writes every index and is
// branch-free within eight marks, because which of them are set is unpredictable.
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

// fillWeights sets the float32 tile w = y + v, rounded once with t.rounding: the weights that the
// certificate describes and that Weights returns.
func (t *dualSolver) fillWeights() {
	t.fillParents()
	for _, line := range t.touched {
		w, v := &t.w[t.feature(line)], &t.v[line]
		for m := t.support[line]; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			w[l] = weight(w[l], v[l], t.rounding[l])
		}
	}
}

// result collects what a solve returns. curvature returns the code for those lanes of a parent that
// have support on a given line.
func (t *dualSolver) result(sums Sums, priced bool, curvature func(line uint32, lanes uint16) uint8) *Result {
	r := &Result{Contributions: t.contributions(curvature), State: t.save(priced), Sums: sums}
	for k := range r.State.Rows {
		r.Sums.Support += bits.OnesCount16(r.State.Live[k])
		r.Sums.Working += bits.OnesCount16(r.State.Work[k])
	}
	return r
}

// save returns the state: the rows that have work or duals. If no full pass has drawn a working
// set, the block will visit the rows of a fresh one anyway, and only duals are kept.
func (t *dualSolver) save(priced bool) State {
	s := State{Priced: priced, Rounding: t.rounding}
	rows, duals := 0, 0
	for k, live := range t.live {
		if live != 0 || priced && t.work[k] != 0 {
			rows++
			duals += bits.OnesCount16(live)
		}
	}
	s.Rows, s.Work, s.Live, s.Dual = make([]uint32, 0, rows), make([]uint16, 0, rows), make([]uint16, 0, rows),
		make([]float64, 0, duals)
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

// contributions collects, parent by parent, what the solve for the internals needs. It also sets v
// to zero, while the lines of v are in the cache.
func (t *dualSolver) contributions(curvature func(line uint32, lanes uint16) uint8) []contribution.Contribution {
	lanesOf, _ := t.slotLanes()
	t.sent = t.sent[:0]
	count := make([]int, len(lanesOf))
	for _, line := range t.touched {
		v, support, n := &t.v[line], t.support[line], len(t.sent)
		t.sent = slices.Grow(t.sent, len(lanesOf))[:n+len(lanesOf)]
		// Branch-free: which slots have an entry here is unpredictable.
		for slot, lanes := range lanesOf {
			sum, some := 0.0, 0
			for m := lanes; m != 0; m &= m - 1 { // without support v is zero
				sum += v[bits.TrailingZeros16(m)&15]
			}
			if lanes &= support; lanes != 0 {
				some = 1
			}
			t.sent[n] = sent{sum, line, lanes, uint16(slot)}
			n += some
			count[slot] += some
		}
		t.sent = t.sent[:n]
		*v, t.support[line] = [Lanes]float64{}, 0
	}
	t.touched = t.touched[:0]
	out := make([]contribution.Contribution, len(lanesOf))
	for slot, n := range count {
		out[slot] = contribution.Contribution{Parent: int32(slot), Feature: make([]uint32, n), Sum: make([]float64, n),
			Curvature: make([]uint8, n)}
		count[slot] = 0
	}
	for i := range t.sent {
		e := &t.sent[i]
		c, n := &out[e.slot], count[e.slot]
		c.Feature[n], c.Sum[n], c.Curvature[n] = t.feature(e.line), e.sum, curvature(e.line, e.lanes)
		count[e.slot]++
	}
	return out
}

// sent is an entry of a contribution to a slot's parent: the sum of v over the slot's lanes.
type sent struct {
	sum  float64
	line uint32
	// lanes is the mask of the slot's lanes with support.
	lanes uint16
	slot  uint16
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
		for _, line := range t.touched {
			if t.support[line]>>l&1 == 0 {
				continue
			}
			f := t.feature(line)
			if w := weight(y[f], t.v[line][l], t.rounding[l]); w != y[f] {
				out[l].Feature = append(out[l].Feature, f)
				out[l].Value = append(out[l].Value, w)
			}
		}
	}
	return out
}
