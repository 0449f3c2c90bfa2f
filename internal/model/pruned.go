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
	"taxon/internal/ui/format"
)

// PruneCost is the measured loss of quality by pruning.
type PruneCost struct {
	// MicroF1 is the micro-F1 of the whole model, and Pruned the micro-F1 of the pruned one.
	MicroF1 float64 `json:"micro_f1"`
	Pruned  float64 `json:"micro_f1_pruned"`
	// Instances is the number of instances on which both were measured.
	Instances int `json:"instances"`
	// HeldOut reports that the models were trained without these instances and pruned alike.
	HeldOut bool `json:"held_out,omitempty"`
	// Asked is the requested size in bytes. It is zero if no size was requested.
	Asked int64 `json:"bytes_asked,omitempty"`
	// StandardError is the standard error of the difference between MicroF1 and Pruned, on the same
	// instances. It is zero if no instance differs, or if it is unknown.
	StandardError float64 `json:"standard_error,omitempty"`
}

// Lost returns the loss in points of micro-F1, with its standard error, as text.
func (c *PruneCost) Lost() string {
	return fmt.Sprintf("%.2f ± %.2f", 100*(c.MicroF1-c.Pruned), 100*c.StandardError)
}

// String describes the loss as text.
func (c *PruneCost) String() string {
	if c.Instances == 0 {
		return "not measured: there were too few instances to hold some out"
	}
	on := format.Counted(int64(c.Instances), "instance", "instances")
	if c.HeldOut {
		on += fmt.Sprintf(" held out of further trainings, whose models were pruned alike (costs %s points)", c.Lost())
	}
	return fmt.Sprintf("micro F1 %.2f %% before, %.2f %% after, on %s", 100*c.MicroF1, 100*c.Pruned, on)
}

// Pruned describes the pruning in a pruned model's manifest.
type Pruned struct {
	Threshold float64 `json:"threshold"`
	// Values is the form of stored values, one of shard.Values.
	Values  string `json:"values"`
	Entries int64  `json:"entries"`
}

// Check returns an error if p cannot describe a pruned model.
func (p *Pruned) Check() error {
	if !(p.Threshold >= 0) || math.IsInf(p.Threshold, 0) {
		return fmt.Errorf("prune: threshold %v: must be a number >= 0", p.Threshold)
	}
	if !slices.Contains(shard.Values, p.Values) {
		return fmt.Errorf("prune: values %q: must be one of %v", p.Values, shard.Values)
	}
	return nil
}

// PackedWriter writes a pruned copy of a model: its packed shards, in any order and from several
// goroutines, and then the model's tables. After an error the caller must call Abort; after Close
// it may.
type PackedWriter struct {
	m   *Model
	out *fs.OutDir
	// w writes every file.
	w Writer

	mu sync.Mutex
	// files are the shards.
	files []File
}

// NewPackedWriter starts a pruned copy of m that will be published as dir. Like NewWriter it
// replaces nothing but a model.
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

// WriteShard writes packed shard i, which holds a number of columns from first on.
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

// Close writes the tables and the manifest, and publishes the model. p describes the pruning, and
// cost its measured cost. A nil cost means unknown.
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

// Abort removes what was written. After Close it does nothing.
func (w *PackedWriter) Abort() { w.out.Abort() }
