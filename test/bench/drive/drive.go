// Package drive runs the taxon binary for benchmarks: it builds it, trains with --json and reads
// the output. It measures what users get.
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

// Report is the report of a training, with the measures on the test data.
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

	ModelBytes int64   `json:"-"` // bytes of all files of the model
	Trace      []Sweep `json:"-"` // one entry per sweep
}

// Sweep is a line of trace.jsonl. A figure that was not computed is nil.
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

// New builds the binary. The caller must call Close.
func New(ctx context.Context) (*Driver, error) {
	return NewFrom(ctx, "")
}

// NewFrom uses an existing binary. An empty path builds one.
func NewFrom(ctx context.Context, binary string) (*Driver, error) {
	dir, err := os.MkdirTemp("", "taxon-bench-")
	if err != nil {
		return nil, err
	}
	if binary != "" {
		return &Driver{binary: binary, dir: dir}, nil
	}
	d := &Driver{binary: filepath.Join(dir, "taxon"), dir: dir}
	build := exec.CommandContext(ctx, "go", "build", "-o", d.binary, "taxon/cmd/taxon")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("go build (run this inside the repository): %w: %s", err, bytes.TrimSpace(out)),
			d.Close())
	}
	return d, nil
}

// Close removes the binary and the remaining models.
func (d *Driver) Close() error { return os.RemoveAll(d.dir) }

// Binary returns the path of the binary.
func (d *Driver) Binary() string { return d.binary }

// Train trains on s, evaluates on its test data and removes the model.
func (d *Driver) Train(ctx context.Context, s Set, flags ...string) (*Report, error) {
	return d.TrainFiles(ctx, Files{filepath.Join(s.Dir, "train.svm.xz"), filepath.Join(s.Dir, "test.svm.xz"),
		filepath.Join(s.Dir, s.Tree)}, flags...)
}

// Files holds the inputs of a training. Tree is empty if there is none.
type Files struct{ Train, Test, Tree string }

// TrainFiles is like Train, for single files.
func (d *Driver) TrainFiles(ctx context.Context, f Files, flags ...string) (*Report, error) {
	model := filepath.Join(d.dir, "model")
	r, err := d.TrainTo(ctx, model, f, flags...)
	return r, errors.Join(err, os.RemoveAll(model))
}

// TrainTo is like TrainFiles, but keeps the model.
func (d *Driver) TrainTo(ctx context.Context, model string, f Files, flags ...string) (*Report, error) {
	args := append([]string{"train", "--data", f.Train, "--test", f.Test, "--out", model, "--force", "--json", "--quiet"},
		flags...)
	if f.Tree != "" {
		args = append(args, "--hierarchy", f.Tree)
	}
	out, _, err := d.exec(ctx, args...)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(out, r); err != nil {
		return nil, fmt.Errorf("taxon train --json: %w", err)
	}
	if r.Gap == nil {
		return nil, errors.New("taxon train --json: no gap in the report")
	}
	if r.ModelBytes, err = Size(model); err != nil {
		return nil, err
	}
	if r.Trace, err = trace(filepath.Join(model, "trace.jsonl")); err != nil {
		return nil, err
	}
	return r, nil
}

// CPU runs a verb and returns its CPU seconds, user and system.
func (d *Driver) CPU(ctx context.Context, args ...string) (float64, error) {
	_, state, err := d.exec(ctx, args...)
	if err != nil {
		return 0, err
	}
	return (state.UserTime() + state.SystemTime()).Seconds(), nil
}

// Output runs a verb and returns its output.
func (d *Driver) Output(ctx context.Context, args ...string) ([]byte, error) {
	out, _, err := d.exec(ctx, args...)
	return out, err
}

func (d *Driver) exec(ctx context.Context, args ...string) ([]byte, *os.ProcessState, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, d.binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, nil, fmt.Errorf("taxon %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.Bytes(), cmd.ProcessState, nil
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

// Size returns the sum of the sizes of a folder's files.
func Size(dir string) (sum int64, err error) {
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

// Rule prints the line below the header of a table with n columns.
func Rule(n int) { fmt.Println(strings.Repeat("| --- ", n) + "|") }
