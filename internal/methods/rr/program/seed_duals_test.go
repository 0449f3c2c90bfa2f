package program

import (
	"math"
	"slices"
	"testing"

	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/linalg/sparse"
	params "taxon/internal/methods/rr/plan"
	"taxon/mapper"
	"taxon/reducer"
)

// seederOf returns a seeder for two classes without a parent over three features, without a bias.
func seederOf(loss mapper.Loss, weights [][]float32) *dualSeeder {
	x := sparse.FromRows(3, [][]uint32{{0}, {1}, {0, 1}, {2}, {}}, [][]float32{{1}, {1}, {1, 1}, {1}, {}})
	j := &job{
		set:     &dataset.Set{Matrix: x, PosRows: []uint32{0, 2, 1}, PosBegin: []uint64{0, 2, 3}},
		tree:    &taxonomy.Tree{Parent: []int32{-1, -1}, Label: []int32{0, 1}, Leaf: []bool{true, true}},
		options: params.Settings{C: 2, PositiveWeight: "3"}, forest: &reducer.Forest{}, internal: []int32{-1, -1},
		plan:    &params.Plan{BlockTerminals: []uint32{0, 1}, BlockBegin: []uint32{0, 2}},
		problem: mapper.NewProblem(x, loss, 2, 0),
	}
	return j.newDualSeeder(&reducer.Vectors{Begin: []int64{0}}, func(n int) ([]uint32, []float32) {
		if weights[n] == nil {
			return nil, nil
		}
		return []uint32{0, 1, 2}, weights[n]
	})
}

// TestDualsOfSquaredHinge compares with duals computed by hand, a = 2 C_in (1-z)_+ with C = 2,
// positives thrice: class a, w = (0.5, -2, 1), has margins 0.5, 2, -1.5, -1 in rows 0 to 3 (rows 0
// and 2 are its own), so duals 6, 0, 30, 8, and row 1 is not visited. Class b begins at zero: all
// rows are visited, none has a dual.
func TestDualsOfSquaredHinge(t *testing.T) {
	s := seederOf(mapper.SquaredHinge, [][]float32{{0.5, -2, 1}, nil}).block(0)
	if !s.Priced || !slices.Equal(s.Rows, []uint32{0, 1, 2, 3}) || !slices.Equal(s.Work, []uint16{3, 2, 3, 3}) ||
		!slices.Equal(s.Live, []uint16{1, 0, 1, 1}) || !slices.Equal(s.Dual, []float64{6, 30, 8}) {
		t.Errorf("%+v", s)
	}
}

// TestDualsOfHinge checks that the duals of rows below the corner are at their bound, and those
// above it at 0. A dual at the corner takes the remainder of the weights: v = (1, -2, 0.5) leaves
// out row 1 (negative, at margin 2), and of rows 0 (own, margin 1) and 2 (own, margin -1, bound 6),
// 6 + a_0 = 1 would need a_0 < 0, so a_0 = 0. Row 3 (margin -0.5) is at 2.
func TestDualsOfHinge(t *testing.T) {
	s := seederOf(mapper.Hinge, [][]float32{{1, -2, 0.5}, nil}).block(0)
	if !slices.Equal(s.Rows, []uint32{0, 1, 2, 3}) || len(s.Dual) != 2 || math.Abs(s.Dual[0]-6) > 1e-5 || s.Dual[0] > 6 ||
		math.Abs(s.Dual[1]-2) > 1e-5 {
		t.Errorf("%+v", s)
	}
	// with w = (1, -1, -1) only row 0 has feature 0, and only rows at the corner have a free dual:
	// v = (a_0 + a_2, a_2 - a_1, -a_3); row 2 has margin 0 and bound 6
	s = seederOf(mapper.Hinge, [][]float32{{1, -1, -1}, nil}).block(0)
	sum := [3]float64{}
	at := 0
	for k, i := range s.Rows {
		if s.Live[k]&1 != 0 {
			a := s.Dual[at]
			at++
			if a < 0 || a > 6 {
				t.Errorf("row %d: dual %v outside its box", i, a)
			}
			sum[min(int(i), 2)] += a
		}
	}
	if math.Abs(sum[2]-6-1) > 1e-3 || sum[1] < 1.9 { // a_2 = 6, a_3 = 1, a_1 = its bound 2
		t.Errorf("%+v", s)
	}
}
