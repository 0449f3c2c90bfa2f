package mapper

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/internal/sparse"
)

// textLike draws rows of Zipf words, 12.7 of them on average and of unit length, as a
// frequency-renumbered text set of short documents has them; every row belongs to one of
// a few hundred classes with words of their own.
func textLike(rows, cols, classes int) (*sparse.Matrix, []uint32) {
	r := rand.New(rand.NewPCG(11, 12))
	zipf := rand.NewZipf(r, 1.07, 4, uint64(cols-1))
	index, value := make([][]uint32, rows), make([][]float32, rows)
	class := make([]uint32, rows)
	for i := range index {
		class[i] = uint32(r.IntN(classes))
		want := max(2, int(math.Round(12.7+4*r.NormFloat64())))
		words := map[uint32]bool{uint32(cols/4) + class[i]: true}
		for len(words) < want {
			words[uint32(zipf.Uint64())] = true
		}
		for f := range words {
			index[i] = append(index[i], f)
		}
		slices.Sort(index[i])
		norm := 0.0
		for _, f := range index[i] {
			x := math.Log(float64(2 + f)) // rare words weigh more
			value[i] = append(value[i], float32(x))
			norm += x * x
		}
		for j := range value[i] {
			value[i][j] /= float32(math.Sqrt(norm))
		}
	}
	return sparse.FromRows(cols, index, value), class
}

// textBlock is sixteen classes under two parents.
func textBlock(x *sparse.Matrix, class []uint32) *Block {
	b := &Block{Mean: [][]float32{make([]float32, x.Cols+1), make([]float32, x.Cols+1)}}
	for l := range Lanes {
		b.Slot = append(b.Slot, l/8)
		var rows []uint32
		for i, c := range class {
			if int(c) == l {
				rows = append(rows, uint32(i))
			}
		}
		b.Positive = append(b.Positive, rows)
	}
	for _, y := range b.Mean {
		y[x.Cols] = -0.9 // as after some sweeps
	}
	return b
}

const benchRows, benchCols, benchClasses = 8_000, 30_000, 300

// BenchmarkScore is the cost of one active row, per nonzero and class.
func BenchmarkScore(b *testing.B) {
	x, _ := textLike(benchRows, benchCols, benchClasses)
	w := tile[float32](rand.New(rand.NewPCG(1, 1)), benchCols)
	for _, lanes := range []int{1, 4, 8, 9, 16} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			mask := uint16(1)<<lanes - 1
			var s [Lanes]float32
			visits := 0
			for n := range b.N {
				idx, val := x.Row(n % x.Rows)
				score(w, idx, val, 1, mask, &s)
				visits += (len(idx) + 1) * lanes
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(visits), "ns/nonzero-class")
		})
	}
}

// BenchmarkSolveBlock is a fresh block's three epochs, then three over its working set.
func BenchmarkSolveBlock(b *testing.B) {
	x, class := textLike(benchRows, benchCols, benchClasses)
	s := NewSolver(x, Hinge, 1, 1)
	t, block := s.NewScratch(), textBlock(x, class)
	ctx := context.Background()
	first, err := s.SolveBlock(ctx, t, block, nil, Options{Epochs: 3, Price: true, Band: 0.15})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		warm *State
	}{{"fresh", nil}, {"working-set", &first.State}} {
		b.Run(c.name, func(b *testing.B) {
			visits := int64(0)
			for range b.N {
				r, err := s.SolveBlock(ctx, t, block, c.warm, Options{Epochs: 3})
				if err != nil {
					b.Fatal(err)
				}
				visits += r.Sums.Visits
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(visits), "ns/nonzero-class")
		})
	}
}

// BenchmarkPrice is the pass over all rows and classes that certifies.
func BenchmarkPrice(b *testing.B) {
	x, class := textLike(benchRows, benchCols, benchClasses)
	s := NewSolver(x, Hinge, 1, 1)
	t, block := s.NewScratch(), textBlock(x, class)
	ctx := context.Background()
	warm, err := s.SolveBlock(ctx, t, block, nil, Options{Epochs: 5, Price: true, Band: 0.15})
	if err != nil {
		b.Fatal(err)
	}
	visits := int64(0)
	b.ResetTimer()
	for range b.N {
		r, err := s.SolveBlock(ctx, t, block, &warm.State, Options{Price: true, Band: 0.15})
		if err != nil {
			b.Fatal(err)
		}
		visits += r.Sums.Visits
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(visits), "ns/nonzero-class")
}
