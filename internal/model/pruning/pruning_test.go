package pruning

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

	"taxon/internal/model"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/shard"
)

func pruned(t testing.TB, m *model.Model, o Options, threads int) *model.Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pruned")
	if _, err := Write(context.Background(), m, dir, o, threads); err != nil {
		t.Fatal(err)
	}
	return modeltest.Open(t, dir)
}

// Every weight of a pruned model is within the threshold of the trained one, whatever
// the tree, and nothing that is left out on the way down adds up.
func TestPrunedWithinThreshold(t *testing.T) {
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
		o := Options{Threshold: rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.3, 2}).Draw(rt, "threshold"),
			Values: rapid.SampledFrom(shard.Values).Draw(rt, "values")}
		meta, weights := modeltest.Random(rng, s)
		name := filepath.Join(dir, fmt.Sprint(k))
		modeltest.Write(t, name, meta, weights, 0)
		m, err := model.Open(name)
		if err != nil {
			rt.Fatal(err)
		}
		defer m.Close()
		foretold, err := Bytes(context.Background(), m, o, 1+k%4)
		if err != nil {
			rt.Fatal(err)
		}
		man, err := Write(context.Background(), m, name+"p", o, 1+k%3)
		if err != nil {
			rt.Fatal(err)
		}
		size := int64(manifestBytes)
		for _, f := range man.Files {
			size += f.Bytes
		}
		if size != foretold {
			rt.Fatalf("%d bytes, foretold %d", size, foretold)
		}
		p, err := model.Open(name + "p")
		if err != nil {
			rt.Fatal(err)
		}
		defer p.Close()
		vectors := modeltest.Dense(meta, weights)
		kept := make([][]float32, len(vectors))
		for n, want := range vectors {
			kept[n] = p.Vector(n)
			for c, w := range want {
				e := math.Abs(float64(kept[n][c]) - float64(w))
				round := math.Abs(float64(w))*1e-6 + 1e-6 // of the sum along the path
				switch o.Values {
				case shard.Halves:
					round = math.Abs(float64(w))/1000 + 2e-3
				case shard.Bytes: // half a step, of which the largest difference has 127
					for _, v := range vectors {
						round = max(round, math.Abs(float64(v[c]))/120)
					}
				}
				bound := o.Threshold + round
				if s.Bias > 0 && c == len(meta.Feature) {
					bound = round
				}
				if e > bound {
					rt.Fatalf("node %d, column %d: %v became %v, threshold %v", n, c, w, kept[n][c], o.Threshold)
				}
			}
		}
	})
}

// Many shards, many threads: the same scores, and bytes that depend on neither threads
// nor the run.
func TestPrunedShards(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 2))
	meta, weights := modeltest.Random(rng, modeltest.Shape{Nodes: 400, Features: 300, Overrides: 60, Branch: 4, Bias: 1})
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, meta, weights, 5000)
	m := modeltest.Open(t, dir)
	a, b := pruned(t, m, Options{Threshold: 0.1}, 1), pruned(t, m, Options{Threshold: 0.1}, 4)
	for _, f := range a.Manifest.Files {
		if !bytes.Equal(modeltest.MustRead(t, filepath.Join(a.Dir, f.Name)),
			modeltest.MustRead(t, filepath.Join(b.Dir, f.Name))) {
			t.Errorf("%s depends on the threads", f.Name)
		}
	}
	if a.Manifest.Pruned.Entries >= int64(m.Manifest.Counts.Overrides) || a.Manifest.Pruned.Entries == 0 {
		t.Errorf("%d entries of %d overrides", a.Manifest.Pruned.Entries, m.Manifest.Counts.Overrides)
	}
	if again := pruned(t, a, Options{Threshold: 0.1}, 2); again.Manifest.Pruned.Entries != a.Manifest.Pruned.Entries {
		t.Errorf("pruning again: %d entries, were %d", again.Manifest.Pruned.Entries, a.Manifest.Pruned.Entries)
	}
}

func TestCutColumns(t *testing.T) {
	for _, c := range []struct{ counts, cuts []int }{
		{nil, []int{0, 0}},
		{[]int{0, 0}, []int{0, 2}},
		{[]int{shardEntries, 1}, []int{0, 1, 2}},
		{[]int{shardEntries - 1, 1, 5}, []int{0, 2, 3}},
		{[]int{1, shardEntries * 2, 1}, []int{0, 1, 2, 3}},
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
	m := modeltest.Tiny(t)
	for _, o := range []Options{{Threshold: -1}, {Threshold: math.NaN()}, {Threshold: math.Inf(1)}} {
		if _, err := Write(context.Background(), m, filepath.Join(t.TempDir(), "p"), o, 1); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
	if _, err := Write(context.Background(), m, filepath.Join(t.TempDir(), "p"), Options{}, 0); err == nil {
		t.Error("no threads accepted")
	}
	weights := modeltest.TinyWeights()
	weights[4].Values[0] = 1e6
	big := filepath.Join(t.TempDir(), "big")
	modeltest.Write(t, big, modeltest.TinyMeta(), weights, 0)
	dir := filepath.Join(t.TempDir(), "p")
	if _, err := Write(context.Background(), modeltest.Open(t, big), dir, Options{Values: shard.Halves}, 1); err == nil ||
		!strings.Contains(err.Error(), "float32") {
		t.Errorf("a weight beyond float16: %v", err)
	}
	if err := model.Replaceable(dir); err != nil || model.IsModel(dir) {
		t.Error("something was left behind")
	}
}
