// Package modellist lists the models below a folder in a table.
package modellist

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"taxon/coordinator/method/registry"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/ui/option"
)

// Run is one model.
type Run struct {
	// Dir is the path below the folder.
	Dir    string `json:"dir"`
	Method string `json:"method"`
	// Options is a readable form of the options.
	Options string `json:"options"`
	// Data is the fingerprint of the training data.
	Data      string   `json:"data"`
	Instances int      `json:"instances"`
	Classes   int      `json:"classes"`
	Gap       *float64 `json:"gap"`
	Objective float64  `json:"objective"`
	// MicroF1 and MacroF1 are the last values in the trace. They are nil if none were measured
	// during the training.
	MicroF1   *float64  `json:"micro_f1"`
	MacroF1   *float64  `json:"macro_f1"`
	Sweeps    int       `json:"sweeps"`
	StoppedBy string    `json:"stopped_by"`
	Seconds   float64   `json:"seconds"`
	CPU       float64   `json:"cpu_seconds"`
	Bytes     int64     `json:"bytes"`
	Made      time.Time `json:"made"`
	// Error is the reason why the model cannot be read. If it is set, all other fields but Dir are
	// zero.
	Error string `json:"error,omitempty"`

	trace []model.TraceRow
}

// Sorts lists the keys to sort by.
var Sorts = []string{"dir", "method", "gap", "micro_f1", "macro_f1", "seconds", "bytes", "made"}

// Find reads the manifests of all models in a folder and below, and sorts them. If the key is a
// measure of quality, the best model comes first. For other keys the model with the smallest value
// comes first. Models that cannot be read come last, with their errors.
func Find(dir, by string) ([]Run, error) {
	if info, err := fs.Stat(dir); err != nil {
		return nil, fs.Explain(dir, err)
	} else if !info.IsDir() {
		return nil, fs.Inputf(dir, 0, "is a file: give a folder with models in it")
	}
	if !slices.Contains(Sorts, by) {
		return nil, option.Errorf("runs: ‹sort=%s›: must be one of %s", by, strings.Join(Sorts, ", "))
	}
	var out []Run
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !model.IsModel(path) && !model.Resembles(path) {
			return err
		}
		r, err := read(dir, path)
		if err != nil {
			r = &Run{Dir: below(dir, path), Error: err.Error()}
		}
		out = append(out, *r)
		return filepath.SkipDir
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b Run) int { return cmp.Or(order(&a, &b, by), strings.Compare(a.Dir, b.Dir)) })
	return out, nil
}

// order compares two models by the given key.
func order(a, b *Run, by string) int {
	least := func(x *float64) float64 { // missing values come last
		if x == nil {
			return math.Inf(1)
		}
		return *x
	}
	most := func(x *float64) float64 {
		if x == nil {
			return math.Inf(1)
		}
		return -*x
	}
	if a, b := a.Error != "", b.Error != ""; a != b {
		if a {
			return 1
		}
		return -1
	}
	switch by {
	case "method":
		return strings.Compare(a.Method, b.Method)
	case "gap":
		return cmp.Compare(least(a.Gap), least(b.Gap))
	case "micro_f1":
		return cmp.Compare(most(a.MicroF1), most(b.MicroF1))
	case "macro_f1":
		return cmp.Compare(most(a.MacroF1), most(b.MacroF1))
	case "seconds":
		return cmp.Compare(a.Seconds, b.Seconds)
	case "bytes":
		return cmp.Compare(a.Bytes, b.Bytes)
	case "made":
		return b.Made.Compare(a.Made)
	}
	return 0
}

// read reads the manifest of the model at path.
func read(base, path string) (*Run, error) {
	m, err := model.ReadManifest(path)
	if err != nil {
		return nil, err
	}
	r := &m.Report
	out := &Run{Dir: below(base, path), Method: r.Method, Options: registry.Words(r.Method, r.Own),
		Data: m.Data.Fingerprint, Instances: r.Instances, Classes: r.Terminals,
		Gap: r.Gap, Objective: r.Objective, Sweeps: r.Sweeps, StoppedBy: r.StoppedBy, Seconds: r.Seconds, CPU: r.CPUSeconds}
	for _, f := range m.Files {
		name := filepath.Join(path, f.Name)
		switch info, err := fs.Stat(name); {
		case err != nil:
			return nil, fs.Explain(name, err)
		case info.Size() != f.Bytes:
			return nil, fs.Inputf(name, 0, "%d bytes, the manifest says %d: the file is damaged", info.Size(), f.Bytes)
		}
		out.Bytes += f.Bytes
	}
	if info, err := fs.Stat(filepath.Join(path, "manifest.json")); err == nil {
		out.Made = info.ModTime().UTC().Truncate(time.Second)
	}
	if out.trace, err = model.ReadTrace(path); err != nil {
		return nil, err
	}
	for _, t := range out.trace {
		if t.MicroF1 != nil {
			out.MicroF1, out.MacroF1 = t.MicroF1, t.MacroF1
		}
	}
	return out, nil
}

// below returns the path of a model below the folder.
func below(base, path string) string {
	rel, err := filepath.Rel(base, path)
	if err != nil {
		rel = path
	}
	return filepath.ToSlash(rel)
}

// Broken returns an error that describes the models that cannot be read, or nil if there are none.
func Broken(all []Run) error {
	n, first := 0, ""
	for _, r := range all {
		if r.Error != "" {
			if n++; n == 1 {
				first = r.Error
			}
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return option.Errorf("runs: a model can't be read: %s", first)
	}
	return option.Errorf("runs: %d of %d models can't be read, the first: %s", n, len(all), first)
}

// Percent returns a share as text. It is empty if x is nil.
func Percent(x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%.1f", 100**x)
}

// number returns x as text.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// maybe returns a number as text. It is empty if x is nil.
func maybe(x *float64) string {
	if x == nil {
		return ""
	}
	return number(*x)
}

// WriteTraces writes a table of the sweeps of all models. Its header has the keys of trace.jsonl.
func WriteTraces(w io.Writer, all []Run) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"dir", "sweep", "phase", "seconds", "objective", "dual", "gap", "bound", "micro_f1", "macro_f1"})
	for _, r := range all { // w.Error returns write errors
		for _, t := range r.trace {
			_ = c.Write([]string{r.Dir, strconv.Itoa(t.Sweep), t.Phase, number(t.Seconds), maybe(t.Objective), maybe(t.Dual),
				maybe(t.Gap), maybe(t.Bound), maybe(t.MicroF1), maybe(t.MacroF1)})
		}
	}
	c.Flush()
	return c.Error()
}

// WriteCSV writes a table of the models. Its header has the keys of the JSON output.
func WriteCSV(w io.Writer, all []Run) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"dir", "method", "options", "data", "instances", "classes", "gap", "objective", "micro_f1",
		"macro_f1", "sweeps", "stopped_by", "seconds", "cpu_seconds", "bytes", "made", "error"})
	for _, r := range all { // w.Error returns write errors
		_ = c.Write([]string{r.Dir, r.Method, r.Options, r.Data, strconv.Itoa(r.Instances), strconv.Itoa(r.Classes),
			maybe(r.Gap), number(r.Objective), maybe(r.MicroF1), maybe(r.MacroF1),
			strconv.Itoa(r.Sweeps), r.StoppedBy, number(r.Seconds), number(r.CPU), strconv.FormatInt(r.Bytes, 10),
			r.Made.Format(time.RFC3339), r.Error})
	}
	c.Flush()
	return c.Error()
}
