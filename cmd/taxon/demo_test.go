package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"taxon/internal/app/demo"
	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/ui/console"
)

// centroids stands in for training: each class gets the mean of its documents, and
// with the hierarchy a share of the means of the classes above it.
func centroids(ctx context.Context, run demo.Training) (*model.Report, error) {
	if model.IsModel(run.Out) {
		m, err := model.Open(run.Out)
		if err != nil {
			return nil, err
		}
		defer m.Close()
		return &m.Manifest.Report, nil
	}
	data := run.Out + ".data"
	defer os.RemoveAll(data)
	if _, err := dataset.Ingest(ctx, dataset.Options{Paths: []string{run.Data}, Out: data, Text: true}); err != nil {
		return nil, err
	}
	set, err := dataset.Open(data)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	f, err := fs.Open(ctx, fs.Local{}, run.Hierarchy)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	structure, _, err := taxonomy.Read(f, run.Hierarchy)
	if err != nil {
		return nil, err
	}
	share := float32(0)
	grown := structure
	if run.Method == "rr-svm" {
		share = 0.2
	} else {
		grown = nil
	}
	counts, counts32 := make([]int, len(set.Labels)), make([]uint32, len(set.Labels))
	for l := range counts {
		counts[l] = int(set.PosBegin[l+1] - set.PosBegin[l])
		counts32[l] = uint32(counts[l])
	}
	tree, _, err := taxonomy.Build(grown, set.Labels, counts, taxonomy.PruneEmpty)
	if err != nil {
		return nil, err
	}
	w, err := model.NewWriter(run.Out, model.Meta{
		Options: model.Options{Method: run.Method},
		Data: model.DataInfo{Fingerprint: set.Fingerprint, Instances: set.Matrix.Rows, Nonzeros: set.Matrix.NNZ,
			Positives: int64(len(set.LabelIndex)), Text: true},
		Tree: tree, Structure: structure, Labels: set.Labels, LabelCounts: counts32, Feature: set.Feature,
		Text: &model.Text{Vocabulary: set.Vocabulary, IDF: set.IDF},
	})
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	vectors := subtreeMeans(set, tree)
	for n := range tree.Len() {
		var columns []uint32
		var values []float32
		for c, v := range vectors[n] {
			if p := tree.Parent[n]; p >= 0 {
				v += share * vectors[p][c]
			}
			if v != 0 {
				columns, values = append(columns, uint32(c)), append(values, v)
			}
		}
		if err := w.WriteNode(n, columns, values); err != nil {
			return nil, err
		}
	}
	gap := 0.0094
	rep, err := w.Close(model.Report{Method: run.Method, Gap: &gap, Seconds: 1.5, StoppedBy: "gap"}, nil)
	return &rep, err
}

// subtreeMeans is the mean of the rows at and below each node.
func subtreeMeans(set *dataset.Set, tree *taxonomy.Tree) [][]float32 {
	vectors := make([][]float32, tree.Len())
	rows := make([]float32, tree.Len())
	for n := tree.Len() - 1; n >= 0; n-- {
		if vectors[n] == nil {
			vectors[n] = make([]float32, set.Matrix.Cols)
		}
		if l := tree.Label[n]; l >= 0 && tree.Leaf[n] {
			for _, i := range set.PosRows[set.PosBegin[l]:set.PosBegin[l+1]] {
				columns, values := set.Matrix.Row(int(i))
				for k, c := range columns {
					vectors[n][c] += values[k]
				}
				rows[n]++
			}
		}
		if p := tree.Parent[n]; p >= 0 {
			if vectors[p] == nil {
				vectors[p] = make([]float32, set.Matrix.Cols)
			}
			for c, v := range vectors[n] {
				vectors[p][c] += v
			}
			rows[p] += rows[n]
		}
	}
	for n := range vectors {
		for c := range vectors[n] {
			vectors[n][c] /= max(1, rows[n])
		}
	}
	return vectors
}

// runDemoVerb runs the demo over another trainer, in the place of the real one.
func runDemoVerb(t *testing.T, train func(context.Context, demo.Training) (*model.Report, error),
	args ...string) (code int, stdout, stderr string) {
	t.Helper()
	all := verbs()
	all[0].build = func(a *app) *cobra.Command { return newDemoCmd(a, train) }
	var out, errw bytes.Buffer
	code = executeVerbs(t.Context(), all, append([]string{"demo"}, args...), strings.NewReader(""), &out, &errw)
	return code, out.String(), errw.String()
}

