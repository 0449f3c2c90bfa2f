package exact

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"taxon/internal/model/export"
	"taxon/internal/ui/progress"
	"taxon/test/command"
)

// taxon is the command under test, which is built once.
var taxon string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "taxon-exact")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	if taxon, err = command.Build(dir); err != nil {
		log.Print(err)
		return 1
	}
	return m.Run()
}

// report is the part of the output of `train --json` that the tests use.
type report struct {
	Objective, Dual, Gap float64
	Sweeps               int
	Seconds              float64
	StoppedBy            string `json:"stopped_by"`
	Colours              int
	Nodes, Terminals     int
	Instances, Features  int
	WeightsSHA256        string `json:"weights_sha256"`
}

// trained is a finished model as a user sees it.
type trained struct {
	report
	nodes []Node      // parents are unknown
	w     [][]float64 // one row per node
}

// train runs the command on the problem and reads the exported weights.
func train(t *testing.T, p *Problem, flags ...string) (*trained, error) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "data"), p.Data())
	args := []string{"train", "--quiet", "--json", "--threads", "1", "--max-time", "20",
		"--data", filepath.Join(dir, "data"), "--out", filepath.Join(dir, "model"),
		"--C", format(p.C), "--bias", format(p.Bias)}
	if p.Logistic {
		args = append(args, "--method", "rr-lr")
	} else {
		args = append(args, "--loss", p.lossName())
	}
	if p.Weights != nil {
		write(t, filepath.Join(dir, "weights"), p.InstanceWeights())
		args = append(args, "--instance-weights", filepath.Join(dir, "weights"))
	}
	if p.Edges != nil {
		write(t, filepath.Join(dir, "tree"), p.Hierarchy())
		flag := "--hierarchy"
		if p.IsGraph && !p.Directed {
			flag = "--graph"
		}
		args = append(args, flag, filepath.Join(dir, "tree"))
	}
	if p.IsGraph {
		args = append(args, "--x", "anchor="+format(p.Anchor))
	}
	if p.Inner != 0 {
		args = append(args, "--x", "internal-weight="+format(p.Inner))
	}
	if p.EdgesBy != "" {
		args = append(args, "--x", "edge-weights="+p.EdgesBy)
	}
	if p.Degree {
		args = append(args, "--x", "cost-by=degree")
	}
	if p.Apart {
		args = append(args, "--x", "bias-pull=zero")
	}
	switch {
	case p.Positive > 0:
		args = append(args, "--positive-weight", format(p.Positive))
	case p.Positive < 0:
		args = append(args, "--positive-weight", "balanced")
	}
	if p.KeepEmpty {
		args = append(args, "--x", "prune=none")
	}
	out, err := runTaxon(append(args, flags...)...)
	if err != nil {
		return nil, err
	}
	m := &trained{}
	if err := json.Unmarshal(out, &m.report); err != nil {
		return nil, fmt.Errorf("%w in %s", err, out)
	}
	text, err := exportText(filepath.Join(dir, "model"))
	if err != nil {
		return nil, err
	}
	return m, m.read(p, text)
}

func (p *Problem) lossName() string {
	if p.Squared {
		return "squared-hinge"
	}
	return "hinge"
}

// exportText returns the output of `taxon export` for a model, without a process of its own.
func exportText(dir string) ([]byte, error) {
	var out bytes.Buffer
	_, err := export.Run(context.Background(), export.Options{Model: dir, Format: "text", What: export.Mean,
		Values: "float32", Out: "-", Stdout: &out, Threads: 1}, progress.Discard{})
	return out.Bytes(), err
}

// runTaxon runs taxon and returns its standard output.
func runTaxon(args ...string) ([]byte, error) {
	cmd := exec.Command(taxon, args...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("taxon %s: %w: %s", args[0], err, exit.Stderr)
	}
	return out, err
}

// read parses `KIND NAME idx:val ... [bias:val]` lines.
func (m *trained) read(p *Problem, text []byte) error {
	columns, width := p.Columns(), p.Width()
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), " ")
		if len(fields) < 2 {
			return fmt.Errorf("export: line %q", lines.Text())
		}
		w := make([]float64, width)
		for _, field := range fields[2:] {
			index, value, _ := strings.Cut(field, ":")
			v, err := strconv.ParseFloat(value, 32)
			if err != nil {
				return fmt.Errorf("export: %q: %w", field, err)
			}
			f, err := strconv.Atoi(index)
			column, known := columns[f]
			if index == "bias" && p.Bias > 0 {
				column = width - 1
			} else if err != nil || !known {
				return fmt.Errorf("export: %q is no feature of the data", field)
			}
			w[column] = v
		}
		m.nodes, m.w = append(m.nodes, Node{Kind: fields[0], Name: fields[1]}), append(m.w, w)
	}
	return lines.Err()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func format(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// sameNodes reports whether the exported nodes are those of the tree, in its order.
func sameNodes(got, want []Node) bool {
	return slices.EqualFunc(got, want, func(a, b Node) bool { return a.Kind == b.Kind && a.Name == b.Name })
}
