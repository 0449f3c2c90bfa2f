package train

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/internal/model"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// heard is a UI that keeps what it is told.
type heard struct {
	progress.Discard
	notes, warnings []string
}

func (h *heard) Note(format string, args ...any) {
	h.notes = append(h.notes, fmt.Sprintf(format, args...))
}
func (h *heard) Warn(format string, args ...any) {
	h.warnings = append(h.warnings, fmt.Sprintf(format, args...))
}

// noisy are the options of a training on files with noise, in a folder of the test.
func noisy(t *testing.T, edges string) *Options {
	t.Helper()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(7, 11))
	var rows strings.Builder
	for range 300 {
		c := r.IntN(6)
		fmt.Fprintf(&rows, "c%d %d:%.3f %d:%.3f\n", c, 1+c*r.IntN(2), r.Float64(), 10+r.IntN(8), r.Float64())
	}
	for name, text := range map[string]string{"train.svm": rows.String(), "tree.txt": edges} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return &Options{
		Job: methodtest.Options("rr-svm", "loss", "hinge", "schedule", "twoblock", "c", 1, "bias", 1, "gap", 1e-2,
			"prune", "empty", "stiffness", "support",
			"momentum", "fista", "checkpoint_sweeps", 4, "internal_weight", 1, "positive_weight", "1"),
		Data: []string{filepath.Join(dir, "train.svm")}, Hierarchy: filepath.Join(dir, "tree.txt"), DAG: "graph",
		Out:    filepath.Join(dir, "model"),
		Cutoff: "auto", Stores: 1, Store: "memory", Pause: 10,
	}
}

// Another program trains as the verb does: a model is there, the second time it is found, and
// with other options it is refused as an error of the user's.
func TestRun(t *testing.T) {
	o, h := noisy(t, "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n"), &heard{}
	first, err := Run(t.Context(), o, h)
	if err != nil || first.StoppedBy != "gap" || *first.Gap > 1e-2 {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := Run(t.Context(), o, h)
	if err != nil || again.WeightsSHA256 != first.WeightsSHA256 || len(h.notes) == 0 ||
		!strings.Contains(h.notes[len(h.notes)-1], "nothing to do") {
		t.Errorf("%+v, %v, told %q", again, err, h.notes)
	}
	o.Job.Set("c", 2)
	if _, err := Run(t.Context(), o, h); !option.Is(err) || !strings.Contains(err.Error(), "other options (C 1, not 2)") {
		t.Errorf("other options: %v", err)
	}
	if left, _ := filepath.Glob(o.Out + "?*"); len(left) > 0 {
		t.Errorf("left beside the model: %v", left)
	}
}

// TestWarmStartMoved: what is carried over are the effective weights, wherever a node hangs.
func TestWarmStartMoved(t *testing.T) {
	o := noisy(t, "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n")
	if _, err := Run(t.Context(), o, &heard{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Hierarchy, []byte("r a\nr b\nb x\nx c0\na c1\na c2\nb c3\nb c4\nb c5\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	tr, err := Open(t.Context(), o, &heard{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	m, err := model.Open(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c, err := newWarmMapping(m, tr)
	if err != nil {
		t.Fatal(err)
	}
	if c.moved != 1 { // c0 alone: x is new
		t.Errorf("%d moved", c.moved)
	}
	vectors := make([][]float32, tr.Tree.Len())
	for n := range vectors {
		vectors[n] = make([]float32, c.width)
		if p := tr.Tree.Parent[n]; p >= 0 {
			copy(vectors[n], vectors[p])
		}
		columns, values := c.weights(n)
		for i, k := range columns {
			vectors[n][k] = values[i]
		}
		if c.old[n] < 0 {
			continue
		}
		for k, v := range m.Vector(c.old[n]) { // the same data: the same columns
			if vectors[n][k] != v {
				t.Errorf("node %s, column %d: %v, in the model %v", tr.Tree.Name[n], k, vectors[n][k], v)
			}
		}
	}
}

// A job of a program that left its internal weight out has that of 1, and its model the same
// options as one of `taxon train`.
func TestOfLeavesOutDefaults(t *testing.T) {
	o := noisy(t, "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n")
	tr, err := Open(t.Context(), o, &heard{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tr.GiveStructure()
	tr.Spec.Options.Set("internal_weight", 0)
	of, err := Of(tr.Spec)
	if err != nil {
		t.Fatal(err)
	}
	of.Set = tr.Set
	if diff := optionsDiffer(of.Meta().Options, tr.Meta().Options, true); diff != "" {
		t.Errorf("the job's model differs: %s", diff)
	}
	tr.Spec.Options.Set("internal_weight", 2)
	if w := string(of.Meta().Options.Own["internal_weight"]); w != "2" {
		t.Errorf("an internal weight of 2 is told as %s", w)
	}
}

// What an option is not is told by a word, also where it has no value.
func TestOptionsDifferNamesNone(t *testing.T) {
	a, b := model.Options{Method: "td"}, model.Options{Method: "td", DAG: "graph"}
	if diff := optionsDiffer(a, b, true); diff != "dag none, not graph" {
		t.Errorf("%q", diff)
	}
}
