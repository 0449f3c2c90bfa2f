package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"taxon/coordinator/method/registry"
	_ "taxon/internal/methods/all"
)

// runner trains and measures with the program that users have.
type runner struct {
	program string
	data    string // TAXON_DATA
	// work is the folder of models and searches: it has a folder per data set, with one per row.
	work    string
	plots   string
	tune    bool
	folds   int
	seconds int // --max-time of a training; 0 for none
	long    bool
	log     io.Writer

	tuneFlags []string // further flags of tune
}

// trained is a model and its figures.
type trained struct {
	model   string
	c       string // empty if the method has none
	gap     *float64
	stopped string
	cpu     float64
	test    measures
}

// measures holds the measures of `eval --json`.
type measures struct {
	Value  map[string]float64
	Levels []struct {
		Level, Classes        int
		MacroF1               float64 `json:"macro_f1"`
		Precision, Recall, F1 float64
	} `json:"by_level"`
	Sizes []struct {
		From, To, Classes int
		MacroF1           float64 `json:"macro_f1"`
	} `json:"by_size"`
	Sign     struct{ P float64 } `json:"sign_test"`
	Wilcoxon struct{ P float64 }
}

func (m *measures) UnmarshalJSON(data []byte) error {
	type plain measures
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, (*plain)(m)); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	m.Value = map[string]float64{}
	for key, value := range all {
		var x float64
		if json.Unmarshal(value, &x) == nil {
			m.Value[key] = x
		}
	}
	return nil
}

// set returns the paths of a data set.
func (r *runner) set(name string) (train, test, tree string) {
	dir := filepath.Join(r.data, name)
	tree = filepath.Join(dir, "tree.txt") // with the first parents only
	if _, err := os.Stat(tree); err != nil {
		tree = filepath.Join(dir, "hierarchy.txt")
	}
	return filepath.Join(dir, "train.svm.xz"), filepath.Join(dir, "test.svm.xz"), tree
}

// folder returns the folder of a row: its flags, without characters that file names cannot have.
func (r *runner) folder(data, flags string) string {
	id := strings.NewReplacer(" --", "_", " ", "_").Replace(strings.TrimPrefix(flags, "--method "))
	return filepath.Join(r.work, data, id)
}

// train trains a row of a table and measures it on the test rows.
func (r *runner) train(ctx context.Context, t *table, flags string, structured bool) (*trained, error) {
	train, test, tree := r.set(t.data)
	folder, args := r.folder(t.data, flags), strings.Fields(flags)
	if structured {
		args = append(args, "--hierarchy", tree)
	} else {
		folder += "_flat"
	}
	out, err := r.fit(ctx, t, folder, train, args)
	if err != nil {
		return nil, err
	}
	return out, r.call(ctx, []string{"eval", "--model", out.model, "--data", test, "--hierarchy", tree, "--json",
		"--quiet"}, &out.test)
}

// fit trains, with C by cross-validation if that is requested and the flags do not set it.
func (r *runner) fit(ctx context.Context, t *table, folder, data string, args []string) (*trained, error) {
	name, out := args[1], &trained{}
	has, err := options(name)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(r.log, "papers: %s\n", folder)
	args = append([]string{"--data", data}, args...)
	switch k := slices.Index(args, "--C"); {
	case k >= 0:
		out.c = args[k+1]
	case has["C"]:
		out.c = "1"
		if r.tune && !t.untuned {
			if out.c, err = r.tuned(ctx, folder, t.goal, args, name); err != nil {
				return nil, err
			}
		}
		args = append(args, "--C", out.c)
	}
	if has["gap"] {
		args = append(args, "--gap", t.gap())
	}
	out.model = filepath.Join(folder, "model-C"+out.c)
	var report struct {
		Gap       *float64
		CPU       float64 `json:"cpu_seconds"`
		StoppedBy string  `json:"stopped_by"`
	}
	args = append([]string{"train", "--out", out.model, "--json", "--quiet", "--threads", "1", "--max-time",
		fmt.Sprint(r.seconds)}, args...)
	kept := out.model + ".json" // of a finished training, whatever its cap was
	raw, err := os.ReadFile(kept)
	if err != nil {
		if raw, err = r.output(ctx, args); err != nil {
			return nil, err
		}
		if err := os.WriteFile(kept, raw, 0o600); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		return nil, err
	}
	out.gap, out.cpu, out.stopped = report.Gap, report.CPU, report.StoppedBy
	return out, nil
}

// compare tests one model against another on the test rows. It returns p of the sign test and of
// Wilcoxon's.
func (r *runner) compare(ctx context.Context, data string, a, b *trained) (sign, wilcoxon float64, err error) {
	_, test, tree := r.set(data)
	var m measures
	err = r.call(ctx, []string{"eval", "--model", a.model, "--compare", b.model, "--data", test, "--hierarchy", tree,
		"--json", "--quiet"}, &m)
	return m.Sign.P, m.Wilcoxon.P, err
}

// options returns the names of a method's options.
func options(name string) (map[string]bool, error) {
	m, err := registry.Lookup(name)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, o := range m.Options() {
		has[o.Name] = true
	}
	return has, nil
}

// perRow lists the methods that divide C by the number of rows. Their grid has larger values.
var perRow = []string{"flatmult", "hiermult", "transfer", "hsvm", "ot"}

// tuned returns the C that cross-validation finds best for the goal. It is cached in the row's
// folder.
func (r *runner) tuned(ctx context.Context, folder, goal string, args []string, name string) (string, error) {
	var table struct{ Options map[string]any }
	kept := filepath.Join(folder, "tuned.json")
	if data, err := os.ReadFile(kept); err != nil || json.Unmarshal(data, &table) != nil {
		grid := []string{"--C", "0.001,0.01,0.1,1,10,100,1000"}
		if slices.Contains(perRow, name) {
			grid[1] = "1,10,100,1000,10000,100000"
		}
		if r.tuneFlags != nil {
			grid = r.tuneFlags
		}
		args = slices.Concat([]string{"tune", "--out", filepath.Join(folder, "tuned"), "--goal", goal, "--json", "--quiet",
			"--no-train", "--threads", "1",
			"--folds", fmt.Sprint(r.folds), "--max-time", fmt.Sprint(r.seconds)}, grid, args)
		var raw json.RawMessage
		if err := r.call(ctx, args, &raw); err != nil {
			return "", err
		}
		if err := os.WriteFile(kept, raw, 0o600); err != nil {
			return "", err
		}
		if err := json.Unmarshal(raw, &table); err != nil {
			return "", err
		}
	}
	c, ok := table.Options["C"]
	if !ok {
		return "", fmt.Errorf("tune names no C: %v", table.Options)
	}
	return fmt.Sprint(c), nil
}

// call runs a verb and decodes its output.
func (r *runner) call(ctx context.Context, args []string, into any) error {
	out, err := r.output(ctx, args)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

func (r *runner) output(ctx context.Context, args []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, r.program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("taxon %s: %w: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, nil
}
