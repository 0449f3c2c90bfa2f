package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/model/form"
)

var descent = form.Form{Weights: form.Whole, Predictor: form.Descent}

// wholeVectors are the records as whole vectors, the dumb way.
func wholeVectors(m Meta, weights []nodeWeights) [][]float32 {
	out := make([][]float32, len(weights))
	for n, x := range weights {
		out[n] = make([]float32, m.columns())
		for i, c := range x.columns {
			out[n][c] = x.values[i]
		}
	}
	return out
}

// naiveDescent walks down from the root by dense dot products, and scores all leaves by the
// smallest margin above them.
func naiveDescent(meta Meta, vectors [][]float32, r row) []Scored {
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
func pathSums(meta Meta, vectors [][]float32) [][]float32 {
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
		s := shape{
			nodes: rapid.IntRange(1, 60).Draw(rt, "nodes"), features: rapid.IntRange(1, 30).Draw(rt, "features"),
			overrides: rapid.IntRange(0, 10).Draw(rt, "weights"), branch: rapid.IntRange(1, 5).Draw(rt, "branch"),
			bias: rapid.SampledFrom([]float64{0, 1}).Draw(rt, "bias"),
		}
		meta, weights := randomModel(rng, s)
		for _, w := range weights { // short ones, so that sums are exact and ties arise
			for i, v := range w.values {
				w.values[i] = float32(math.Round(float64(v) * 8))
			}
		}
		meta.Form = descent
		meta.Form.Predictor = rapid.SampledFrom([]string{form.Linear, form.Descent, form.Greedy, form.Sums}).Draw(rt, "predictor")
		name := filepath.Join(dir, fmt.Sprint(k))
		writeModel(t, name, meta, weights, 0)
		m, err := Open(name)
		if err != nil {
			rt.Fatal(err)
		}
		defer m.Close()
		vectors := wholeVectors(meta, weights)
		for n := range vectors {
			if got := m.Vector(n); !slices.Equal(got, vectors[n]) {
				rt.Fatalf("node %d: %v, want %v", n, got, vectors[n])
			}
		}
		if rapid.Bool().Draw(rt, "pruned") {
			if _, err := m.WritePruned(context.Background(), name+"p", PruneOptions{}, 2); err != nil {
				rt.Fatal(err)
			}
			if m, err = Open(name + "p"); err != nil {
				rt.Fatal(err)
			}
			defer m.Close()
		}
		rows := randomRows(rng, rapid.IntRange(1, 20).Draw(rt, "rows"), s.features, 0.4)
		for _, r := range rows {
			for i, v := range r.values {
				r.values[i] = float32(math.Round(float64(v) * 2))
			}
		}
		top := min(rapid.IntRange(1, 70).Draw(rt, "top"), m.Terminals())
		cutoff := float64(rapid.IntRange(-2, 2).Draw(rt, "cutoff"))
		p, err := m.NewPredictor(PredictOptions{Rule: Threshold, Cutoff: cutoff, Top: top})
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
			levels := m.Explain(want[0].Node, x.columns, x.values)
			if last := levels[len(levels)-1]; last.Score != want[0].Score || last.Node != want[0].Node {
				rt.Fatalf("explained as %+v, want %v", last, want[0])
			}
		}
	})
}

// TestExportEdges: of a model by descent a line is an edge.
func TestExportEdges(t *testing.T) {
	meta := tinyMeta()
	meta.Form = descent
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, meta, tinyWeights(), 0)
	e, err := openModel(t, dir).NewTextExporter(0)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := e.WriteRange(context.Background(), &b, 0, e.m.Tree.Len(), 2); err != nil {
		t.Fatal(err)
	}
	want := "edge -,animal 2:1.5 7:0.25\nedge animal,animal\nedge animal,cat 100:0.1\nedge animal,dog bias:-0.75\nedge -,car 7:-2 100:1e-20 bias:3\n"
	if b.String() != want {
		t.Errorf("%q\nwant\n%q", b.String(), want)
	}
}

