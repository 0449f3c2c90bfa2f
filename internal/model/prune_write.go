package model

import (
	"cmp"
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
	Values    string // how differences are stored: Singles, Halves or Bytes; "": Singles
	// Cost is told in the model's report; nil: not known.
	Cost *PruneCost
}

// PruneCost is what pruning was measured to cost.
type PruneCost struct {
	MicroF1   float64 `json:"micro_f1"` // of the whole model,
	Pruned    float64 `json:"micro_f1_pruned"`
	Instances int     `json:"instances"`             // that both were measured on
	HeldOut   bool    `json:"held_out,omitempty"`    // by trainings without them, pruned alike
	Asked     int64   `json:"bytes_asked,omitempty"` // that the model should take at most
	// StandardError is that of the difference of the two, by the same instances; 0: none differs, or not known.
	StandardError float64 `json:"standard_error,omitempty"`
}

// Lost is how many points pruning costs, with the standard error.
func (c *PruneCost) Lost() string {
	return fmt.Sprintf("%.2f ± %.2f", 100*(c.MicroF1-c.Pruned), 100*c.StandardError)
}

// Pruned is what a pruned model's manifest says about the pruning.
type Pruned struct {
	Threshold float64 `json:"threshold"`
	Values    string  `json:"values"` // one of PrunedValues
	Entries   int64   `json:"entries"`
}

// How differences are stored: as float32, as float16, or as signed bytes times a scale for each column.
const (
	Singles = "float32"
	Halves  = "float16"
	Bytes   = "int8"
)

// PrunedValues lists them.
var PrunedValues = []string{Singles, Halves, Bytes}

func (o PruneOptions) validate() error {
	if !(o.Threshold >= 0) || math.IsInf(o.Threshold, 0) {
		return fmt.Errorf("prune: threshold %v: must be a number >= 0", o.Threshold)
	}
	if !slices.Contains(PrunedValues, o.Values) {
		return fmt.Errorf("prune: values %q: must be one of %v", o.Values, PrunedValues)
	}
	return nil
}

// WritePruned writes a pruned copy of m as dir, for predictions: differences from the parent by
// column, without the small ones (see PruneOptions), and all tables of m. The folder appears when
// it is whole; like NewWriter it replaces nothing but a model. Memory: 8 bytes an entry of a
// shard and thread, and a count a column.
func (m *Model) WritePruned(ctx context.Context, dir string, o PruneOptions, threads int) (*Manifest, error) {
	o.Values = cmp.Or(o.Values, Singles)
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
	scale  []float32 // of Bytes
	tables *Writer   // writes every file but the shards
}

