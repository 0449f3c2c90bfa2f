package model_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/labelset"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/pruning"
)

func tinyCutoffs() *labelset.Cutoffs {
	return &labelset.Cutoffs{
		Depth: 3, Global: -0.25, Intercept: -0.1, Weight: []float64{0.5, 1e-17, -0.125}, Class: []float64{0, 0.1, -1, 2},
		Rank:    2,
		HeldOut: labelset.HeldOut{Instances: 7, Scut: labelset.Quality{MicroF1: 0.5, MacroF1: 1. / 3}},
	}
}

// Cut-offs that were added come back as they were, the weights stay, a pruned copy keeps
// them, and a second fit takes their place.
func TestAddCutoffs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	before := modeltest.Write(t, dir, modeltest.TinyMeta(), modeltest.TinyWeights(), 0)
	if m := modeltest.Open(t, dir); m.Cutoffs != nil || m.Manifest.Report.CutoffSeconds != nil {
		t.Error("cut-offs of a model without any")
	}
	for range 2 {
		r, err := model.AddCutoffs(dir, tinyCutoffs(), 1.5, 2.5)
		if err != nil {
			t.Fatal(err)
		}
		if r.WeightsSHA256 != before.WeightsSHA256 || *r.CutoffSeconds != 1.5 || *r.CutoffCPU != 2.5 ||
			r.HeldOut.Instances != 7 {
			t.Errorf("report %+v", r)
		}
		m := modeltest.Open(t, dir)
		if !reflect.DeepEqual(m.Cutoffs, tinyCutoffs()) {
			t.Errorf("%+v", m.Cutoffs)
		}
		p := filepath.Join(t.TempDir(), "p")
		if _, err := pruning.Write(context.Background(), m, p, pruning.Options{}, 1); err != nil {
			t.Fatal(err)
		}
		if got := modeltest.Open(t, p); !reflect.DeepEqual(got.Cutoffs, tinyCutoffs()) {
			t.Errorf("pruned: %+v", got.Cutoffs)
		}
	}
	if err := model.Replaceable(dir); err != nil {
		t.Error(err)
	}
}

func TestCutoffsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, modeltest.TinyMeta(), modeltest.TinyWeights(), 0)
	c := tinyCutoffs()
	c.Class = c.Class[:1]
	if _, err := model.AddCutoffs(dir, c, 1, 1); err == nil {
		t.Error("thresholds of another model went in")
	}
	if _, err := model.AddCutoffs(dir, tinyCutoffs(), 1, 1); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "cutoffs.json")
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(good), "-0.25", "-0.35", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	var input *fs.InputError
	if _, err := model.Open(dir); !errors.As(err, &input) || input.Path != name {
		t.Errorf("damaged: %v", err)
	}
}

func FuzzCutoffs(f *testing.F) {
	b, err := model.EncodeFitted(tinyCutoffs())
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
		again, err := model.EncodeFitted(c)
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
	modeltest.Write(t, from, modeltest.TinyMeta(), modeltest.TinyWeights(), 0)
	for range 2 { // the second time over the first
		if err := model.Publish(from, dir); err != nil {
			t.Fatal(err)
		}
		a, b := modeltest.Open(t, from), modeltest.Open(t, dir)
		if a.Manifest.Report.WeightsSHA256 != b.Manifest.Report.WeightsSHA256 {
			t.Error("another model")
		}
		if _, err := model.AddCutoffs(from, tinyCutoffs(), 1, 1); err != nil {
			t.Fatal(err)
		}
		if m := modeltest.Open(t, dir); (m.Cutoffs == nil) != (b.Cutoffs == nil) {
			t.Error("the copy changes with its source")
		}
	}
	if m := modeltest.Open(t, dir); m.Cutoffs == nil {
		t.Error("the second copy did not take the first one's place")
	}
	if err := os.WriteFile(filepath.Join(dir, "diary"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := model.Publish(from, dir); err == nil || !strings.Contains(err.Error(), "diary") {
		t.Errorf("over what is no model: %v", err)
	}
}

func parsedCutoffs(b []byte) (*labelset.Cutoffs, error) {
	c := new(labelset.Cutoffs)
	return c, model.ParseFitted("cutoffs.json", b, c)
}
