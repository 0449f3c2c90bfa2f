package model

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/model/labelset"
)

func tinyCutoffs() *labelset.Cutoffs {
	return &labelset.Cutoffs{
		Depth: 3, Global: -0.25, Intercept: -0.1, Weight: []float64{0.5, 1e-17, -0.125}, Class: []float64{0, 0.1, -1, 2}, Rank: 2,
		HeldOut: labelset.HeldOut{Instances: 7, Scut: labelset.Quality{MicroF1: 0.5, MacroF1: 1. / 3}},
	}
}

// Cut-offs that were added come back as they were, the weights stay, a pruned copy keeps
// them, and a second fit takes their place.
func TestAddCutoffs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	before := writeModel(t, dir, tinyMeta(), tinyWeights(), 0)
	if m := openModel(t, dir); m.Cutoffs != nil || m.Manifest.Report.CutoffSeconds != nil {
		t.Error("cut-offs of a model without any")
	}
	for range 2 {
		r, err := AddCutoffs(dir, tinyCutoffs(), 1.5, 2.5)
		if err != nil {
			t.Fatal(err)
		}
		if r.WeightsSHA256 != before.WeightsSHA256 || *r.CutoffSeconds != 1.5 || *r.CutoffCPU != 2.5 || r.HeldOut.Instances != 7 {
			t.Errorf("report %+v", r)
		}
		m := openModel(t, dir)
		if !reflect.DeepEqual(m.Cutoffs, tinyCutoffs()) {
			t.Errorf("%+v", m.Cutoffs)
		}
		p := filepath.Join(t.TempDir(), "p")
		if _, err := m.WritePruned(context.Background(), p, PruneOptions{}, 1); err != nil {
			t.Fatal(err)
		}
		if got := openModel(t, p); !reflect.DeepEqual(got.Cutoffs, tinyCutoffs()) {
			t.Errorf("pruned: %+v", got.Cutoffs)
		}
	}
	if err := Replaceable(dir); err != nil {
		t.Error(err)
	}
}

func TestCutoffsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, tinyMeta(), tinyWeights(), 0)
	c := tinyCutoffs()
	c.Class = c.Class[:1]
	if _, err := AddCutoffs(dir, c, 1, 1); err == nil {
		t.Error("thresholds of another model went in")
	}
	if _, err := AddCutoffs(dir, tinyCutoffs(), 1, 1); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, fileCutoffs)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(good), "-0.25", "-0.35", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	var input *fs.InputError
	if _, err := Open(dir); !errors.As(err, &input) || input.Path != name {
		t.Errorf("damaged: %v", err)
	}
}

func FuzzCutoffs(f *testing.F) {
	b, err := encodeFitted(tinyCutoffs())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"depth":1}{}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parsedCutoffs(b)
		if err != nil || c.Check(4, 4) != nil {
			return
		}
		again, err := encodeFitted(c)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := parsedCutoffs(again); err != nil || !reflect.DeepEqual(c, d) {
			t.Errorf("%v, then %v (%v)", c, d, err)
		}
	})
}

// A published copy is the model; what is no model stays, and so does the model copied.
func TestPublish(t *testing.T) {
	root := t.TempDir()
	from, dir := filepath.Join(root, "from"), filepath.Join(root, "made", "m")
	writeModel(t, from, tinyMeta(), tinyWeights(), 0)
	for range 2 { // the second time over the first
		if err := Publish(from, dir); err != nil {
			t.Fatal(err)
		}
		a, b := openModel(t, from), openModel(t, dir)
		if a.Manifest.Report.WeightsSHA256 != b.Manifest.Report.WeightsSHA256 {
			t.Error("another model")
		}
		if _, err := AddCutoffs(from, tinyCutoffs(), 1, 1); err != nil {
			t.Fatal(err)
		}
		if m := openModel(t, dir); (m.Cutoffs == nil) != (b.Cutoffs == nil) {
			t.Error("the copy changes with its source")
		}
	}
	if m := openModel(t, dir); m.Cutoffs == nil {
		t.Error("the second copy did not take the first one's place")
	}
	if err := os.WriteFile(filepath.Join(dir, "diary"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Publish(from, dir); err == nil || !strings.Contains(err.Error(), "diary") {
		t.Errorf("over what is no model: %v", err)
	}
}

func parsedCutoffs(b []byte) (*labelset.Cutoffs, error) {
	c := new(labelset.Cutoffs)
	return c, parseFitted("cutoffs.json", b, c)
}
