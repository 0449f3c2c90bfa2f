package mapper

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/internal/linalg/sparse"
)

// apart is a block over rows of six words. Three are of the row's class, and three are rare: rows of
// different classes have hardly a word in common.
func apart(rows int) (*sparse.Matrix, *Block) {
	const classes, words = 400, 4000
	r := rand.New(rand.NewPCG(7, 7))
	b := &Block{Mean: [][]float32{make([]float32, words+1)}, Positive: make([][]uint32, Lanes), Slot: make([]int, Lanes)}
	index, value := make([][]uint32, rows), make([][]float32, rows)
	for i := range index {
		class := r.IntN(classes)
		own := uint32(4 * class)
		index[i] = []uint32{own, own + 1, own + 2}
		for f := uint32(4 * classes); len(index[i]) < 6; {
			f += 1 + r.Uint32N(words/5)
			index[i] = append(index[i], f)
		}
		value[i] = slices.Repeat([]float32{float32(math.Sqrt(1.0 / 6))}, len(index[i]))
		if class < Lanes {
			b.Positive[class] = append(b.Positive[class], uint32(i))
		}
	}
	return sparse.FromRows(words, index, value), b
}

// TestCrowdingBehindSample: of the rows that a sample leaves short of the margin the worst are listed, a
// few times as many as there are positives. So it is without internals (a band of 0), and where the
// scores are expected to fall.
func TestCrowdingBehindSample(t *testing.T) {
	for _, c := range []struct{ band, fall float64 }{{-0.03, 0}, {0, 0}, {0, 0.1}, {0.02, 0.3}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) { crowdedBehindSample(t, c.band, c.fall) })
	}
}

func crowdedBehindSample(t *testing.T, band, fall float64) {
	const positives, rows = 1000, 4 * StartRows
	index, value := make([][]uint32, rows), make([][]float32, rows)
	b := &Block{Slot: []int{-1}, Positive: make([][]uint32, 1)}
	for i := range rows {
		margin := 2.01*math.Mod(float64(i)*math.Phi, 1) - 0.01 // at a weight of 1
		index[i], value[i] = []uint32{0}, []float32{float32(-margin)}
		if i%(rows/positives) == 0 {
			b.Positive[0] = append(b.Positive[0], uint32(i))
		}
	}
	solver := newHingeSolver(NewProblem(sparse.FromRows(1, index, value), Hinge, 1, 0))
	solver.open(b, nil)
	solver.w[0][0] = 1
	if err := solver.price(context.Background(), band, [Lanes]float64{fall}, true, &Sums{}); err != nil {
		t.Fatal(err)
	}
	listed, worst, left := 0, math.Inf(-1), math.Inf(1)
	for i, v := range value {
		switch _, in := slices.BinarySearch(solver.rows, uint32(i)); {
		case solver.sign[i] != 0:
		case in:
			listed++
			worst = max(worst, float64(-v[0]))
		default:
			left = min(left, float64(-v[0]))
		}
	}
	if limit := bandShare*len(b.Positive[0]) + bandLeast; listed > limit*5/4 || listed < limit/2 || worst > left {
		t.Errorf("%d rows are listed, %d were to be; margins up to %g, others from %g", listed, limit, worst, left)
	}
}

// TestCrowding: where most rows lie within the band, a lane lists a few times as many as it has support
// vectors and positives. All rows short of the margin are among them, and the certificate does not know
// of it.
func TestCrowding(t *testing.T) {
	const band = 0.15
	x, b := apart(3 * StartRows)
	s := NewProblem(x, Hinge, 1, 1)
	solve := func(warm *State, o Options) *Result {
		r, err := s.NewSolver().Solve(context.Background(), b, warm, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := solve(nil, Options{Epochs: 5, Price: true})
	r := solve(&first.State, Options{Epochs: 20, Price: true, Band: band})
	for range 3 { // until few rows are short of the margin
		r = solve(&r.State, Options{Epochs: 20, Price: true, Band: band})
	}
	all := solve(&r.State, Options{Price: true, Band: math.MaxFloat64})
	if r.Sums.Primal != all.Sums.Primal || r.Sums.Dual != all.Sums.Dual {
		t.Errorf("certificate %v and %v, with every row listed %v and %v", r.Sums.Primal, r.Sums.Dual, all.Sums.Primal,
			all.Sums.Dual)
	}
	var weights [Lanes][]float32
	for l, o := range s.NewSolver().Weights(b, &r.State) {
		weights[l] = make([]float32, x.Cols+1)
		for k, f := range o.Feature {
			weights[l][f] = o.Value[k]
		}
	}
	beyond := func(i, l int) float64 { // how far row i's score is beyond the margin
		index, value := x.Row(i)
		z := float64(weights[l][x.Cols])
		for k, f := range index {
			z += float64(value[k]) * float64(weights[l][f])
		}
		return -z - 1
	}
	var listed, own [Lanes]int
	work := map[uint32]uint16{}
	for k, i := range r.State.Rows {
		work[i] = r.State.Work[k]
		for m := r.State.Work[k]; m != 0; m &= m - 1 {
			listed[bits.TrailingZeros16(m)]++
		}
		for m := r.State.Live[k]; m != 0; m &= m - 1 {
			own[bits.TrailingZeros16(m)]++
		}
	}
	for l, rows := range b.Positive {
		own[l] += len(rows)
		within := 0
		for i := range x.Rows {
			d := beyond(i, l)
			if d <= band {
				within++
			}
			if d < -1e-5 && work[uint32(i)]>>l&1 == 0 {
				t.Fatalf("lane %d: row %d is short of the margin by %g and not listed", l, i, -d)
			}
		}
		limit := bandShare*own[l] + bandLeast
		if within < 2*limit {
			t.Fatalf("lane %d: %d rows are within the band, %d may be listed: the test sees too little", l, within, limit)
		}
		if listed[l] > limit*3/2 || listed[l] < limit/4 {
			t.Errorf("lane %d: %d rows are listed of %d within the band, %d were to be", l, listed[l], within, limit)
		}
	}
}