func (w *prunedWriter) write(ctx context.Context, threads int) (*Manifest, error) {
	w.scale = w.m.scales(w.o)
	counts, _, err := w.count(ctx, threads)
	if err != nil {
		return nil, err
	}
	cuts := cutColumns(counts)
	files := make([]File, len(cuts)-1)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(threads)
	for i := range files {
		g.Go(fs.Guarded(func() (err error) {
			files[i], err = w.writeShard(gctx, i, cuts[i], counts[cuts[i]:cuts[i+1]])
			return err
		}))
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	w.tables.files = files
	if err := w.tables.writeTables(w.m.Trace); err != nil {
		return nil, err
	}
	p := &Pruned{Threshold: w.o.Threshold, Values: w.o.Values}
	for _, n := range counts {
		p.Entries += int64(n)
	}
	man := w.m.Manifest
	man.Pruned, man.Files, man.Report.Pruned = p, w.tables.files, w.o.Cost
	man.Version = man.version()
	man.Counts.Overrides = int(p.Entries)
	b, err := encodeManifest(man)
	if err != nil {
		return nil, err
	}
	return &man, w.tables.dir.Write(fileManifest, b)
}

// pruneChunk is how many nodes are walked between two checks of the context.
const pruneChunk = 256

// walkAll visits the differences of nodes [first, last).
func (w *prunedWriter) walkAll(ctx context.Context, first, last int, visit func(n int, columns []uint32, deltas []float32)) error {
	p := newPruner(w.m, w.o, w.scale)
	return p.walk(first, last, func(n int, columns []uint32, deltas []float32) error {
		visit(n, columns, deltas)
		if n%pruneChunk == 0 {
			return ctx.Err()
		}
		return nil
	})
}

// columnParts are a column's entries in a range of nodes.
type columnParts struct{ entries, first, next, gaps uint32 } // next: the node after the last one; gaps: their bytes, but for the first's

// count gives the number of entries of each column, and the bytes of their gaps.
func (w *prunedWriter) count(ctx context.Context, threads int) (entries []uint32, gaps int64, err error) {
	nodes := w.m.Tree.Len()
	parts := make([][]columnParts, min(threads, nodes))
	g, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		parts[i] = make([]columnParts, w.m.columns())
		g.Go(fs.Guarded(func() error {
			return w.walkAll(ctx, i*nodes/len(parts), (i+1)*nodes/len(parts), func(n int, columns []uint32, _ []float32) {
				for _, c := range columns {
					if p := &parts[i][c]; p.entries == 0 {
						*p = columnParts{1, uint32(n), uint32(n) + 1, 0}
					} else {
						*p = columnParts{p.entries + 1, p.first, uint32(n) + 1, p.gaps + uint32(uvarintBytes(uint32(n)-p.next))}
					}
				}
			})
		}))
	}
	if err := g.Wait(); err != nil {
		return nil, 0, err
	}
	entries = make([]uint32, w.m.columns())
	for c := range entries {
		next := uint32(0)
		for _, part := range parts {
			if p := part[c]; p.entries > 0 {
				entries[c] += p.entries
				gaps += int64(p.gaps) + int64(uvarintBytes(p.first-next))
				next = p.next
			}
		}
	}
	return entries, gaps, nil
}

// PrunedBytes is how many bytes WritePruned's model would take, but for what its manifest tells more or less.
func (m *Model) PrunedBytes(ctx context.Context, o PruneOptions, threads int) (bytes int64, err error) {
	o.Values = cmp.Or(o.Values, Singles)
	w := &prunedWriter{m: m, o: o, scale: m.scales(o)}
	entries, bytes, err := w.count(ctx, threads)
	if err != nil {
		return 0, err
	}
	for _, f := range m.Manifest.Files {
		if f.Nodes == 0 && f.Columns == 0 { // no shard of weights
			bytes += f.Bytes
		}
	}
	for _, n := range entries {
		bytes += int64(n)*valueBytes[o.Values] + int64(uvarintBytes(n))
		if o.Values == Bytes {
			bytes += scaleBytes
		}
	}
	return bytes + int64(len(cutColumns(entries))-1)*packedHeader + manifestBytes, nil
}

// manifestBytes is what a manifest takes, about.
const manifestBytes = 4096

// scales are the steps of the columns' differences where these are stored as bytes.
func (m *Model) scales(o PruneOptions) []float32 {
	if o.Values != Bytes {
		return nil
	}
	scale := make([]float32, m.columns())
	m.eachDifference(func(_ int32, c uint32, d float64) { scale[c] = max(scale[c], float32(math.Abs(d))) })
	for c, largest := range scale {
		scale[c] = scaleOf(largest)
	}
	return scale
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
	var scale []float32
	if w.scale != nil {
		scale = w.scale[first : first+len(counts)]
	}
	b := appendPacked(nil, first, counts, nodes, deltas, w.o.Values, scale)
	sum := sha256.Sum256(b)
	f := File{Name: packedName(i), Bytes: int64(len(b)), SHA256: hex.EncodeToString(sum[:]), FirstColumn: first, Columns: len(counts)}
	return f, w.tables.dir.Write(f.Name, b)
}
