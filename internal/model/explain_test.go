package model

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
)

// By hand: x = (4, 2, 0) for dog: virtual 4 (0.5) - 1, animal 4 (0.25-0.5) + 2 (1.5), dog's bias -0.75 for -1.
func TestExplain(t *testing.T) {
	m := tinyModel(t)
	want := []Level{
		{Node: 0, Score: 1, Gain: 1, Bias: -1, Terms: []Term{{0, 4, 2}}},
		{Node: 1, Score: 3, Gain: 2, Terms: []Term{{1, 2, 3}, {0, 4, -1}}},
		{Node: 4, Score: 3.25, Gain: 0.25, Bias: 0.25},
	}
	if got := m.Explain(4, []uint32{0, 1, 9}, []float32{4, 2, 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// The levels add up to the score that prediction gives, pruned or not.
func TestExplainAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	meta, weights := randomModel(rng, shape{nodes: 60, features: 20, overrides: 6, branch: 4, bias: 0.5})
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, meta, weights, 0)
	full := openModel(t, dir)
	for _, m := range []*Model{full, pruned(t, full, PruneOptions{Threshold: 0.1}, 1)} {
		p, err := m.NewPredictor(PredictOptions{Top: 99})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range randomRows(rng, 5, 20, 0.4) {
			var r Result
			if err := p.NewScorer().Predict(batchOf([]row{x}), &r); err != nil {
				t.Fatal(err)
			}
			for _, s := range r.Best(0) {
				levels := m.Explain(s.Node, x.columns, x.values)
				sum := 0.0
				for _, l := range levels {
					sum += l.Bias
					for _, term := range l.Terms {
						sum += term.Gain
					}
				}
				if last := levels[len(levels)-1]; math.Abs(last.Score-s.Score) > 1e-5 || math.Abs(sum-s.Score) > 1e-5 || last.Node != s.Node {
					t.Fatalf("node %d: levels give %v and %v, prediction %v", s.Node, last.Score, sum, s.Score)
				}
			}
		}
	}
}
