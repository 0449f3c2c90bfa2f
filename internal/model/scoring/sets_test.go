package scoring

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model"
	"taxon/internal/model/form"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/pruning"
	"taxon/internal/model/shard"
)

// ownScores are x.w of all nodes by dense sums.
func ownScores(meta model.Meta, vectors [][]float32, x modeltest.Row) []float64 {
	all, tree := meta, *meta.Tree
	tree.Leaf = slices.Repeat([]bool{true}, tree.Len())
	all.Tree = &tree
	out := make([]float64, tree.Len())
	scored, _ := naive(all, vectors, x)
	for _, s := range scored {
		out[s.Node] = s.Score
	}
	return out
}

// lowest turns the nodes that are in into a set of labels.
func lowest(t *taxonomy.Tree, in []bool) (out []int32) {
	for n := range in {
		inner, at := false, int32(n)
		for c, p := range t.Parent {
			if p == int32(n) {
				inner = inner || in[c]
				if t.Kind[c] == taxonomy.Spawned {
					at = int32(c)
				}
			}
		}
		if in[n] && !inner && t.Kind[n] != taxonomy.Virtual {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return out
}

// naiveNested labels breadth first, as [JMLR] section 5 says it.
func naiveNested(t *taxonomy.Tree, score []float64) (in []bool) {
	in = make([]bool, t.Len())
	for n, p := range t.Parent {
		in[n] = (p < 0 || in[p]) && (t.Kind[n] == taxonomy.Virtual || t.Kind[n] == taxonomy.Node && score[n] > 0)
	}
	return in
}

// unions visits every union of partial paths, with its sum.
func unions(t *taxonomy.Tree, score []float64, visit func(in []bool, sum float64)) {
	in := make([]bool, t.Len())
	var walk func(n int, sum float64)
	walk = func(n int, sum float64) {
		if n == t.Len() {
			visit(in, sum)
			return
		}
		walk(n+1, sum)
		if p := t.Parent[n]; t.Kind[n] != taxonomy.Spawned && (p < 0 || in[p]) {
			in[n] = true
			walk(n+1, sum+score[n])
			in[n] = false
		}
	}
	walk(0, 0)
}

// naivePaths is the best union, and by terminal how much better the best union that predicts
// it is than the best other one.
func naivePaths(t *taxonomy.Tree, score []float64) (best []bool, gain map[int32]float64) {
	most := math.Inf(-1)
	with, without := map[int32]float64{}, map[int32]float64{}
	for n, leaf := range t.Leaf {
		if leaf {
			with[int32(n)], without[int32(n)] = math.Inf(-1), math.Inf(-1)
		}
	}
	unions(t, score, func(in []bool, sum float64) {
		if sum > most {
			most, best = sum, slices.Clone(in)
		}
		set := lowest(t, in)
		for n := range with {
			if slices.Contains(set, n) {
				with[n] = max(with[n], sum)
			} else {
				without[n] = max(without[n], sum)
			}
		}
	})
	gain = map[int32]float64{}
	for n := range with {
		gain[n] = with[n] - without[n]
	}
	return best, gain
}

// TestSets: the sets of both predictors are those of the plain pass and of all unions of partial
// paths tried; rankings stand by what a terminal's prediction gains; a score is above 0 where
// it is predicted; explanations end at the score.
func TestSets(t *testing.T) {
	dir := t.TempDir()
	k := 0
	rapid.Check(t, func(rt *rapid.T) {
		k++
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		s := modeltest.Shape{Nodes: rapid.IntRange(1, 11).Draw(rt, "nodes"), Features: rapid.IntRange(1, 8).Draw(rt,
			"features"), Overrides: 5,
			Branch: rapid.IntRange(1, 5).Draw(rt, "branch"), Bias: rapid.SampledFrom([]float64{0, 1}).Draw(rt, "bias")}
		meta, weights := modeltest.Random(rng, s)
		for n := range weights {
			if meta.Tree.Kind[n] == taxonomy.Spawned {
				weights[n] = shard.Record{}
			}
		}
		meta.Form = form.Form{Weights: form.Whole, Predictor: rapid.SampledFrom([]string{form.Nested, form.Paths}).Draw(rt,
			"predictor")}
		name := filepath.Join(dir, fmt.Sprint(k))
		modeltest.Write(t, name, meta, weights, 0)
		m, err := model.Open(name)
		if err != nil {
			rt.Fatal(err)
		}
		defer m.Close()
		vectors := modeltest.Whole(meta, weights)
		if rapid.Bool().Draw(rt, "pruned") {
			if _, err := pruning.Write(context.Background(), m, name+"p", pruning.Options{}, 2); err != nil {
				rt.Fatal(err)
			}
			if m, err = model.Open(name + "p"); err != nil {
				rt.Fatal(err)
			}
			defer m.Close()
		}
		rows := modeltest.Rows(rng, 6, s.Features, 0.6)
		p, err := New(m, Options{Rule: Own, Top: m.Terminals()})
		if err != nil || DefaultRule(m) != Own {
			rt.Fatal(err)
		}
		var r Result
		if err := p.NewScorer().Predict(batchOf(rows), &r); err != nil {
			rt.Fatal(err)
		}
		for i, x := range rows {
			score := ownScores(meta, vectors, x)
			var want []bool
			var gain map[int32]float64
			if meta.Form.Predictor == form.Nested {
				want = naiveNested(meta.Tree, score)
			} else {
				want, gain = naivePaths(meta.Tree, score)
			}
			var got []int32
			for _, s := range r.Set(i) {
				got = append(got, s.Node)
			}
			slices.Sort(got)
			if set := lowest(meta.Tree, want); !slices.Equal(got, set) {
				rt.Fatalf("row %d: %v of %v, want %v", i, got, score, set)
			}
			for k, b := range r.Best(i) {
				if k > 0 && r.Best(i)[k-1].Score < b.Score || (b.Score > 0) != slices.Contains(got, b.Node) {
					rt.Fatalf("row %d: ranked %v, predicted %v", i, r.Best(i), got)
				}
				if gain != nil && math.Abs(b.Score-gain[b.Node]) > 1e-9 {
					rt.Fatalf("row %d: %v gains %v", i, b, gain[b.Node])
				}
			}
			if levels := Explain(m, r.Best(i)[0].Node, x.Columns,
				x.Values); len(levels) != int(meta.Tree.Depth[r.Best(i)[0].Node])+1 {
				rt.Fatalf("explained as %+v", levels)
			}
		}
	})
}

// TestOwnRefused: a model that makes no sets has no such rule.
func TestOwnRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, modeltest.TinyMeta(), modeltest.TinyWeights(), 0)
	if _, err := New(modeltest.Open(t, dir), Options{Rule: Own, Top: 1}); err == nil {
		t.Error("a linear model predicts sets of its own")
	}
	if f := (form.Form{Predictor: form.Paths}); f.Check() == nil {
		t.Error("paths without whole weights")
	}
}