func TestDemo(t *testing.T) {
	keep := filepath.Join(t.TempDir(), "a demo")
	code, stdout, stderr := runDemoVerb(t, centroids, "--keep", keep)
	if code != 0 || stderr != "training bsvm (1 of 2)\ntraining rr-svm (2 of 2)\n" {
		t.Fatalf("exit status %d, stderr %q", code, stderr)
	}
	t.Logf("\n%s", stdout)
	for _, want := range []string{"WordNet 3.0 Copyright 2006", "6,602 documents", "502 classes", "rr-svm  (hierarchy)",
		"9.4e-03", "gain", "\n  6-10 ", "sign test", "    true    entity > ", "\n  cd '", "\n  taxon info rr-svm\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	for _, line := range strings.Split(stdout, "\n") {
		if len([]rune(line)) > console.Width && !strings.HasPrefix(line, "  cd ") || strings.HasSuffix(line, " ") {
			t.Errorf("too wide or with a blank at its end: %q", line)
		}
	}
	var left []string
	entries, err := os.ReadDir(keep)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"LICENSE.wordnet", "bsvm", "hierarchy.txt", "rr-svm", "test.txt", "train.txt"}; !slices.Equal(left,
		want) {
		t.Errorf("kept %q, want %q", left, want)
	}

	code, again, _ := runDemoVerb(t, centroids, "--keep", keep, "--quiet") // on what is there
	if code != 0 || again != stdout {
		t.Errorf("exit status %d, and the second run prints something else:\n%s", code, again)
	}

	code, stdout, stderr = runDemoVerb(t, centroids, "--keep", keep, "--json", "--quiet")
	var r demo.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || stderr != "" {
		t.Fatalf("exit status %d, stderr %q, %v", code, stderr, err)
	}
	if a := r.Agreement; a.Both+a.Tree+a.Flat+a.Neither != 1690 || r.Test != 1690 || len(r.Runs) != 2 ||
		len(r.BySize) < 3 || len(r.Examples) != 5 {
		t.Errorf("incomplete: %s", stdout)
	}
	for i, want := range []struct{ flat, tree bool }{{false, true}, {false, true}, {true, false}, {true, true},
		{false, false}} {
		e := r.Examples[i]
		if e.FlatRight != want.flat || e.TreeRight != want.tree || e.Truth[0] != "entity" || len(e.Text) == 0 {
			t.Errorf("example %d: %+v", i, e)
		}
	}
}

func TestDemoLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	failing := func(_ context.Context, run demo.Training) (*model.Report, error) {
		if _, err := os.Stat(run.Data); err != nil {
			t.Error(err)
		}
		return nil, errors.New("the shard is lost")
	}
	code, _, stderr := runDemoVerb(t, failing, "--quiet")
	if code != exitFailed || stderr != "taxon: the shard is lost\n" {
		t.Errorf("exit status %d, stderr %q", code, stderr)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDemoKeepsTheUsersFiles(t *testing.T) {
	keep := t.TempDir()
	mine := filepath.Join(keep, "train.txt")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runDemoVerb(t, centroids, "--keep", keep)
	if code != exitUsage || !strings.HasPrefix(stderr, "taxon: "+mine+": exists already") {
		t.Errorf("exit status %d, stderr %q", code, stderr)
	}
	if got, err := os.ReadFile(mine); err != nil || string(got) != "mine" {
		t.Errorf("the file now holds %q, %v", got, err)
	}
	code, _, stderr = runDemoVerb(t, centroids, "--keep", mine)
	if code != exitUsage || strings.Count(stderr, "\n") != 1 {
		t.Errorf("a file for --keep: exit status %d, stderr %q", code, stderr)
	}
}

func TestDemoHelp(t *testing.T) {
	code, stdout, _ := runDemoVerb(t, centroids, "--help")
	if code != 0 || !strings.Contains(stdout, "--keep DIR") {
		t.Errorf("exit status %d, help:\n%s", code, stdout)
	}
}

// What the demo tells people to type must be understood.
func TestDemoNext(t *testing.T) {
	known := map[string]bool{}
	for _, cmd := range newRootCmd(&app{}, verbs()).Commands() {
		known[cmd.Name()] = true
	}
	for _, line := range demo.Next() {
		if len(line) > console.Width-2 {
			t.Errorf("too wide: %q", line)
		}
		if known[strings.Fields(line)[1]] { // a binary may be built without a verb
			checkExample(t, line)
		}
	}
}
