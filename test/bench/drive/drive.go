// Package drive runs the taxon binary for benchmarks: it builds it, trains with --json
// and reads what came out. What it measures is what a user gets.
package drive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Report is what a training said of itself, and its figures on the test data.
type Report struct {
	Sweeps       int      `json:"sweeps"`
	Objective    float64  `json:"objective"`
	Gap          *float64 `json:"gap"`
	StoppedBy    string   `json:"stopped_by"`
	Seconds      float64  `json:"seconds"`     // without ingest
	CPUSeconds   float64  `json:"cpu_seconds"` // the same
	PeakRSSBytes int64    `json:"peak_rss_bytes"`
	Test         struct {
		MicroF1 float64 `json:"micro_f1"`
		MacroF1 float64 `json:"macro_f1"`
		Classes int     `json:"classes"`
	} `json:"test"`

	ModelBytes int64   `json:"-"` // of all files of the model
	Trace      []Sweep `json:"-"` // one a sweep
}

// Sweep is a line of trace.jsonl; nil where a figure was not computed.
type Sweep struct {
	Sweep   int      `json:"sweep"`
	Gap     *float64 `json:"gap"`
	Seconds float64  `json:"seconds"`
	MicroF1 *float64 `json:"micro_f1"`
	MacroF1 *float64 `json:"macro_f1"`
}

// Set is a data set: train.svm.xz, test.svm.xz and a tree in one folder.
type Set struct {
	Dir  string
	Tree string // name of the structure's file
}

// Driver trains models in a folder of its own.
type Driver struct {
	binary, dir string
}

// New builds the binary. The caller must Close.
func New(ctx context.Context) (*Driver, error) {
	dir, err := os.MkdirTemp("", "taxon-bench-")
	if err != nil {
		return nil, err
	}
	d := &Driver{binary: filepath.Join(dir, "taxon"), dir: dir}
	build := exec.CommandContext(ctx, "go", "build", "-o", d.binary, "taxon/cmd/taxon")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("go build (run this inside the repository): %w: %s", err, bytes.TrimSpace(out)), d.Close())
	}
	return d, nil
}

// Close removes the binary and whatever is left of the models.
func (d *Driver) Close() error { return os.RemoveAll(d.dir) }

// Train trains on s, evaluates on its test data and removes the model.
func (d *Driver) Train(ctx context.Context, s Set, flags ...string) (*Report, error) {
	model := filepath.Join(d.dir, "model")
	args := append([]string{
		"train", "--data", filepath.Join(s.Dir, "train.svm.xz"), "--test", filepath.Join(s.Dir, "test.svm.xz"),
		"--hierarchy", filepath.Join(s.Dir, s.Tree), "--out", model, "--force", "--json", "--quiet",
	}, flags...)
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, d.binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("taxon %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	r := &Report{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		return nil, fmt.Errorf("taxon train --json: %w", err)
	}
	if r.Gap == nil {
		return nil, errors.New("taxon train --json: no gap in the report")
	}
	var err error
	if r.ModelBytes, err = size(model); err != nil {
		return nil, err
	}
	if r.Trace, err = trace(filepath.Join(model, "trace.jsonl")); err != nil {
		return nil, err
	}
	return r, os.RemoveAll(model)
}

func trace(path string) (sweeps []Sweep, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var s Sweep
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		sweeps = append(sweeps, s)
	}
	return sweeps, nil
}

func size(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		i, err := e.Info()
		if err == nil {
			sum += i.Size()
		}
		return err
	})
	return sum, err
}

// Row prints a row of a Markdown table.
func Row(cells ...string) { fmt.Println("| " + strings.Join(cells, " | ") + " |") }

// Rule prints the line below a table's head of n cells.
func Rule(n int) { fmt.Println(strings.Repeat("| --- ", n) + "|") }
