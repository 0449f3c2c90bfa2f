package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type row struct {
	columns []uint32
	values  []float32
}

func randomRows(rng *rand.Rand, n, features int, density float64) []row {
	rows := make([]row, n)
	for i := range rows {
		for c := range features {
			if rng.Float64() < density {
				rows[i].columns = append(rows[i].columns, uint32(c))
				rows[i].values = append(rows[i].values, float32(rng.NormFloat64()))
			}
		}
	}
	return rows
}

func batchOf(rows []row) *Batch {
	b := new(Batch)
	for _, r := range rows {
		b.Add(r.columns, r.values)
	}
	return b
}

// naive scores one row against every terminal from dense float32 vectors, in float64, and
// says how large the terms are.
func naive(meta Meta, vectors [][]float32, r row) (scores []Scored, size float64) {
	for n, leaf := range meta.Tree.Leaf {
		if !leaf {
			continue
		}
		s := 0.0
		for i, c := range r.columns {
			s += float64(r.values[i]) * float64(vectors[n][c])
			size += math.Abs(float64(r.values[i]) * float64(vectors[n][c]))
		}
		if meta.Options.Bias > 0 {
			s += float64(float32(meta.Options.Bias)) * float64(vectors[n][len(meta.Feature)])
		}
		scores = append(scores, Scored{int32(n), s})
	}
	slices.SortStableFunc(scores, func(a, b Scored) int {
		if a.Score > b.Score {
			return -1
		} else if a.Score < b.Score {
			return 1
		}
		return 0
	})
	return scores, size + 1
}

// The predictor must agree with dense dot products in float64 on any tree.
func TestPredictAgainstDense(t *testing.T) {
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
		meta, weights := randomModel(rng, s)
		name := filepath.Join(dir, fmt.Sprint(k))
		writeModel(t, name, meta, weights, 0)
		m, err := Open(name)
		if err != nil {
			rt.Fatal(err)
		}
		defer m.Close()
		vectors := denseVectors(meta, weights)
		rows := randomRows(rng, rapid.IntRange(1, 20).Draw(rt, "rows"), s.features, 0.4)
		top := rapid.IntRange(1, 70).Draw(rt, "top")
		p, err := m.NewPredictor(PredictOptions{Rule: Threshold, Top: top})
		if err != nil {
			rt.Fatal(err)
		}
		var r Result
		if err := p.NewScorer().Predict(batchOf(rows), &r); err != nil {
			rt.Fatal(err)
		}
		for i, x := range rows {
			want, size := naive(meta, vectors, x)
			checkBest(rt, r.Best(i), want[:min(top, len(want))], 1e-12*size)
			checkSet(rt, r.Set(i), want, 1e-12*size)
		}
	})
}

// checkBest allows scores to differ by tol, and places to differ where scores do not by more.
func checkBest(t rapid.TB, got, want []Scored, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d terminals, want %d", len(got), len(want))
	}
	for k := range got {
		if math.Abs(got[k].Score-want[k].Score) > tol {
			t.Fatalf("place %d: %v, want %v", k, got[k], want[k])
		}
		if k > 0 && !got[k-1].before(got[k]) {
			t.Fatalf("places %d and %d out of order: %v %v", k-1, k, got[k-1], got[k])
		}
	}
}

func checkSet(t rapid.TB, got, all []Scored, tol float64) {
	t.Helper()
	in := map[int32]bool{}
	for _, s := range got {
		in[s.Node] = true
	}
	if len(got) == 0 || len(in) != len(got) {
		t.Fatalf("set %v is empty or repeats", got)
	}
	for _, s := range all {
		if s.Score > tol && !in[s.Node] || s.Score < -tol && in[s.Node] && len(got) > 1 {
			t.Fatalf("%v: in the set: %v", s, in[s.Node])
		}
	}
}