// TestSoftmax: probabilities of all classes add up to one, in the order of the scores.
func TestSoftmax(t *testing.T) {
	meta := tinyMeta()
	meta.Form = form.Form{Link: form.Softmax}
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, meta, tinyWeights(), 0)
	full := openModel(t, dir)
	for _, m := range []*Model{full, pruned(t, full, PruneOptions{}, 1)} {
		p, err := m.NewPredictor(PredictOptions{Top: 99})
		if err != nil {
			t.Fatal(err)
		}
		var r Result
		if err := p.NewScorer().Predict(batchOf([]row{{[]uint32{0}, []float32{3}}, {}}), &r); err != nil {
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

// TestFormRefused: words of a newer program, and versions that do not fit.
func TestFormRefused(t *testing.T) {
	for _, f := range []form.Form{{Weights: "half"}, {Predictor: "vote"}, {Link: "probit"}, {Predictor: form.Descent}, {Predictor: form.Nested}} {
		meta := tinyMeta()
		meta.Form = f
		if _, err := NewWriter(filepath.Join(t.TempDir(), "m"), meta); err == nil || !strings.Contains(err.Error(), "form") {
			t.Errorf("%+v: %v", f, err)
		}
	}
	man := Manifest{Format: formatName, Version: Version, Form: descent}
	b, err := encodeManifest(man)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseManifest(b); err == nil || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("a form in version 1: %v", err)
	}
}

// TestOwnKeys: a method's own keys stand beside the others, and come back.
func TestOwnKeys(t *testing.T) {
	r := tinyReport()
	plain, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	r.Own = map[string]json.RawMessage{"per_node": json.RawMessage(`[1,2]`), "alpha_used": json.RawMessage(`0.5`)}
	b, err := json.Marshal(r)
	if want := strings.TrimSuffix(string(plain), "}") + `,"alpha_used":0.5,"per_node":[1,2]}`; err != nil || string(b) != want {
		t.Errorf("%s, %v\nwant %s", b, err, want)
	}
	for _, want := range []Report{r, tinyReport()} {
		b, err := json.Marshal(want)
		var back Report
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || !reflect.DeepEqual(back, want) {
			t.Errorf("%+v, %v\nwant %+v", back, err, want)
		}
	}
	if _, err := JoinObjects(3); err == nil {
		t.Error("a number was taken for an object")
	}
}

// TestDraws: probabilities are the means of the draws' own, whatever else is in the batch; the
// vectors that are exported are the means; draws that a training did not come to are not missed.
func TestDraws(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, bias := range []float64{0, 1.5} {
		meta, _ := randomModel(rng, shape{nodes: 12, branch: 3, features: 6, bias: bias, overrides: 4})
		meta.Form = form.Form{Weights: form.Whole, Link: form.Softmax, Draws: 7}
		w := meta.columns()
		const draws = 5 // of the seven
		dense := make([][]float32, 12)
		weights := make([]nodeWeights, 12)
		for n := range weights {
			dense[n] = make([]float32, w*(1+draws))
			for c := range dense[n] {
				if rng.IntN(4) > 0 {
					v := float32(rng.NormFloat64())
					dense[n][c] = v
					weights[n].columns, weights[n].values = append(weights[n].columns, uint32(c)), append(weights[n].values, v)
				}
			}
		}
		dir := filepath.Join(t.TempDir(), "m")
		writeModel(t, dir, meta, weights, 1<<20)
		m := openModel(t, dir)
		if m.Draws() != draws {
			t.Errorf("%d draws, want %d", m.Draws(), draws)
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
		for _, o := range []PredictOptions{{Rule: Argmax, Top: 12}, {Rule: Argmax, Top: 12, RowByRow: true}} {
			p, err := m.NewPredictor(o)
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
		if _, err := m.WritePruned(context.Background(), filepath.Join(t.TempDir(), "p"), PruneOptions{Threshold: 0.1}, 1); err == nil || !strings.Contains(err.Error(), "draws") {
			t.Errorf("pruned: %v", err)
		}
	}
}
