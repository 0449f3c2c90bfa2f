package scoring

import (
	"path/filepath"
	"testing"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model/form"
	"taxon/internal/model/modeltest"
)

func init() {
	// The last terminal is the first of the ranking, and the set.
	Register("last", true, func(t *taxonomy.Tree) (Ranker, error) {
		terminals := t.Terminals()
		return func(row *Row, score []float64) {
			last := terminals[len(terminals)-1]
			for _, n := range terminals[:len(terminals)-1] {
				row.Offer(Scored{n, score[n]})
			}
			row.First(Scored{last, score[last]})
			row.SetOwn([]Scored{{last, score[last]}})
		}, nil
	})
}

// TestRegister: a predictor that registers itself is a word of forms, and ranks and gives sets.
func TestRegister(t *testing.T) {
	meta := modeltest.TinyMeta()
	meta.Form = form.Form{Weights: form.Whole, Predictor: "last"}
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, meta, modeltest.TinyWeights(), 0)
	m := modeltest.Open(t, dir)
	for _, columns := range []bool{false, true} {
		p, err := New(m, Options{Rule: DefaultRule(m), Top: 9, RowByRow: columns})
		if err != nil {
			t.Fatal(err)
		}
		var r Result
		if err := p.NewScorer().Predict(batchOf([]modeltest.Row{{Columns: []uint32{0}, Values: []float32{1}}}),
			&r); err != nil {
			t.Fatal(err)
		}
		want := Scored{5, 1} // car: -2 x7 and a bias of 3
		if len(r.Best(0)) != 4 || r.Best(0)[0] != want || len(r.Set(0)) != 1 || r.Set(0)[0] != want {
			t.Errorf("by columns %v: ranked %v, predicted %v", columns, r.Best(0), r.Set(0))
		}
	}
}