// Equal scores stand in node order, for any k.
func TestTies(t *testing.T) {
	m := tinyModel(t)
	for top := 1; top <= 5; top++ {
		p, err := m.NewPredictor(PredictOptions{Top: top})
		if err != nil {
			t.Fatal(err)
		}
		var r Result
		// Column 2 differs only at cat (0.1) and car (1e-20): at a large negative weight
		// all the others tie among themselves only through the bias; use none of it.
		b := batchOf([]row{{[]uint32{1}, []float32{0}}, {nil, nil}})
		if err := p.NewScorer().Predict(b, &r); err != nil {
			t.Fatal(err)
		}
		// Bias weights: animal's leaf -1, cat -1, dog -0.75, car 3.
		want := []Scored{{5, 3}, {4, -0.75}, {2, -1}, {3, -1}}
		for i := range 2 {
			if got := r.Best(i); !reflect.DeepEqual(got, want[:min(top, 4)]) {
				t.Errorf("top %d: %v", top, got)
			}
		}
	}
}

func TestRules(t *testing.T) {
	m := tinyModel(t)
	// Scores of x = (1, 0, 0) with the bias: animal -0.75, cat -1, dog -0.5, car 1;
	// of x = (4, 2, 0): animal 3, cat 2, dog 3.25, car -5.
	b := batchOf([]row{{[]uint32{0}, []float32{1}}, {[]uint32{0, 1}, []float32{4, 2}}, {[]uint32{0}, []float32{2}}})
	for rule, want := range map[Rule][3][]Scored{
		Argmax:    {{{5, 1}}, {{4, 3.25}}, {{4, -0.25}}},
		Threshold: {{{5, 1}}, {{4, 3.25}, {2, 3}, {3, 2}}, {{4, -0.25}}},
		TopK:      {{{5, 1}, {4, -0.5}}, {{4, 3.25}, {2, 3}}, {{4, -0.25}, {2, -0.5}}},
	} {
		p, err := m.NewPredictor(PredictOptions{Rule: rule, Top: 2})
		if err != nil {
			t.Fatal(err)
		}
		var r Result
		if err := p.NewScorer().Predict(b, &r); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if got := r.Set(i); !reflect.DeepEqual(got, w) {
				t.Errorf("rule %d, row %d: %v, want %v", rule, i, got, w)
			}
		}
	}
	if m.DefaultRule() != Argmax {
		t.Error("one label an instance, but no argmax")
	}
	m.Data.Positives = 12
	if m.DefaultRule() != Threshold {
		t.Error("1.2 labels an instance, but argmax")
	}
	for _, o := range []PredictOptions{{Top: 0}, {Top: 1, Rule: 9}} {
		if _, err := m.NewPredictor(o); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
}

func TestPredictBadRows(t *testing.T) {
	m := tinyModel(t)
	p, err := m.NewPredictor(PredictOptions{Top: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := p.NewScorer()
	var r Result
	if err := s.Predict(batchOf([]row{{[]uint32{0}, []float32{float32(math.Inf(1))}}}), &r); err == nil {
		t.Error("an infinite value was scored")
	}
	// Columns the model does not have (its bias column included) score nothing.
	if err := s.Predict(batchOf([]row{{[]uint32{3, 4, 1 << 31}, []float32{9, 9, 9}}}), &r); err != nil || r.Best(0)[0] != (Scored{5, 3}) {
		t.Errorf("unknown columns: %v %v", r.Best(0), err)
	}
	if err := s.Predict(new(Batch), &r); err != nil {
		t.Errorf("empty batch: %v", err)
	}
}

// A chain deeper than the level budget allows for a whole batch is cut, not refused.
func TestDeepChain(t *testing.T) {
	const nodes = 3000
	meta, weights := randomModel(rand.New(rand.NewPCG(3, 3)), shape{nodes: nodes, features: 3, branch: 1})
	for n := range nodes {
		meta.Tree.Parent[n], meta.Tree.Depth[n], meta.Tree.Leaf[n] = int32(n-1), int32(n), n == nodes-1
		weights[n] = nodeWeights{[]uint32{uint32(n % 3)}, []float32{float32(n)}}
	}
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, meta, weights, 0)
	m := openModel(t, dir)
	p, err := m.NewPredictor(PredictOptions{Top: 1})
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	rows := make([]row, 1000)
	for i := range rows {
		rows[i] = row{[]uint32{0, 2}, []float32{1, float32(i)}}
	}
	if err := p.NewScorer().Predict(batchOf(rows), &r); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if want := float64(nodes-3) + float64(i)*(nodes-1); math.Abs(r.Best(i)[0].Score-want) > 1e-6 {
			t.Fatalf("row %d: %v, want %v", i, r.Best(i)[0].Score, want)
		}
	}
}

