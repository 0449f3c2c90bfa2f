package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"taxon/internal/fs"
)

// PruneOptions say what a pruned model keeps.
type PruneOptions struct {
	// Threshold: differences from the parent smaller than this are left out. Every weight of the
	// pruned model is within it of the trained weight. At least 0.
	Threshold float64
	Half      bool // differences are stored as float16, not as float32
}

// Pruned is what a pruned model's manifest says about the pruning.
type Pruned struct {
	Threshold float64 `json:"threshold"`
	Values    string  `json:"values"` // float32 or float16
	Entries   int64   `json:"entries"`
}

const (
	valuesSingle = "float32"
	valuesHalf   = "float16"
)

func (o PruneOptions) validate() error {
	if !(o.Threshold >= 0) || math.IsInf(o.Threshold, 0) {
		return fmt.Errorf("prune: threshold %v: must be a number >= 0", o.Threshold)
	}
	return nil
}

// WritePruned writes a pruned copy of m as dir, for predictions: differences from the parent by
// column, without the small ones (see PruneOptions), and all tables of m. The folder appears when
// it is whole; like NewWriter it replaces nothing but a model. Memory: 8 bytes an entry of a
// shard and thread, and a count a column.
func (m *Model) WritePruned(ctx context.Context, dir string, o PruneOptions, threads int) (*Manifest, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if m.Form.Draws > 0 {
		return nil, &fs.InputError{Path: m.Dir, Msg: "a model that averages draws can't be pruned: its predictions need them whole"}
	}
	if threads < 1 {
		return nil, fmt.Errorf("prune: %d threads: must be at least 1", threads)
	}
	if err := Replaceable(dir); err != nil {
		return nil, err
	}
	out, err := fs.CreateDir(dir, true)
	if err != nil {
		return nil, err
	}
	defer out.Abort()
	w := &prunedWriter{m: m, o: o, tables: &Writer{dir: out, meta: m.Meta}}
	manifest, err := w.write(ctx, threads)
	if err != nil {
		return nil, err
	}
	if err := Replaceable(dir); err != nil { // it may have changed meanwhile
		return nil, err
	}
	return manifest, out.Commit()
}

type prunedWriter struct {
	m      *Model
	o      PruneOptions
	tables *Writer // writes all files but the shards
}

func (w *prunedWriter) write(ctx context.Context, threads int) (*Manifest, error) {
	counts, err := w.count(ctx, threads)
	if err != nil {
		return nil, err
	}
	cuts := cutColumns(counts)
	files := make([]File, len(cuts)-1)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(threads)
	for i := range files {
		g.Go(func() (err error) {
			files[i], err = w.writeShard(gctx, i, cuts[i], counts[cuts[i]:cuts[i+1]])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	w.tables.files = files
	if err := w.tables.writeTables(w.m.Trace); err != nil {
		return nil, err
	}
	p := &Pruned{Threshold: w.o.Threshold, Values: valuesSingle}
	if w.o.Half {
		p.Values = valuesHalf
	}
	for _, n := range counts {
		p.Entries += int64(n)
	}
	man := w.m.Manifest
	man.Pruned, man.Files = p, w.tables.files
	man.Version = man.version()
	man.Counts.Overrides = int(p.Entries)
	b, err := encodeManifest(man)
	if err != nil {
		return nil, err
	}
	return &man, w.tables.writeFile(fileManifest, b)
}

// pruneChunk is how many nodes are walked between two checks of the context.
const pruneChunk = 256

// walkAll visits the differences of nodes [first, last).
func (w *prunedWriter) walkAll(ctx context.Context, first, last int, visit func(n int, columns []uint32, deltas []float32)) error {
	p := newPruner(w.m, w.o)
	return p.walk(first, last, func(n int, columns []uint32, deltas []float32) error {
		visit(n, columns, deltas)
		if n%pruneChunk == 0 {
			return ctx.Err()
		}
		return nil
	})
}

// count gives the number of entries of each column.
func (w *prunedWriter) count(ctx context.Context, threads int) ([]uint32, error) {
	nodes := w.m.Tree.Len()
	parts := make([][]uint32, min(threads, nodes))
	g, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		parts[i] = make([]uint32, w.m.columns())
		g.Go(func() error {
			return w.walkAll(ctx, i*nodes/len(parts), (i+1)*nodes/len(parts), func(_ int, columns []uint32, _ []float32) {
				for _, c := range columns {
					parts[i][c]++
				}
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, part := range parts[1:] {
		for c, n := range part {
			parts[0][c] += n
		}
	}
	return parts[0], nil
}

// cutColumns divides the columns into shards: 0, the first column of the second shard, ..., the
// number of columns. There is at least one shard.
func cutColumns(counts []uint32) []int {
	cuts, held := []int{0}, 0
	for c, n := range counts {
		if held > 0 && held+int(n) > packedEntries {
			cuts, held = append(cuts, c), 0
		}
		held += int(n)
	}
	return append(cuts, len(counts))
}

// writeShard gathers the entries of the columns from first on, in a walk over all nodes, and
// writes them.
func (w *prunedWriter) writeShard(ctx context.Context, i, first int, counts []uint32) (File, error) {
	next := make([]uint32, len(counts)+1) // where a column's next entry goes
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
		return File{}, err
	}
	b := appendPacked(nil, first, counts, nodes, deltas, w.o.Half)
	sum := sha256.Sum256(b)
	f := File{Name: packedName(i), Bytes: int64(len(b)), SHA256: hex.EncodeToString(sum[:]), FirstColumn: first, Columns: len(counts)}
	return f, w.tables.writeFile(f.Name, b)
}
