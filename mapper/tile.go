package mapper

import (
	"cmp"
	"unsafe"

	"taxon/internal/linalg/sparse"
)

// tile is the memory that every solver has. It holds the current block and the float32 weights of
// its lanes.
type tile struct {
	p *Problem
	b *Block
	// lanes is the mask of the block's lanes.
	lanes uint16
	// c is C of the block's negative rows, and cPos that of each lane's positive ones.
	c    float64
	cPos [Lanes]float64
	// sign is the mask of each row's positive lanes.
	sign []uint16
	// w holds the weights, a line for each of the d+1 features.
	w [][Lanes]float32

	// Arguments of kernels. Each is an allocation of its own, which aligns it to a cache line.
	score  *scoreArgs
	exact  *exactArgs
	spread *spreadArgs
	low    *[scoreChunk]uint16
	// y holds a parent's values at some lines.
	y *[spreadLines]float32
}

// newTile returns the memory for blocks of p.
func newTile(p *Problem) tile {
	return tile{
		p: p, sign: make([]uint16, p.X.Rows), w: make([][Lanes]float32, p.X.Cols+1),
		score: &scoreArgs{}, exact: &exactArgs{}, spread: &spreadArgs{}, low: &[scoreChunk]uint16{},
		y: &[spreadLines]float32{},
	}
}

// open begins a block.
func (t *tile) open(b *Block) {
	t.b, t.lanes = b, uint16(1)<<len(b.Slot)-1
	for l, rows := range b.Positive {
		for _, i := range rows {
			t.sign[i] |= 1 << l
		}
	}
	t.c = cmp.Or(b.C, t.p.C)
	for l := range t.cPos {
		switch {
		case l < len(b.Weight):
			t.cPos[l] = t.c * b.Weight[l]
		case t.p.PositiveWeight != 0:
			t.cPos[l] = t.c * t.p.PositiveWeight
		default:
			t.cPos[l] = t.c
		}
	}
}

// close clears the tile for the next block.
func (t *tile) close() {
	for _, rows := range t.b.Positive {
		for _, i := range rows {
			t.sign[i] = 0
		}
	}
}

// rowC returns C of row i in lane l. pos is the mask of the row's positive lanes.
func (t *tile) rowC(i uint32, pos uint16, l int) float64 {
	c := t.c
	if pos>>l&1 != 0 {
		c = t.cPos[l]
	}
	return t.p.weighted(i, c)
}

// parent returns the vector of lane l's parent.
func (t *tile) parent(l int) []float32 {
	if l < len(t.b.Slot) && t.b.Slot[l] >= 0 {
		return t.b.Mean[t.b.Slot[l]]
	}
	return t.p.zero
}

// parents returns the vectors of all lanes' parents.
func (t *tile) parents() (y [Lanes][]float32) {
	for l := range y {
		y[l] = t.parent(l)
	}
	return y
}

// slotLanes returns for each slot the mask of the lanes with that parent, and the union of the
// masks.
func (t *tile) slotLanes() (lanes []uint16, with uint16) {
	lanes = make([]uint16, len(t.b.Mean))
	for l, slot := range t.b.Slot {
		if slot >= 0 {
			lanes[slot] |= 1 << l
			with |= 1 << l
		}
	}
	return lanes, with
}

// spreadLines is the number of lines into which all parents are copied before the next lines are
// filled, so that the lines stay in the nearest cache.
const spreadLines = 256

// fillParents sets w[f][l] = y_l[f].
func (t *tile) fillParents() { t.spreadParents(t.w, nil) }

// spreadParents sets to[k][l] = y_l[at[k]]. If `at` is empty, it sets to[k][l] = y_l[k].
func (t *tile) spreadParents(to [][Lanes]float32, at []uint32) {
	lanesOf, with := t.slotLanes()
	if with != 1<<Lanes-1 {
		clear(to)
	}
	e := t.spread
	for from := 0; from < len(to); from += spreadLines {
		n := min(spreadLines, len(to)-from)
		for slot, m := range lanesOf {
			if m == 0 {
				continue
			}
			mean := t.b.Mean[slot]
			*e = spreadArgs{w: &to[from], y: &mean[from], n: n, mask: uint64(m)}
			if len(at) > 0 {
				for k, f := range at[from : from+n] {
					t.y[k] = mean[f]
				}
				e.y = &t.y[0]
			}
			t.p.Kernel.spread(e)
		}
	}
}

// scoreRows scores the n rows of x from row `from` on, which must lie in one shard, at the weights
// w. It sets t.low to the masks of the lanes whose score is not below t.score.floor.
func (t *tile) scoreRows(x *sparse.Matrix, w [][Lanes]float32, from, n int, out *[Lanes]float32) {
	e, shard := t.score, &x.Shards[from>>sparse.RowShift]
	floor := e.floor
	*e = scoreArgs{
		begin: &shard.Begin[from&(1<<sparse.RowShift-1)], n: n, w: &w[0], last: &w[len(w)-1],
		idx: unsafe.SliceData(shard.Index), val: unsafe.SliceData(shard.Value),
		out: out, low: &t.low[0], entries: uint64(len(shard.Index)), features: len(w), floor: floor,
	}
	for l := range Lanes {
		e.bias[l] = t.p.Bias
	}
	t.p.Kernel.score(e)
}

// exactScores sets t.exact.out to row i's sixteen float64 scores.
func (t *tile) exactScores(i int) {
	idx, val := t.p.X.Row(i)
	e := t.exact
	e.n, e.w, e.last, e.features, e.bias = len(idx), &t.w[0], &t.w[len(t.w)-1], len(t.w), float64(t.p.Bias)
	e.idx, e.val = unsafe.SliceData(idx), unsafe.SliceData(val)
	t.p.Kernel.exact(e)
}

// resized returns a slice of n elements with undefined values.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n+n/8)[:n]
	}
	return s[:n]
}
