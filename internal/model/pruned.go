package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"sync"

	"taxon/internal/fs"
	"taxon/internal/model/shard"
)

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
	Values    string  `json:"values"` // one of shard.Values
	Entries   int64   `json:"entries"`
}

// Check reports what no pruned model can be.
func (p *Pruned) Check() error {
	if !(p.Threshold >= 0) || math.IsInf(p.Threshold, 0) {
		return fmt.Errorf("prune: threshold %v: must be a number >= 0", p.Threshold)
	}
	if !slices.Contains(shard.Values, p.Values) {
		return fmt.Errorf("prune: values %q: must be one of %v", p.Values, shard.Values)
	}
	return nil
}

// PackedWriter writes a pruned copy of a model: its packed shards, in any order and by several
// goroutines, and then the model's tables. After an error, or after Close, call Abort.
type PackedWriter struct {
	m   *Model
	out *fs.OutDir
	w   Writer // writes every file

	mu    sync.Mutex
	files []File // the shards
}

// NewPackedWriter begins a pruned copy of m that will be published as dir. Like NewWriter it replaces
// nothing but a model.
func NewPackedWriter(m *Model, dir string) (*PackedWriter, error) {
	if err := Replaceable(dir); err != nil {
		return nil, err
	}
	out, err := fs.CreateDir(dir, true)
	if err != nil {
		return nil, err
	}
	return &PackedWriter{m: m, out: out, w: Writer{dir: out, meta: m.Meta}}, nil
}

// WriteShard writes packed shard i, which has so many columns from the first one on.
func (w *PackedWriter) WriteShard(i, first, columns int, b []byte) error {
	sum := sha256.Sum256(b)
	f := File{Name: shard.PackedName(i), Bytes: int64(len(b)), SHA256: hex.EncodeToString(sum[:]), FirstColumn: first,
		Columns: columns}
	if err := w.w.dir.Write(f.Name, b); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files = append(w.files, f)
	return nil
}

// Close writes the tables and the manifest, which says how the model was pruned and what that was
// measured to cost (nil: not known), and publishes the model.
func (w *PackedWriter) Close(p Pruned, cost *PruneCost) (*Manifest, error) {
	slices.SortFunc(w.files, func(a, b File) int { return a.FirstColumn - b.FirstColumn })
	w.w.files = w.files
	if err := w.w.writeTables(w.m.Trace); err != nil {
		return nil, err
	}
	man := w.m.Manifest
	man.Pruned, man.Files, man.Report.Pruned = &p, w.w.files, cost
	man.Version = man.version()
	man.Counts.Overrides = int(p.Entries)
	b, err := encodeManifest(man)
	if err != nil {
		return nil, err
	}
	if err := w.w.dir.Write(fileManifest, b); err != nil {
		return nil, err
	}
	if err := Replaceable(w.out.Name()); err != nil { // it may have changed meanwhile
		return nil, err
	}
	return &man, w.out.Commit()
}

// Abort removes what was written; after Close it does nothing.
func (w *PackedWriter) Abort() { w.out.Abort() }
