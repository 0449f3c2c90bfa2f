package model

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/data/table"
)

func pruned(t testing.TB, m *Model, o PruneOptions, threads int) *Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pruned")
	if _, err := m.WritePruned(context.Background(), dir, o, threads); err != nil {
		t.Fatal(err)
	}
	return openModel(t, dir)
}

// Every weight of a pruned model is within the threshold of the trained one, whatever
// the tree, and nothing that is left out on the way down adds up.
func TestPrunedWithinThreshold(t *testing.T) {
	dir := t.TempDir()
	k := 0
	rapid.Check(t, func(rt *rapid.T) {
		k++
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		s := shape{
			nodes:     rapid.IntRange(1, 60).Draw(rt, "nodes"),
			features:  rapid.IntRange(1, 30).Draw(rt, "features"),
			overrides: rapid.IntRange(0, 10).Draw(rt, "overrides"),
			branch:    rapid.IntRange(1, 5).Draw(rt, "branch"),
			bias:      rapid.SampledFrom([]float64{0, 1, 0.1}).Draw(rt, "bias"),
		}
		o := PruneOptions{Threshold: rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.3, 2}).Draw(rt, "threshold"), Values: rapid.SampledFrom(PrunedValues).Draw(rt, "values")}
		meta, weights := randomModel(rng, s)
		name := filepath.Join(dir, fmt.Sprint(k))
		writeModel(t, name, meta, weights, 0)
		m, err := Open(name)
		if err != nil {
			rt.Fatal(err)
		}
		defer m.Close()
		foretold, err := m.PrunedBytes(context.Background(), o, 1+k%4)
		if err != nil {
			rt.Fatal(err)
		}
		man, err := m.WritePruned(context.Background(), name+"p", o, 1+k%3)
		if err != nil {
			rt.Fatal(err)
		}
		bytes := int64(manifestBytes)
		for _, f := range man.Files {
			bytes += f.Bytes
		}
		if bytes != foretold {
			rt.Fatalf("%d bytes, foretold %d", bytes, foretold)
		}
		p, err := Open(name + "p")
		if err != nil {
			rt.Fatal(err)
		}
		defer p.Close()
		vectors := denseVectors(meta, weights)
		kept := make([][]float32, len(vectors))
		for n, want := range vectors {
			kept[n] = p.Vector(n)
			for c, w := range want {
				e := math.Abs(float64(kept[n][c]) - float64(w))
				round := math.Abs(float64(w))*1e-6 + 1e-6 // of the sum along the path
				switch o.Values {
				case Halves:
					round = math.Abs(float64(w))/1000 + 2e-3
				case Bytes: // half a step, of which the largest difference has 127
					for _, v := range vectors {
						round = max(round, math.Abs(float64(v[c]))/120)
					}
				}
				bound := o.Threshold + round
				if s.bias > 0 && c == len(meta.Feature) {
					bound = round
				}
				if e > bound {
					rt.Fatalf("node %d, column %d: %v became %v, threshold %v", n, c, w, kept[n][c], o.Threshold)
				}
			}
		}
		rows := randomRows(rng, 10, s.features, 0.4)
		for i := range rows[0].values {
			rows[0].values[i] *= 1e6
		}
		checkPrunedScores(rt, p, meta, kept, rows)
	})
}

// checkPrunedScores compares the scores of a pruned model with dense products of its own vectors.
func checkPrunedScores(t *rapid.T, p *Model, meta Meta, vectors [][]float32, rows []row) {
	pred, err := p.NewPredictor(PredictOptions{Rule: Threshold, Top: 4})
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

// Many shards, many threads: the same scores, and bytes that depend on neither threads
// nor the run.
func TestPrunedShards(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 2))
	meta, weights := randomModel(rng, shape{nodes: 400, features: 300, overrides: 60, branch: 4, bias: 1})
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, meta, weights, 5000)
	m := openModel(t, dir)
	a, b := pruned(t, m, PruneOptions{Threshold: 0.1}, 1), pruned(t, m, PruneOptions{Threshold: 0.1}, 4)
	for _, f := range a.Manifest.Files {
		if !bytes.Equal(mustRead(t, filepath.Join(a.Dir, f.Name)), mustRead(t, filepath.Join(b.Dir, f.Name))) {
			t.Errorf("%s depends on the threads", f.Name)
		}
	}
	if a.Manifest.Pruned.Entries >= int64(m.Manifest.Counts.Overrides) || a.Manifest.Pruned.Entries == 0 {
		t.Errorf("%d entries of %d overrides", a.Manifest.Pruned.Entries, m.Manifest.Counts.Overrides)
	}
	if again := pruned(t, a, PruneOptions{Threshold: 0.1}, 2); again.Manifest.Pruned.Entries != a.Manifest.Pruned.Entries {
		t.Errorf("pruning again: %d entries, were %d", again.Manifest.Pruned.Entries, a.Manifest.Pruned.Entries)
	}
}

