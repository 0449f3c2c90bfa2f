package train

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taxon/internal/model"
)

// described returns a training on texts, with terms of labels: that of c6 has no document.
func described(t *testing.T) *Training {
	t.Helper()
	o := noisy(t, "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\nb c6\n")
	var docs, terms strings.Builder
	for i := range 120 {
		fmt.Fprintf(&docs, "c%d\tword%d other%d\n", i*i%7%6, i*i%7%6, i%5)
	}
	for c := range 7 {
		fmt.Fprintf(&terms, "c%d\tword%d\nc%d\tword%d other1\n", c, c, c, c)
	}
	dir := filepath.Dir(o.Out)
	for name, text := range map[string]string{"docs.txt": docs.String(), "terms.txt": terms.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	o.Data, o.Text = []string{filepath.Join(dir, "docs.txt")}, true
	o.LabelText.Paths = []string{filepath.Join(dir, "terms.txt")}
	on, err := Open(t.Context(), o, &heard{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(on.Close)
	return on
}

// TestTermsAreNeverHeldOut: whatever is held out, all terms are trained on, and documents are not both.
func TestTermsAreNeverHeldOut(t *testing.T) {
	on := described(t)
	whole := (&holdOut{Training: on, trained: 20}).seconds()
	for _, times := range []float64{9, 2.1, 0.9, 0.1} {
		on.o.CutoffTime = times * whole
		h := &holdOut{Training: on, trained: 20}
		if !h.plan() {
			t.Fatalf("%g times the training: nothing held out", times)
		}
		for _, p := range h.parts {
			terms := 0
			for _, r := range p.rest {
				if r >= 120 {
					terms++
				}
			}
			if slices.Max(p.held) >= 120 || terms != 14 || !slices.IsSorted(p.rest) {
				t.Errorf("%g times the training: %d of 14 terms are trained on, rows to %d are held out", times, terms,
					slices.Max(p.held))
			}
		}
	}
}

// TestTermsWeighAsDocuments: a training on terms ends at the same weights as a training on the same
// rows written as documents. The model's class sizes and the prior shift count only documents.
func TestTermsWeighAsDocuments(t *testing.T) {
	on := described(t)
	all := make([]uint32, on.Set.Matrix.Rows)
	for i := range all {
		all[i] = uint32(i)
	}
	train := func(name string) *model.Model {
		dir := filepath.Join(t.TempDir(), name)
		if err := (&holdOut{Training: on, sweeps: 5}).train(t.Context(), all, dir); err != nil {
			t.Fatal(err)
		}
		m, err := model.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	a := train("terms")
	shift := on.PriorShift(1)
	terms := on.Set.Terms
	on.Set.Terms = nil
	b := train("documents")
	on.Set.Terms = terms
	if r, s := a.Manifest.Report, b.Manifest.Report; r.WeightsSHA256 != s.WeightsSHA256 || r.Objective != s.Objective ||
		r.Documents != 120 || r.Terms != 14 || s.Documents != 0 || s.Terms != 0 {
		t.Errorf("%+v, as documents %+v", r, s)
	}
	c6 := slices.Index(a.Labels, "c6")
	if a.LabelCounts[c6] != 0 || b.LabelCounts[c6] != 2 || a.Data.Documents() != 120 || a.Data.Positives != 120 {
		t.Errorf("counts %v, as documents %v; %+v", a.LabelCounts, b.LabelCounts, a.Data)
	}
	for n := range on.Tree.Len() {
		if l := on.Tree.Label[n]; l >= 0 && int(l) == c6 && shift[n] != slices.Max(shift) {
			t.Errorf("a class without documents is shifted by %g of %v", shift[n], shift)
		}
	}
}