// Results come in input order and do not depend on threads or on the cut into batches.
func TestStream(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	meta, weights := randomModel(rng, shape{nodes: 50, features: 30, overrides: 6, branch: 3, bias: 1})
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, meta, weights, 0)
	m := openModel(t, dir)
	rows := randomRows(rng, 500, 30, 0.3)
	p, err := m.NewPredictor(PredictOptions{Rule: Threshold, Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	run := func(threads, size int) (sets [][]Scored) {
		at := 0
		err := p.Stream(context.Background(), threads, func(b *Batch) error {
			for ; b.Rows() < size && at < len(rows); at++ {
				b.Add(rows[at].columns, rows[at].values)
				b.AddLabels(fmt.Sprint(at), "x")
			}
			if at == len(rows) {
				return io.EOF
			}
			return nil
		}, func(b *Batch, r *Result) error {
			if b.First != int64(len(sets)) {
				t.Errorf("batch begins at %d, %d rows came before", b.First, len(sets))
			}
			for i := range b.Rows() {
				if want := []string{fmt.Sprint(len(sets)), "x"}; !reflect.DeepEqual(b.RowLabels(i), want) {
					t.Errorf("labels %v, want %v", b.RowLabels(i), want)
				}
				sets = append(sets, append(slices.Clone(r.Set(i)), r.Best(i)...))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return sets
	}
	want := run(1, 500)
	if len(want) != 500 {
		t.Fatalf("%d rows", len(want))
	}
	for _, c := range [][2]int{{1, 7}, {2, 64}, {5, 1}, {3, 1000}} {
		if got := run(c[0], c[1]); !reflect.DeepEqual(got, want) {
			t.Errorf("%d threads, batches of %d: other results", c[0], c[1])
		}
	}
}

// Asking for very many terminals makes batches smaller, not memory larger.
func TestBatchRows(t *testing.T) {
	m := tinyModel(t)
	for top, want := range map[int]int{1: BatchRows, 5: BatchRows, 10_000: 419, 100 << 20: 1} {
		p := &Predictor{m: m, o: PredictOptions{Top: top}, keep: top}
		if got := p.batchRows(); got != want {
			t.Errorf("top %d: %d rows a batch, want %d", top, got, want)
		}
	}
	b := &Batch{limit: 2}
	for i, want := range []bool{false, true, true} {
		if b.Add(nil, nil); b.Full() != want {
			t.Errorf("full after %d rows: %v", i+1, b.Full())
		}
	}
}

func TestStreamErrors(t *testing.T) {
	m := tinyModel(t)
	p, err := m.NewPredictor(PredictOptions{Top: 1})
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	n := 0
	fill := func(b *Batch) error {
		if n++; n > 50 {
			return boom
		}
		b.Add([]uint32{0}, []float32{1})
		return nil
	}
	drop := func(*Batch, *Result) error { return nil }
	if err := p.Stream(context.Background(), 3, fill, drop); !errors.Is(err, boom) {
		t.Errorf("reader's error: %v", err)
	}
	forever := func(b *Batch) error { b.Add(nil, nil); return nil }
	if err := p.Stream(context.Background(), 3, forever, func(*Batch, *Result) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("writer's error: %v", err)
	}
	bad := func(b *Batch) error { b.Add([]uint32{0}, []float32{float32(math.NaN())}); return nil }
	if err := p.Stream(context.Background(), 2, bad, drop); err == nil {
		t.Error("a value that is not finite was scored")
	}
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	err = p.Stream(ctx, 2, forever, func(*Batch, *Result) error {
		if calls++; calls == 3 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := p.Stream(context.Background(), 0, forever, drop); err == nil {
		t.Error("no threads accepted")
	}
}

// The figures of wordnet-freq: 28,780 features, 1,768 internals, 3,383 terminals.
func BenchmarkPredictWordnetShape(b *testing.B) {
	rng := rand.New(rand.NewPCG(9, 9))
	meta, weights := wordnetShape(rng)
	dir := filepath.Join(b.TempDir(), "m")
	writeModel(b, dir, meta, weights, 0)
	m := openModel(b, dir)
	p, err := m.NewPredictor(PredictOptions{Top: 5})
	if err != nil {
		b.Fatal(err)
	}
	rows := zipfRows(rng, BatchRows, 28780, 12)
	batch := batchOf(rows)
	s := p.NewScorer()
	var r Result
	b.ResetTimer()
	for range b.N {
		if err := s.Predict(batch, &r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(rows))/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(m.Manifest.Counts.Overrides), "overrides")
}

func BenchmarkOpenWordnetShape(b *testing.B) {
	meta, weights := wordnetShape(rand.New(rand.NewPCG(9, 9)))
	dir := filepath.Join(b.TempDir(), "m")
	writeModel(b, dir, meta, weights, 0)
	b.ResetTimer()
	for range b.N {
		m, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		m.Close()
	}
}

// wordnetShape: overrides fall on frequent features as those of real classes do.
func wordnetShape(rng *rand.Rand) (Meta, []nodeWeights) {
	meta, _ := randomModel(rng, shape{nodes: 5151, features: 28780, branch: 2, bias: 1})
	weights := make([]nodeWeights, 5151)
	z := rand.NewZipf(rng, 1.2, 40, 28779)
	for n := range weights {
		seen := map[uint32]bool{28780: true}
		for range 3500 {
			seen[uint32(z.Uint64())] = true
		}
		for c := range seen {
			weights[n].columns = append(weights[n].columns, c)
		}
		slices.Sort(weights[n].columns)
		for range weights[n].columns {
			weights[n].values = append(weights[n].values, float32(rng.NormFloat64()))
		}
	}
	return meta, weights
}

func zipfRows(rng *rand.Rand, n, features, words int) []row {
	z := rand.NewZipf(rng, 1.2, 40, uint64(features-1))
	rows := make([]row, n)
	for i := range rows {
		seen := map[uint32]bool{}
		for range words {
			seen[uint32(z.Uint64())] = true
		}
		for c := range seen {
			rows[i].columns = append(rows[i].columns, c)
		}
		slices.Sort(rows[i].columns)
		for range rows[i].columns {
			rows[i].values = append(rows[i].values, rng.Float32())
		}
	}
	return rows
}

// A batch of few columns is scored to the same bits as within a batch of many.
func TestFewColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 6))
	for _, bias := range []float64{0, 1} {
		meta, weights := randomModel(rng, shape{nodes: 80, features: 4 * fewColumns, overrides: 60, branch: 3, bias: bias})
		dir := filepath.Join(t.TempDir(), "m")
		writeModel(t, dir, meta, weights, 0)
		m := openModel(t, dir)
		p, err := m.NewPredictor(PredictOptions{Rule: Threshold, Top: 5})
		if err != nil {
			t.Fatal(err)
		}
		rows := append(randomRows(rng, 60, 4*fewColumns, 0.02), row{}, row{[]uint32{4 * fewColumns}, []float32{1}})
		all, one := p.NewScorer(), p.NewScorer()
		var want, got Result
		if many := batchOf(rows); all.few.collect(many, len(m.Feature)) || all.Predict(many, &want) != nil {
			t.Fatal("the batch of all rows has few columns")
		}
		for i := range rows {
			b := batchOf(rows[i : i+1])
			if !one.few.collect(b, len(m.Feature)) {
				t.Fatal("one row has many columns")
			}
			if err := one.Predict(b, &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Best(0), want.Best(i)) || !reflect.DeepEqual(got.Set(0), want.Set(i)) {
				t.Fatalf("row %d: %v, in a batch %v", i, got.Best(0), want.Best(i))
			}
		}
	}
}
