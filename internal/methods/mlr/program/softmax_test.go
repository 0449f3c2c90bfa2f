package program

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/internal/linalg/sparse"
)

// small generates a problem with rows of up to five columns, one of them empty.
func small(seed uint64, rows, cols, classes int) *problem {
	r := rand.New(rand.NewPCG(seed, 5))
	p := &problem{classes: classes, c: 0.7, bias: 1.5}
	var index [][]uint32
	var value [][]float32
	for i := range rows {
		var at []uint32
		var x []float32
		for range i % 6 {
			at = append(at, uint32(r.IntN(cols)))
		}
		slices.Sort(at)
		at = slices.Compact(at)
		for range at {
			x = append(x, float32(r.NormFloat64()))
		}
		index, value = append(index, at), append(value, x)
		p.class = append(p.class, int32(r.IntN(classes)))
	}
	p.x = sparse.FromRows(cols, index, value)
	return p
}

// losses returns C times the sum of the losses, computed from the formula.
func (p *problem) losses(w []float64) (sum float64) {
	for i := range p.x.Rows {
		scores := make([]float64, p.classes)
		index, value := p.x.Row(i)
		for k := range scores {
			for n, f := range index {
				scores[k] += w[int(f)*p.classes+k] * float64(value[n])
			}
			if p.bias > 0 {
				scores[k] += w[p.x.Cols*p.classes+k] * p.bias
			}
		}
		total := 0.0
		for _, s := range scores {
			total += math.Exp(s)
		}
		sum -= p.rowC(i) * math.Log(math.Exp(scores[p.class[i]])/total)
	}
	return sum
}

// TestGradient compares the result of score with the losses and with finite differences, with and
// without a bias, and with and without weights of the rows.
func TestGradient(t *testing.T) {
	for _, bias := range []float64{1.5, 0} {
		p := small(1, 40, 7, 4)
		p.bias = bias
		for i := range p.x.Rows {
			if bias == 0 {
				p.weight = append(p.weight, float64(i%7)/3)
			}
		}
		r := rand.New(rand.NewPCG(2, 2))
		w := make([]float64, p.columns()*p.classes)
		for i := range w {
			w[i] = r.NormFloat64()
		}
		column := func(f uint32) []float64 { return w[int(f)*p.classes:][:p.classes] }
		got := make([]float64, len(w))
		loss := 0.0
		cut := p.shards(3)
		for s := range 3 {
			g, err := p.score(context.Background(), cut[s], cut[s+1], column)
			if err != nil {
				t.Fatal(err)
			}
			loss += g.loss
			for i, f := range g.columns {
				axpy(got[int(f)*p.classes:][:p.classes], 1, g.sums[i*p.classes:])
			}
		}
		if want := p.losses(w); math.Abs(loss-want) > 1e-12*want {
			t.Errorf("loss %g, want %g", loss, want)
		}
		for i := range w {
			const h = 1e-5
			at := w[i]
			w[i] = at + h
			up := p.losses(w)
			w[i] = at - h
			want := (p.losses(w) - up) / (2 * h)
			if w[i] = at; math.Abs(got[i]-want) > 1e-7*(1+math.Abs(want)) {
				t.Errorf("weight %d: %g, the differences say %g", i, got[i], want)
			}
		}
	}
}

// TestFarScores checks scores beyond the range of exp.
func TestFarScores(t *testing.T) {
	s := []float64{5000, 4000, -5000}
	if loss := softmax(s, 1); loss != 1000 || s[0] != 1 || s[1] != 0 || s[2] != 0 {
		t.Errorf("%g, %v", loss, s)
	}
}

// TestShards checks that shards are in order, cover all rows, and have about equal numbers of
// nonzeros.
func TestShards(t *testing.T) {
	p := small(3, 1000, 50, 3)
	for _, n := range []int{1, 2, 7, 64} {
		cut := p.shards(n)
		if len(cut) != n+1 || cut[0] != 0 || cut[n] != p.x.Rows || !slices.IsSorted(cut) {
			t.Fatalf("%d shards: %v", n, cut)
		}
		for s := range n {
			work := 0
			for i := cut[s]; i < cut[s+1]; i++ {
				index, _ := p.x.Row(i)
				work += len(index) + 1
			}
			if most := (int(p.x.NNZ)+p.x.Rows)/n + 6; work > most {
				t.Errorf("shard %d of %d has %d, want at most %d", s, n, work, most)
			}
		}
	}
}

// TestMetric compares the metric with the inverse of the Hessian's diagonal at W = 0, computed by
// differences of the gradient.
func TestMetric(t *testing.T) {
	p := small(4, 60, 5, 3)
	w := make([]float64, p.columns()*p.classes)
	column := func(f uint32) []float64 { return w[int(f)*p.classes:][:p.classes] }
	at := func(i int) float64 {
		g, err := p.score(context.Background(), 0, p.x.Rows, column)
		if err != nil {
			t.Fatal(err)
		}
		return w[i] - g.sums[i] // all columns occur
	}
	inverse := p.metric()
	for i := range w {
		const h = 1e-5
		w[i] = h
		up := at(i)
		w[i] = -h
		want := (up - at(i)) / (2 * h)
		if w[i] = 0; math.Abs(1/inverse[i/p.classes]-want) > 1e-6*want {
			t.Errorf("weight %d: %g, want %g", i, 1/inverse[i/p.classes], want)
		}
	}
}

func BenchmarkScore(b *testing.B) {
	p := small(1, 5000, 2000, 200)
	w := make([]float64, p.columns()*p.classes)
	column := func(f uint32) []float64 { return w[int(f)*p.classes:][:p.classes] }
	visits := int64(0)
	for b.Loop() {
		g, err := p.score(context.Background(), 0, p.x.Rows, column)
		if err != nil {
			b.Fatal(err)
		}
		visits += 2 * g.visits * int64(p.classes)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(visits), "ns/visit")
}

func BenchmarkGather(b *testing.B) {
	const columns, classes = 1000, 200
	inverse := make([]float64, columns)
	v := func() []float64 { return make([]float64, columns*classes) }
	h := &history{}
	for range 6 {
		h.w, h.g = append(h.w, v()), append(h.g, v())
	}
	w, g := v(), v()
	for b.Loop() {
		gather(w, g, h, inverse, classes)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(columns*classes), "ns/weight")
}
