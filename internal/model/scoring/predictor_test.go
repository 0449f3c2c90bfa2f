package scoring

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

	"taxon/internal/model"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/shard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func batchOf(rows []modeltest.Row) *Batch {
	b := new(Batch)
	for _, r := range rows {
		b.Add(r.Columns, r.Values)
	}
	return b
}

// naive scores one row against every terminal from dense float32 vectors, in float64, and
// says how large the terms are.
func naive(meta model.Meta, vectors [][]float32, r modeltest.Row) (scores []Scored, size float64) {
	for n, leaf := range meta.Tree.Leaf {
		if !leaf {
			continue
		}
		s := 0.0
		for i, c := range r.Columns {
			s += float64(r.Values[i]) * float64(vectors[n][c])
			size += math.Abs(float64(r.Values[i]) * float64(vectors[n][c]))
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
		s := modeltest.Shape{
			Nodes:     rapid.IntRange(1, 60).Draw(rt, "nodes"),
			Features:  rapid.IntRange(1, 30).Draw(rt, "features"),
			Overrides: rapid.IntRange(0, 10).Draw(rt, "overrides"),
			Branch:    rapid.IntRange(1, 5).Draw(rt, "branch"),
			Bias:      rapid.SampledFrom([]float64{0, 1, 0.1}).Draw(rt, "bias"),
		}
		meta, weights := modeltest.Random(rng, s)
		name := filepath.Join(dir, fmt.Sprint(k))
		modeltest.Write(t, name, meta, weights, 0)
		m, err := model.Open(name)
		if err != nil {
			rt.Fatal(err)
		}
		defer m.Close()
		vectors := modeltest.Dense(meta, weights)
		rows := modeltest.Rows(rng, rapid.IntRange(1, 20).Draw(rt, "rows"), s.Features, 0.4)
		top := rapid.IntRange(1, 70).Draw(rt, "top")
		p, err := New(m, Options{Rule: Threshold, Top: top})
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
	m := modeltest.Tiny(t)
	for top := 1; top <= 5; top++ {
		p, err := New(m, Options{Top: top})
		if err != nil {
			t.Fatal(err)
		}
		var r Result
		// Column 2 differs only at cat (0.1) and car (1e-20): at a large negative weight
		// all the others tie among themselves only through the bias; use none of it.
		b := batchOf([]modeltest.Row{{Columns: []uint32{1}, Values: []float32{0}}, {}})
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
	m := modeltest.Tiny(t)
	// Scores of x = (1, 0, 0) with the bias: animal -0.75, cat -1, dog -0.5, car 1;
	// of x = (4, 2, 0): animal 3, cat 2, dog 3.25, car -5.
	b := batchOf([]modeltest.Row{{Columns: []uint32{0}, Values: []float32{1}}, {Columns: []uint32{0, 1},
		Values: []float32{4, 2}}, {Columns: []uint32{0}, Values: []float32{2}}})
	for rule, want := range map[Rule][3][]Scored{
		Argmax:    {{{5, 1}}, {{4, 3.25}}, {{4, -0.25}}},
		Threshold: {{{5, 1}}, {{4, 3.25}, {2, 3}, {3, 2}}, {{4, -0.25}}},
		TopK:      {{{5, 1}, {4, -0.5}}, {{4, 3.25}, {2, 3}}, {{4, -0.25}, {2, -0.5}}},
	} {
		p, err := New(m, Options{Rule: rule, Top: 2})
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
	if DefaultRule(m) != Argmax {
		t.Error("one label an instance, but no argmax")
	}
	m.Data.Positives = 12
	if DefaultRule(m) != Threshold {
		t.Error("1.2 labels an instance, but argmax")
	}
	for _, o := range []Options{{Top: 0}, {Top: 1, Rule: 9}} {
		if _, err := New(m, o); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
}

func TestPredictBadRows(t *testing.T) {
	m := modeltest.Tiny(t)
	p, err := New(m, Options{Top: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := p.NewScorer()
	var r Result
	if err := s.Predict(batchOf([]modeltest.Row{{Columns: []uint32{0}, Values: []float32{float32(math.Inf(1))}}}),
		&r); err == nil {
		t.Error("an infinite value was scored")
	}
	// Columns the model does not have (its bias column included) score nothing.
	if err := s.Predict(batchOf([]modeltest.Row{{Columns: []uint32{3, 4, 1 << 31}, Values: []float32{9, 9, 9}}}),
		&r); err != nil || r.Best(0)[0] != (Scored{5, 3}) {
		t.Errorf("unknown columns: %v %v", r.Best(0), err)
	}
	if err := s.Predict(new(Batch), &r); err != nil {
		t.Errorf("empty batch: %v", err)
	}
}

// A chain deeper than the level budget allows for a whole batch is cut, not refused.
func TestDeepChain(t *testing.T) {
	const nodes = 3000
	meta, weights := modeltest.Random(rand.New(rand.NewPCG(3, 3)), modeltest.Shape{Nodes: nodes, Features: 3, Branch: 1})
	for n := range nodes {
		meta.Tree.Parent[n], meta.Tree.Depth[n], meta.Tree.Leaf[n] = int32(n-1), int32(n), n == nodes-1
		weights[n] = shard.Record{Columns: []uint32{uint32(n % 3)}, Values: []float32{float32(n)}}
	}
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, meta, weights, 0)
	m := modeltest.Open(t, dir)
	p, err := New(m, Options{Top: 1})
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	rows := make([]modeltest.Row, 1000)
	for i := range rows {
		rows[i] = modeltest.Row{Columns: []uint32{0, 2}, Values: []float32{1, float32(i)}}
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
	meta, weights := modeltest.Random(rng, modeltest.Shape{Nodes: 50, Features: 30, Overrides: 6, Branch: 3, Bias: 1})
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, meta, weights, 0)
	m := modeltest.Open(t, dir)
	rows := modeltest.Rows(rng, 500, 30, 0.3)
	p, err := New(m, Options{Rule: Threshold, Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	run := func(threads, size int) (sets [][]Scored) {
		at := 0
		err := p.Stream(context.Background(), threads, func(b *Batch) error {
			for ; b.Rows() < size && at < len(rows); at++ {
				b.Add(rows[at].Columns, rows[at].Values)
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
	m := modeltest.Tiny(t)
	for top, want := range map[int]int{1: BatchRows, 5: BatchRows, 10_000: 419, 100 << 20: 1} {
		p := &Predictor{m: m, o: Options{Top: top}, keep: top}
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
	m := modeltest.Tiny(t)
	p, err := New(m, Options{Top: 1})
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
	if err := p.Stream(context.Background(), 3, forever, func(*Batch, *Result) error { return boom }); !errors.Is(err,
		boom) {
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
	meta, weights := modeltest.Wordnet(rng)
	dir := filepath.Join(b.TempDir(), "m")
	modeltest.Write(b, dir, meta, weights, 0)
	m := modeltest.Open(b, dir)
	p, err := New(m, Options{Top: 5})
	if err != nil {
		b.Fatal(err)
	}
	rows := modeltest.ZipfRows(rng, BatchRows, 28780, 12)
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
	meta, weights := modeltest.Wordnet(rand.New(rand.NewPCG(9, 9)))
	dir := filepath.Join(b.TempDir(), "m")
	modeltest.Write(b, dir, meta, weights, 0)
	b.ResetTimer()
	for range b.N {
		m, err := model.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		m.Close()
	}
}

// A batch of few columns is scored to the same bits as within a batch of many.
func TestFewColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 6))
	for _, bias := range []float64{0, 1} {
		meta, weights := modeltest.Random(rng, modeltest.Shape{Nodes: 80, Features: 4 * fewColumns, Overrides: 60, Branch: 3,
			Bias: bias})
		dir := filepath.Join(t.TempDir(), "m")
		modeltest.Write(t, dir, meta, weights, 0)
		m := modeltest.Open(t, dir)
		p, err := New(m, Options{Rule: Threshold, Top: 5})
		if err != nil {
			t.Fatal(err)
		}
		rows := append(modeltest.Rows(rng, 60, 4*fewColumns, 0.02), modeltest.Row{},
			modeltest.Row{Columns: []uint32{4 * fewColumns}, Values: []float32{1}})
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
