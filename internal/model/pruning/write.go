package pruning

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/shard"
)

// Options configure the pruning.
type Options struct {
	// Threshold is the absolute value below which differences from the parent are dropped, at least
	// 0. Every weight of the pruned model is within it of the trained weight.
	Threshold float64
	// Values is the form of the stored differences, one of shard.Values. If it is empty, it is
	// shard.Singles.
	Values string
	// Cost is added to the model's report. It is nil if unknown.
	Cost *model.PruneCost
}

func (o Options) validate() error {
	return (&model.Pruned{Threshold: o.Threshold, Values: o.Values}).Check()
}

// Write writes a pruned copy of m as dir, for predictions: the differences from the parent by
// column, without the small ones (see Options), and all tables of m. The folder appears when it is
// complete. Like model.NewWriter it replaces nothing but a model. It takes 8 bytes per entry of a
// shard and thread, and a counter per column.
func Write(ctx context.Context, m *model.Model, dir string, o Options, threads int) (*model.Manifest, error) {
	o.Values = cmp.Or(o.Values, shard.Singles)
	if err := o.validate(); err != nil {
		return nil, err
	}
	if m.Form.Draws > 0 {
		return nil, &fs.InputError{Path: m.Dir, Msg: "a model that averages draws can't be pruned: its " +
			"predictions need them whole"}
	}
	if threads < 1 {
		return nil, fmt.Errorf("prune: %d threads: must be at least 1", threads)
	}
	out, err := model.NewPackedWriter(m, dir)
	if err != nil {
		return nil, err
	}
	defer out.Abort()
	w := &writer{m: m, o: o, scale: scales(m, o), out: out}
	counts, _, err := w.count(ctx, threads)
	if err != nil {
		return nil, err
	}
	cuts := cutColumns(counts)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(threads)
	for i := range len(cuts) - 1 {
		g.Go(fs.Guarded(func() error { return w.writeShard(gctx, i, cuts[i], counts[cuts[i]:cuts[i+1]]) }))
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	p := model.Pruned{Threshold: o.Threshold, Values: o.Values}
	for _, n := range counts {
		p.Entries += int64(n)
	}
	return out.Close(p, o.Cost)
}

// writer makes the shards of a pruned model.
type writer struct {
	m *model.Model
	o Options
	// scale is the scale of each column, for shard.Bytes.
	scale []float32
	out   *model.PackedWriter
}

// chunk is the number of nodes that are walked between two checks of the context.
const chunk = 256

// walkAll visits the differences of nodes [first, last).
func (w *writer) walkAll(ctx context.Context, first, last int, visit func(n int, columns []uint32,
	deltas []float32)) error {
	p := newPruner(w.m, w.o, w.scale)
	return p.walk(first, last, func(n int, columns []uint32, deltas []float32) error {
		visit(n, columns, deltas)
		if n%chunk == 0 {
			return ctx.Err()
		}
		return nil
	})
}

// columnParts describes a column's entries in a range of nodes: their number, the first node, the
// node after the last one, and the bytes of their gaps except the first's.
type columnParts struct{ entries, first, next, gaps uint32 }

// count returns the number of entries of each column, and the bytes of their gaps.
func (w *writer) count(ctx context.Context, threads int) (entries []uint32, gaps int64, err error) {
	nodes := w.m.Tree.Len()
	parts := make([][]columnParts, min(threads, nodes))
	g, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		parts[i] = make([]columnParts, w.m.Columns())
		g.Go(fs.Guarded(func() error {
			return w.walkAll(ctx, i*nodes/len(parts), (i+1)*nodes/len(parts), func(n int, columns []uint32, _ []float32) {
				for _, c := range columns {
					if p := &parts[i][c]; p.entries == 0 {
						*p = columnParts{1, uint32(n), uint32(n) + 1, 0}
					} else {
						*p = columnParts{p.entries + 1, p.first, uint32(n) + 1, p.gaps + uint32(shard.GapBytes(uint32(n)-p.next))}
					}
				}
			})
		}))
	}
	if err := g.Wait(); err != nil {
		return nil, 0, err
	}
	entries = make([]uint32, w.m.Columns())
	for c := range entries {
		next := uint32(0)
		for _, part := range parts {
			if p := part[c]; p.entries > 0 {
				entries[c] += p.entries
				gaps += int64(p.gaps) + int64(shard.GapBytes(p.first-next))
				next = p.next
			}
		}
	}
	return entries, gaps, nil
}

// Bytes returns the size of the model that Write would write, in bytes, up to the varying size of
// the manifest.
func Bytes(ctx context.Context, m *model.Model, o Options, threads int) (bytes int64, err error) {
	o.Values = cmp.Or(o.Values, shard.Singles)
	w := &writer{m: m, o: o, scale: scales(m, o)}
	entries, bytes, err := w.count(ctx, threads)
	if err != nil {
		return 0, err
	}
	for _, f := range m.Manifest.Files {
		if f.Nodes == 0 && f.Columns == 0 { // no shard of weights
			bytes += f.Bytes
		}
	}
	cuts := cutColumns(entries)
	for i := range len(cuts) - 1 {
		bytes += shard.PackedBytes(entries[cuts[i]:cuts[i+1]], o.Values)
	}
	return bytes + manifestBytes, nil
}

// manifestBytes is the approximate size of a manifest.
const manifestBytes = 4096

// scales returns the scale of each column for differences that are stored as bytes.
func scales(m *model.Model, o Options) []float32 {
	if o.Values != shard.Bytes {
		return nil
	}
	scale := make([]float32, m.Columns())
	m.EachDifference(func(_ int32, c uint32, d float64) { scale[c] = max(scale[c], float32(math.Abs(d))) })
	for c, largest := range scale {
		scale[c] = shard.Scale(largest)
	}
	return scale
}

// shardEntries is the number of entries up to which columns share a shard. One column alone may
// exceed it.
const shardEntries = 4 << 20

// cutColumns divides the columns into shards: 0, the first column of the second shard, ..., the
// number of columns. There is at least one shard.
func cutColumns(counts []uint32) []int {
	cuts, held := []int{0}, 0
	for c, n := range counts {
		if held > 0 && held+int(n) > shardEntries {
			cuts, held = append(cuts, c), 0
		}
		held += int(n)
	}
	return append(cuts, len(counts))
}

// writeShard collects the entries of the columns from first on, in a walk over all nodes, and
// writes them.
func (w *writer) writeShard(ctx context.Context, i, first int, counts []uint32) error {
	next := make([]uint32, len(counts)+1) // the position of a column's next entry
	for c, n := range counts {
		next[c+1] = next[c] + n
	}
	entries := next[len(counts)]
	nodes, deltas := make([]uint32, entries), make([]float32, entries)
	if err := w.walkAll(ctx, 0, w.m.Tree.Len(), func(n int, columns []uint32, d []float32) {
		from, _ := slices.BinarySearch(columns, uint32(first))
		for k := from; k < len(columns) && int(columns[k]) < first+len(counts); k++ {
			at := &next[int(columns[k])-first]
			nodes[*at], deltas[*at] = uint32(n), d[k]
			*at++
		}
	}); err != nil {
		return err
	}
	var scale []float32
	if w.scale != nil {
		scale = w.scale[first : first+len(counts)]
	}
	return w.out.WriteShard(i, first, len(counts), shard.AppendPacked(nil, first, counts, nodes, deltas, w.o.Values,
		scale))
}
