package solver

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFollow checks that offsets that are tight for some leaves become tight for the same leaves
// after all have moved by the vector at which their drift ends.
func TestFollow(t *testing.T) {
	x := sample(1, 20, 6, true)
	blocks := []*Block{leaves(1, x, 5), leaves(2, x, 2)}
	w := [][]float64{normals(rand.New(rand.NewPCG(1, 7)), 5*x.Columns()), normals(rand.New(rand.NewPCG(2, 7)),
		2*x.Columns())}
	tight := func() []float64 {
		out, parts := make([]float64, x.X.Rows), make([][]float64, len(blocks))
		for k, b := range blocks {
			lanes := len(b.Positive)
			score := make([]float64, x.X.Rows*lanes)
			x.Scores(w[k], score, lanes)
			for row := range slices.Chunk(score, lanes) {
				parts[k] = append(parts[k], logSum(row))
			}
		}
		LogSums(parts, out)
		return out
	}
	drift := func() [][]float64 { return [][]float64{blocks[0].Drift(w[0]), blocks[1].Drift(w[1])} }
	offset, before := tight(), drift()
	x.Follow(offset, before)
	for f := range x.Columns() {
		weight := before[0][x.Columns()+f] + before[1][x.Columns()+f]
		move := -(before[0][f] + before[1][f]) / weight
		for k, b := range blocks {
			for l := range b.Positive {
				w[k][f*len(b.Positive)+l] += move
			}
		}
		after := drift()
		if left := after[0][f] + after[1][f]; math.Abs(left) > 1e-12*weight {
			t.Errorf("column %d drifts on by %g", f, left)
		}
	}
	for i, want := range tight() {
		if math.Abs(offset[i]-want) > 1e-12*(1+math.Abs(want)) {
			t.Errorf("row %d: %.15g, want %.15g", i, offset[i], want)
		}
	}
}

// TestCenter checks that the root's mean is 0 after Center, and that the differences of means are
// unchanged.
func TestCenter(t *testing.T) {
	mu := []float64{1, 2, 4, 6, 0, -1}
	if Center(mu, 2); !slices.Equal(mu, []float64{0, 0, 3, 4, -1, -3}) {
		t.Error(mu)
	}
}
