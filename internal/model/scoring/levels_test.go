package scoring

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"

	"taxon/internal/model"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/pruning"
)

// By hand: x = (4, 2, 0) for dog: virtual 4 (0.5) - 1, animal 4 (0.25-0.5) + 2 (1.5), dog's bias -0.75 for -1.
func TestExplain(t *testing.T) {
	m := modeltest.Tiny(t)
	want := []Level{
		{Node: 0, Score: 1, Gain: 1, Bias: -1, Terms: []Term{{0, 4, 2}}},
		{Node: 1, Score: 3, Gain: 2, Terms: []Term{{1, 2, 3}, {0, 4, -1}}},
		{Node: 4, Score: 3.25, Gain: 0.25, Bias: 0.25},
	}
	if got := Explain(m, 4, []uint32{0, 1, 9}, []float32{4, 2, 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// The levels add up to the score that prediction gives, pruned or not.
func TestExplainAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	meta, weights := modeltest.Random(rng, modeltest.Shape{Nodes: 60, Features: 20, Overrides: 6, Branch: 4, Bias: 0.5})
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, meta, weights, 0)
	full := modeltest.Open(t, dir)
	for _, m := range []*model.Model{full, pruned(t, full, pruning.Options{Threshold: 0.1}, 1)} {
		p, err := New(m, Options{Top: 99})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range modeltest.Rows(rng, 5, 20, 0.4) {
			var r Result
			if err := p.NewScorer().Predict(batchOf([]modeltest.Row{x}), &r); err != nil {
				t.Fatal(err)
			}
			for _, s := range r.Best(0) {
				levels := Explain(m, s.Node, x.Columns, x.Values)
				sum := 0.0
				for _, l := range levels {
					sum += l.Bias
					for _, term := range l.Terms {
						sum += term.Gain
					}
				}
				if last := levels[len(levels)-1]; math.Abs(last.Score-s.Score) > 1e-5 || math.Abs(sum-s.Score) > 1e-5 ||
					last.Node != s.Node {
					t.Fatalf("node %d: levels give %v and %v, prediction %v", s.Node, last.Score, sum, s.Score)
				}
			}
		}
	}
}