func TestCutColumns(t *testing.T) {
	for _, c := range []struct{ counts, cuts []int }{
		{nil, []int{0, 0}},
		{[]int{0, 0}, []int{0, 2}},
		{[]int{packedEntries, 1}, []int{0, 1, 2}},
		{[]int{packedEntries - 1, 1, 5}, []int{0, 2, 3}},
		{[]int{1, packedEntries * 2, 1}, []int{0, 1, 2, 3}},
	} {
		counts := make([]uint32, len(c.counts))
		for i, n := range c.counts {
			counts[i] = uint32(n)
		}
		if got := cutColumns(counts); !slices.Equal(got, c.cuts) {
			t.Errorf("%v: cut at %v, want %v", c.counts, got, c.cuts)
		}
	}
}

func TestPruneRefuses(t *testing.T) {
	m := tinyModel(t)
	for _, o := range []PruneOptions{{Threshold: -1}, {Threshold: math.NaN()}, {Threshold: math.Inf(1)}} {
		if _, err := m.WritePruned(context.Background(), filepath.Join(t.TempDir(), "p"), o, 1); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
	if _, err := m.WritePruned(context.Background(), filepath.Join(t.TempDir(), "p"), PruneOptions{}, 0); err == nil {
		t.Error("no threads accepted")
	}
	weights := tinyWeights()
	weights[4].values[0] = 1e6
	big := filepath.Join(t.TempDir(), "big")
	writeModel(t, big, tinyMeta(), weights, 0)
	dir := filepath.Join(t.TempDir(), "p")
	if _, err := openModel(t, big).WritePruned(context.Background(), dir, PruneOptions{Values: Halves}, 1); err == nil || !strings.Contains(err.Error(), "float32") {
		t.Errorf("a weight beyond float16: %v", err)
	}
	if err := Replaceable(dir); err != nil || IsModel(dir) {
		t.Error("something was left behind")
	}
}

// Every half goes to float32 and back; every float32 goes to a nearest half.
func TestHalf(t *testing.T) {
	for h := range 1 << 16 {
		if f := table.Half(uint16(h)); f == f && toHalf(f) != uint16(h) {
			t.Fatalf("%#04x is %v, which is %#04x", h, f, toHalf(f))
		}
	}
	if f := table.Half(toHalf(float32(math.NaN()))); f == f {
		t.Error("not-a-number became a number")
	}
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.Float32Range(-65504, 65504).Draw(rt, "v")
		h := toHalf(v)
		e := math.Abs(float64(table.Half(h)) - float64(v))
		for _, near := range []uint16{h - 1, h + 1} {
			if f := table.Half(near); f-f == 0 && math.Abs(float64(f)-float64(v)) < e {
				rt.Fatalf("%v became %v, %v is nearer", v, table.Half(h), f)
			}
		}
	})
}

func BenchmarkPredictPruned(b *testing.B) {
	rng := rand.New(rand.NewPCG(9, 9))
	meta, weights := wordnetShape(rng)
	dir := filepath.Join(b.TempDir(), "m")
	writeModel(b, dir, meta, weights, 0)
	for _, o := range []PruneOptions{{Threshold: 1.3}, {Threshold: 1.3, Values: Halves}, {Threshold: 1.3, Values: Bytes}} {
		m := pruned(b, openModel(b, dir), o, 2)
		p, err := m.NewPredictor(PredictOptions{Top: 5})
		if err != nil {
			b.Fatal(err)
		}
		batch := batchOf(zipfRows(rng, BatchRows, 28780, 12))
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
