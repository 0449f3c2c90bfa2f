package mapper

import (
	"context"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/linalg/sparse"
)

// TestSimplexThreshold against bisection.
func TestSimplexThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Float64Range(1e-6, 10), 0, 50).Draw(t, "a")
		stride := float64(rapid.IntRange(1, 20).Draw(t, "stride"))
		give := rapid.Float64Range(0, 100).Draw(t, "give")
		excess := func(u float64) float64 {
			sum := -give * u
			for _, x := range a {
				sum += stride*max(0, x-u) - x
			}
			return sum
		}
		low, high := 0.0, 11.0
		for range 200 {
			if mid := (low + high) / 2; excess(mid) > 0 {
				low = mid
			} else {
				high = mid
			}
		}
		if got := simplexThreshold(slices.Clone(a), stride, give); math.Abs(got-low) > 1e-9*max(1, low) {
			t.Fatalf("simplexThreshold %v, bisection %v", got, low)
		}
	})
}

// wordy is a block over many rows of a few words each, common ones first, whose classes have
// a word and a half of their own: the rows that matter lie around those words.
func wordy(rows int) (*sparse.Matrix, *Block) {
	const words = 600
	r := rand.New(rand.NewPCG(7, 7))
	b := &Block{Mean: [][]float32{make([]float32, words+1)}, Positive: make([][]uint32, Lanes), Slot: make([]int, Lanes)}
	index, value := make([][]uint32, rows), make([][]float32, rows)
	for i := range index {
		class := r.IntN(10 * Lanes)
		of := map[uint32]bool{uint32(200 + class): true, uint32(200 + class/2): true}
		for len(of) < 12 {
			of[uint32(float64(words)*math.Pow(r.Float64(), 3))] = true
		}
		index[i] = slices.Sorted(maps.Keys(of))
		value[i] = slices.Repeat([]float32{float32(math.Sqrt(1.0 / 12))}, len(index[i]))
		if class < Lanes {
			b.Positive[class] = append(b.Positive[class], uint32(i))
		}
	}
	return sparse.FromRows(words, index, value), b
}

func working(s *State) (n int) {
	for _, m := range s.Work {
		n += bits.OnesCount16(m)
	}
	return n
}

// TestPredictBiasShift: the first working set behind a sample is smaller than it would be, nearer to
// the next one, keeps what has a dual or is positive, and the certificate does not
// know of it.
func TestPredictBiasShift(t *testing.T) {
	x, b := wordy(5 * StartRows)
	s := NewProblem(x, SquaredHinge, 0.15, 1)
	s.PositiveWeight = 8
	solve := func(warm *State, o Options) *Result {
		r, err := s.NewSolver().Solve(context.Background(), b, warm, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sample := solve(nil, Options{Epochs: 3}).State
	if sample.Priced || len(sample.Rows) == 0 {
		t.Fatal("not on a sample")
	}
	predicted := solve(&sample, Options{Epochs: 1, Price: true, Band: 0.02})
	blind := sample
	blind.Priced, blind.Work = true, make([]uint16, len(sample.Rows))
	for i := range blind.Work {
		blind.Work[i] = 1<<Lanes - 1
	}
	plain := solve(&blind, Options{Epochs: 1, Price: true, Band: 0.02})
	settled := solve(&predicted.State, Options{Epochs: 3, Price: true, Band: 0.02})
	if f, p, w := working(&predicted.State), working(&plain.State), working(&settled.State); f >= p ||
		2*max(f-w, w-f) > p-w {
		t.Errorf("working set %d pairs, without the prediction %d, settled %d", f, p, w)
	}
	for k, i := range predicted.State.Rows {
		if predicted.State.Live[k]&^predicted.State.Work[k] != 0 {
			t.Fatalf("row %d has a dual and is not worked on", i)
		}
	}
	for l, rows := range b.Positive {
		for _, i := range rows {
			if k, ok := slices.BinarySearch(predicted.State.Rows, i); !ok || predicted.State.Work[k]>>l&1 == 0 {
				t.Fatalf("positive %d of lane %d is not listed", i, l)
			}
		}
	}
	full := solve(&predicted.State, Options{Price: true, Band: math.MaxFloat64})
	if again := solve(&full.State, Options{Price: true}); again.Sums.Primal != full.Sums.Primal ||
		again.Sums.Dual != full.Sums.Dual {
		t.Error("the certificate depends on what is listed")
	}
	if got := predicted.Sums.Primal; !near(got, full.Sums.Primal, full.Sums.Primal, 1e-12) {
		t.Errorf("certificate %v, with every row listed %v", got, full.Sums.Primal)
	}
}
