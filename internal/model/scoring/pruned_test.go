package scoring

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/model"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/pruning"
	"taxon/internal/model/shard"
)

func pruned(t testing.TB, m *model.Model, o pruning.Options, threads int) *model.Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pruned")
	if _, err := pruning.Write(context.Background(), m, dir, o, threads); err != nil {
		t.Fatal(err)
	}
	return modeltest.Open(t, dir)
}

// Scores of a pruned model are those of its own vectors.
func TestPrunedScores(t *testing.T) {
	dir := t.TempDir()
	k := 0
	rapid.Check(t, func(rt *rapid.T) {
		k++
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		s := modeltest.Shape{
			Nodes:     rapid.IntRange(1, 60).Draw(rt, "nodes"),
			Features:  rapid.IntRange(1, 30).Draw(rt, "features"),
			Overrides: rapid.IntRange(0, 10).Draw(rt, "overrides"),
			Branch:    rapid.IntRange(1, 5).Draw(rt, "branch"),
			Bias:      rapid.SampledFrom([]float64{0, 1, 0.1}).Draw(rt, "bias"),
		}
		o := pruning.Options{Threshold: rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.3, 2}).Draw(rt, "threshold"),
			Values: rapid.SampledFrom(shard.Values).Draw(rt, "values")}
		meta, weights := modeltest.Random(rng, s)
		name := filepath.Join(dir, fmt.Sprint(k))
		modeltest.Write(t, name, meta, weights, 0)
		whole, err := model.Open(name)
		if err != nil {
			rt.Fatal(err)
		}
		defer whole.Close()
		if _, err := pruning.Write(context.Background(), whole, name+"p", o, 1+k%3); err != nil {
			rt.Fatal(err)
		}
		p, err := model.Open(name + "p")
		if err != nil {
			rt.Fatal(err)
		}
		defer p.Close()
		kept := make([][]float32, meta.Tree.Len())
		for n := range kept {
			kept[n] = p.Vector(n)
		}
		rows := modeltest.Rows(rng, 10, s.Features, 0.4)
		for i := range rows[0].Values {
			rows[0].Values[i] *= 1e6
		}
		checkPrunedScores(rt, p, meta, kept, rows)
	})
}

// checkPrunedScores compares the scores of a pruned model with dense products of its own vectors.
func checkPrunedScores(t *rapid.T, p *model.Model, meta model.Meta, vectors [][]float32, rows []modeltest.Row) {
	pred, err := New(p, Options{Rule: Threshold, Top: 4})
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	if err := pred.NewScorer().Predict(batchOf(rows), &r); err != nil {
		t.Fatal(err)
	}
	for i, x := range rows {
		want, size := naive(meta, vectors, x)
		checkBest(t, r.Best(i), want[:min(4, len(want))], 1e-6*size)
		checkSet(t, r.Set(i), want, 1e-6*size)
	}
}

func BenchmarkPredictPruned(b *testing.B) {
	rng := rand.New(rand.NewPCG(9, 9))
	meta, weights := modeltest.Wordnet(rng)
	dir := filepath.Join(b.TempDir(), "m")
	modeltest.Write(b, dir, meta, weights, 0)
	for _, o := range []pruning.Options{{Threshold: 1.3}, {Threshold: 1.3, Values: shard.Halves},
		{Threshold: 1.3, Values: shard.Bytes}} {
		m := pruned(b, modeltest.Open(b, dir), o, 2)
		p, err := New(m, Options{Top: 5})
		if err != nil {
			b.Fatal(err)
		}
		batch := batchOf(modeltest.ZipfRows(rng, BatchRows, 28780, 12))
		b.Run(m.Manifest.Pruned.Values, func(b *testing.B) {
			s := p.NewScorer()
			var r Result
			for range b.N {
				if err := s.Predict(batch, &r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*BatchRows/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(m.Manifest.Pruned.Entries), "entries")
		})
	}
}
