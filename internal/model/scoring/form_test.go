package scoring

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/model"
	"taxon/internal/model/form"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/pruning"
	"taxon/internal/model/shard"
)

var descent = form.Form{Weights: form.Whole, Predictor: form.Descent}

// naiveDescent walks down from the root by dense dot products, and scores all leaves by the
// smallest margin above them.
func naiveDescent(meta model.Meta, vectors [][]float32, r modeltest.Row) []Scored {
	all := meta
	tree := *meta.Tree
	all.Tree = &tree
	all.Tree.Leaf = slices.Repeat([]bool{true}, meta.Tree.Len())
	margins := make([]float64, meta.Tree.Len())
	scored, _ := naive(all, vectors, r)
	for _, s := range scored {
		margins[s.Node] = s.Score
	}
	children := func(p int32) (out []int32) {
		for n, q := range meta.Tree.Parent {
			if q == p {
				out = append(out, int32(n))
			}
		}
		return out
	}
	at := int32(-1)
	for at < 0 || !meta.Tree.Leaf[at] {
		family := children(at)
		at = family[0]
		for _, c := range family {
			if margins[c] > margins[at] {
				at = c
			}
		}
	}
	var out []Scored
	for n, leaf := range meta.Tree.Leaf {
		if !leaf {
			continue
		}
		least := math.Inf(1)
		for p := int32(n); p >= 0; p = meta.Tree.Parent[p] {
			if len(children(meta.Tree.Parent[p])) > 1 {
				least = min(least, margins[p])
			}
		}
		if math.IsInf(least, 1) {
			least = 0
		}
		out = append(out, Scored{int32(n), least})
	}
	slices.SortStableFunc(out, func(a, b Scored) int {
		switch {
		case a.Node == at || b.Node != at && a.Score > b.Score:
			return -1
		case b.Node == at || a.Score < b.Score:
			return 1
		}
		return 0
	})
	return out
}

// pathSums are the sums of the nodes' vectors from the root down.
func pathSums(meta model.Meta, vectors [][]float32) [][]float32 {
	out := make([][]float32, len(vectors))
	for n, p := range meta.Tree.Parent {
		out[n] = slices.Clone(vectors[n])
		for f := range out[n] {
			if p >= 0 {
				out[n][f] += out[p][f]
			}
		}
	}
	return out
}

// TestForms: models of whole weights, by terminal, by descent and by paths, of many columns and of few,
// pruned or not, give what dense sums give; records, text and explanations hold whole vectors.
func TestForms(t *testing.T) {
	dir := t.TempDir()
	k := 0
	rapid.Check(t, func(rt *rapid.T) {
		k++
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		s := modeltest.Shape{
			Nodes: rapid.IntRange(1, 60).Draw(rt, "nodes"), Features: rapid.IntRange(1, 30).Draw(rt, "features"),
			Overrides: rapid.IntRange(0, 10).Draw(rt, "weights"), Branch: rapid.IntRange(1, 5).Draw(rt, "branch"),
			Bias: rapid.SampledFrom([]float64{0, 1}).Draw(rt, "bias"),
		}
		meta, weights := modeltest.Random(rng, s)
		for _, w := range weights { // short ones, so that sums are exact and ties arise
			for i, v := range w.Values {
				w.Values[i] = float32(math.Round(float64(v) * 8))
			}
		}
		meta.Form = descent
		meta.Form.Predictor = rapid.SampledFrom([]string{form.Linear, form.Descent, form.Greedy, form.Sums}).Draw(rt,
			"predictor")
		name := filepath.Join(dir, fmt.Sprint(k))
		modeltest.Write(t, name, meta, weights, 0)
		m, err := model.Open(name)
		if err != nil {
			rt.Fatal(err)
		}
		defer m.Close()
		vectors := modeltest.Whole(meta, weights)
		for n := range vectors {
			if got := m.Vector(n); !slices.Equal(got, vectors[n]) {
				rt.Fatalf("node %d: %v, want %v", n, got, vectors[n])
			}
		}
		if rapid.Bool().Draw(rt, "pruned") {
			if _, err := pruning.Write(context.Background(), m, name+"p", pruning.Options{}, 2); err != nil {
				rt.Fatal(err)
			}
			if m, err = model.Open(name + "p"); err != nil {
				rt.Fatal(err)
			}
			defer m.Close()
		}
		rows := modeltest.Rows(rng, rapid.IntRange(1, 20).Draw(rt, "rows"), s.Features, 0.4)
		for _, r := range rows {
			for i, v := range r.Values {
				r.Values[i] = float32(math.Round(float64(v) * 2))
			}
		}
		top := min(rapid.IntRange(1, 70).Draw(rt, "top"), m.Terminals())
		cutoff := float64(rapid.IntRange(-2, 2).Draw(rt, "cutoff"))
		p, err := New(m, Options{Rule: Threshold, Cutoff: cutoff, Top: top})
		if err != nil {
			rt.Fatal(err)
		}
		var r Result
		if err := p.NewScorer().Predict(batchOf(rows), &r); err != nil {
			rt.Fatal(err)
		}
		for i, x := range rows {
			want, _ := naive(meta, vectors, x)
			switch meta.Form.Predictor {
			case form.Descent, form.Greedy:
				want = naiveDescent(meta, vectors, x)
			case form.Sums:
				want, _ = naive(meta, pathSums(meta, vectors), x)
			}
			var set []Scored
			for k, c := range want {
				if c.Score > cutoff || k == 0 {
					set = append(set, c)
				}
			}
			if !reflect.DeepEqual(r.Best(i), want[:top]) || !reflect.DeepEqual(r.Set(i), set) {
				rt.Fatalf("row %d:\n%v\n%v\nwant\n%v\n%v", i, r.Best(i), r.Set(i), want, set)
			}
			levels := Explain(m, want[0].Node, x.Columns, x.Values)
			if last := levels[len(levels)-1]; last.Score != want[0].Score || last.Node != want[0].Node {
				rt.Fatalf("explained as %+v, want %v", last, want[0])
			}
		}
	})
}

