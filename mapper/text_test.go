package mapper

import (
	"math"
	"math/rand/v2"
	"slices"

	"taxon/internal/linalg/sparse"
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
