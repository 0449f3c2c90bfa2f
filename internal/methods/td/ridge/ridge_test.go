package ridge

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"taxon/internal/linalg/sparse"
	"taxon/mapper"
)

// small generates rows of up to cols columns, one of them empty, and the positive ones among them.
func small(seed uint64, rows, cols int, weighted bool) (*mapper.Problem, []uint32) {
	r := rand.New(rand.NewPCG(seed, 3))
	index, value := make([][]uint32, rows), make([][]float32, rows)
	var positive []uint32
	for i := range rows {
		for f := range uint32(cols) {
			if i > 0 && r.IntN(4) == 0 {
				index[i], value[i] = append(index[i], f), append(value[i], float32(r.NormFloat64()))
			}
		}
		if r.IntN(3) == 0 {
			positive = append(positive, uint32(i))
		}
	}
	p := mapper.NewProblem(sparse.FromRows(cols, index, value), mapper.Hinge, 0.7, 1.5)
	if weighted {
		for i := range rows {
			p.Weight = append(p.Weight, 0.5+float64(i%3))
		}
	}
	return p, positive
}

func (s *Solver) dense(i int) []float64 {
	x := make([]float64, s.width)
	s.add(i, 1, x)
	return x
}

// solved returns A^-1 b by Gauss-Jordan elimination.
func solved(a [][]float64, b []float64) []float64 {
	n := len(b)
	for i := range a {
		a[i] = append(append([]float64(nil), a[i]...), b[i])
	}
	for k := range n {
		for i := range n {
			if by := a[i][k] / a[k][k]; i != k {
				for c := range a[i] {
					a[i][c] -= by * a[k][c]
				}
			}
		}
	}
	x := make([]float64, n)
	for k := range n {
		x[k] = a[k][n] / a[k][k]
	}
	return x
}

// matrix returns I + sum C_i x_i x_i' + extra extra', and sum C_i y_i x_i.
func (s *Solver) matrix(positive []uint32, extra []float64) (m [][]float64, b []float64) {
	b = make([]float64, s.width)
	for f := range s.width {
		m = append(m, make([]float64, s.width))
		m[f][f] = 1
	}
	add := func(x []float64, c float64) {
		for f := range m {
			for g := range m {
				m[f][g] += c * x[f] * x[g]
			}
		}
	}
	k := 0
	for i := range s.p.X.Rows {
		y := -1.0
		if k < len(positive) && positive[k] == uint32(i) {
			y = 1
			k++
		}
		x := s.dense(i)
		add(x, s.p.RowC(i))
		for f := range b {
			b[f] += s.p.RowC(i) * y * x[f]
		}
	}
	if extra != nil {
		add(extra, 1)
	}
	return m, b
}

// TestClosedForm checks that the weights are M^-1 S y, whether M is stored or not, and that P and D
// are those of the weights and close to each other. The prediction of [JMLR] section 5 by a matrix
// that includes the test instance, (M + x x')^-1 S y . x, is the score over 1 + x'M^-1 x, and thus
// of the same sign.
func TestClosedForm(t *testing.T) {
	for n, c := range []struct {
		rows, cols int
		weighted   bool
	}{{60, 6, false}, {60, 6, true}, {12, 40, false}} {
		p, positive := small(uint64(n), c.rows, c.cols, c.weighted)
		s := New(p)
		if (s.m != nil) != (c.cols == 6) {
			t.Errorf("case %d: M written out: %t", n, s.m != nil)
		}
		r, err := s.Solve(context.Background(), positive)
		if err != nil {
			t.Fatal(err)
		}
		m, b := s.matrix(positive, nil)
		want := solved(m, b)
		got := make([]float64, s.width)
		for k, f := range r.Feature {
			got[f] = float64(r.Value[k])
		}
		for f := range want {
			if math.Abs(got[f]-want[f]) > 1e-6*(1+math.Abs(want[f])) {
				t.Errorf("case %d, column %d: %g, want %g", n, f, got[f], want[f])
			}
		}
		primal := sparse.Dot(got, got) / 2
		k := 0
		for i := range p.X.Rows {
			y := -1.0
			if k < len(positive) && positive[k] == uint32(i) {
				y = 1
				k++
			}
			primal += p.RowC(i) * (y - sparse.Dot(got, s.dense(i))) * (y - sparse.Dot(got, s.dense(i))) / 2
		}
		if math.Abs(r.Primal-primal) > 1e-12*primal || math.Abs(r.Primal-r.Dual) > 1e-11*primal {
			t.Errorf("case %d: P %.15g, D %.15g; the weights' is %.15g", n, r.Primal, r.Dual, primal)
		}
		x := s.dense(3)
		with, _ := s.matrix(positive, x)
		m, _ = s.matrix(positive, nil)
		if score, paper := sparse.Dot(want, x)/(1+sparse.Dot(solved(m, x), x)), sparse.Dot(solved(with, b),
			x); math.Abs(score-paper) > 1e-9 {
			t.Errorf("case %d: score %g, with the instance in the matrix %g", n, score, paper)
		}
	}
}

// TestCancelled checks that a cancelled context ends a solve.
func TestCancelled(t *testing.T) {
	p, positive := small(9, 50, 30, false)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := New(p).Solve(ctx, positive); err == nil {
		t.Error("it went on")
	}
}

func BenchmarkSolve(b *testing.B) {
	p, positive := small(1, 4000, 500, false)
	s := New(p)
	for b.Loop() {
		if _, err := s.Solve(context.Background(), positive); err != nil {
			b.Fatal(err)
		}
	}
}