// TestSoftmax: probabilities of all classes add up to one, in the order of the scores.
func TestSoftmax(t *testing.T) {
	meta := modeltest.TinyMeta()
	meta.Form = form.Form{Link: form.Softmax}
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, meta, modeltest.TinyWeights(), 0)
	full := modeltest.Open(t, dir)
	for _, m := range []*model.Model{full, pruned(t, full, pruning.Options{}, 1)} {
		p, err := New(m, Options{Top: 99})
		if err != nil {
			t.Fatal(err)
		}
		var r Result
		if err := p.NewScorer().Predict(batchOf([]modeltest.Row{{Columns: []uint32{0}, Values: []float32{3}}, {}}),
			&r); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			sum, all := 0.0, 0.0
			for _, s := range r.Best(i) {
				all += math.Exp(s.Score)
			}
			for _, s := range r.Best(i) {
				sum += r.Shown(i, s)
				if got, want := r.Shown(i, s), math.Exp(s.Score)/all; math.Abs(got-want) > 1e-12 {
					t.Errorf("%v is shown as %v, want %v", s, got, want)
				}
			}
			if math.Abs(sum-1) > 1e-12 {
				t.Errorf("row %d: probabilities add up to %v", i, sum)
			}
		}
	}
	if got := (&Result{link: form.Logistic}).Shown(0, Scored{Score: math.Log(3)}); math.Abs(got-0.75) > 1e-12 {
		t.Errorf("logistic link: %v", got)
	}
}

// TestDraws: probabilities are the means of the draws' own, whatever else is in the batch; the
// vectors that are exported are the means; draws that a training did not come to are not missed.
func TestDraws(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, bias := range []float64{0, 1.5} {
		meta, _ := modeltest.Random(rng, modeltest.Shape{Nodes: 12, Branch: 3, Features: 6, Bias: bias, Overrides: 4})
		meta.Form = form.Form{Weights: form.Whole, Link: form.Softmax, Draws: 7}
		w := modeltest.Width(meta)
		const draws = 5 // of the seven
		dense := make([][]float32, 12)
		weights := make([]shard.Record, 12)
		for n := range weights {
			dense[n] = make([]float32, w*(1+draws))
			for c := range dense[n] {
				if rng.IntN(4) > 0 {
					v := float32(rng.NormFloat64())
					dense[n][c] = v
					weights[n].Columns, weights[n].Values = append(weights[n].Columns, uint32(c)), append(weights[n].Values, v)
				}
			}
		}
		dir := filepath.Join(t.TempDir(), "m")
		modeltest.Write(t, dir, meta, weights, 1<<20)
		m := modeltest.Open(t, dir)
		if Draws(m) != draws {
			t.Errorf("%d draws, want %d", Draws(m), draws)
		}
		for n := range dense {
			if got := m.Vector(n); !slices.Equal(got, dense[n][:w]) {
				t.Errorf("node %d: %v, the mean is %v", n, got, dense[n][:w])
			}
		}
		var b Batch
		var rows [][]float64
		for range 9 {
			var columns []uint32
			var values []float32
			x := make([]float64, w)
			for c := range meta.Feature {
				if rng.IntN(2) > 0 {
					v := float32(rng.NormFloat64())
					columns, values, x[c] = append(columns, uint32(c)), append(values, v), float64(v)
				}
			}
			if bias > 0 {
				x[w-1] = bias
			}
			rows = append(rows, x)
			b.Add(append(columns, uint32(len(meta.Feature)+3)), append(values, 2)) // and a feature that is not known
		}
		for _, o := range []Options{{Rule: Argmax, Top: 12}, {Rule: Argmax, Top: 12, RowByRow: true}} {
			p, err := New(m, o)
			if err != nil {
				t.Fatal(err)
			}
			var r Result
			if err := p.NewScorer().Predict(&b, &r); err != nil {
				t.Fatal(err)
			}
			for i, x := range rows {
				sum := 0.0
				for _, s := range r.Best(i) {
					want := 0.0
					for k := range draws {
						own, total := 0.0, 0.0
						for n, leaf := range meta.Tree.Leaf {
							score := 0.0
							for c, v := range x {
								score += v * float64(dense[n][w*(1+k)+c])
							}
							if leaf {
								total += math.Exp(score)
							}
							if int32(n) == s.Node {
								own = math.Exp(score)
							}
						}
						want += own / total / draws
					}
					got := r.Shown(i, s)
					if sum += got; math.Abs(got-want) > 1e-12 {
						t.Errorf("row %d, node %d: %g, want %g", i, s.Node, got, want)
					}
				}
				if math.Abs(sum-1) > 1e-12 {
					t.Errorf("row %d: probabilities add up to %g", i, sum)
				}
			}
		}
		if _, err := pruning.Write(context.Background(), m, filepath.Join(t.TempDir(), "p"), pruning.Options{Threshold: 0.1},
			1); err == nil || !strings.Contains(err.Error(), "draws") {
			t.Errorf("pruned: %v", err)
		}
	}
}
