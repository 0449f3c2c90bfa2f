package solver

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"taxon/internal/linalg/sparse"
)

// same fails unless two vectors have the same bits; NaN equals NaN.
func same(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i, x := range want {
		if math.Float64bits(got[i]) != math.Float64bits(x) && !(got[i] != got[i] && x != x) {
			t.Fatalf("%s: %v at %d, Go's kernel has %v", what, got[i], i, x)
		}
	}
}

func normals(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = r.NormFloat64()
	}
	return out
}

// TestKernelPasses checks that all kernels give the bits of the Go kernel, on lines of any length,
// with rows without entries, over several shards, with a bias and without.
func TestKernelPasses(t *testing.T) {
	many := Rows{X: sparse.FromRows(3, make([][]uint32, 1<<sparse.RowShift+5), make([][]float32, 1<<sparse.RowShift+5)),
		Bias: 0.5}
	last := &many.X.Shards[1]
	last.Index, last.Value = []uint32{1, 2, 0}, []float32{2, -3, 4}
	last.Begin[2], last.Begin[3], last.Begin[4], last.Begin[5] = 2, 2, 2, 3
	for _, r := range []Rows{sample(1, 40, 9, true), sample(2, 41, 70, false), many} {
		for lanes := 1; lanes <= Lanes; lanes++ {
			rnd := rand.New(rand.NewPCG(uint64(lanes), 3))
			w, coef, coef2 := normals(rnd, r.Columns()*lanes), normals(rnd, r.X.Rows*lanes), normals(rnd, r.X.Rows*lanes)
			run := func(k Kernel) (out [6][]float64) {
				r := r
				r.Kernel = k
				for i := range out {
					out[i] = make([]float64, len(w))
				}
				out[0] = make([]float64, len(coef))
				r.scores(w, out[0], lanes)
				r.gather(coef, out[1], lanes)
				r.gatherSquare(coef, out[2], lanes)
				r.gatherSize(coef, r.sizes(), out[3], lanes)
				r.gatherBoth(coef, out[4], coef2, out[5], lanes)
				return out
			}
			want := run(Kernel{})
			for _, k := range Kernels() {
				for i, got := range run(k) {
					same(t, fmt.Sprintf("%d lanes, pass %d", lanes, i), got, want[i])
				}
			}
			if r.X.Rows > 1000 && lanes > 4 {
				break
			}
		}
	}
}

// TestKernelWeigh checks the same for margins, curvatures and losses, including the values at which
// exp and log change branches.
func TestKernelWeigh(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	const n = 500
	for _, lanes := range []int{4, 8, 12, 16} {
		score, move, positive := normals(rnd, n*lanes), normals(rnd, n*lanes), make([]uint16, n)
		for i := range score {
			switch i % 5 {
			case 0:
				score[i] *= 300
			case 1:
				score[i] = []float64{0, math.Copysign(0, -1), 690, -690, 689.999, -691, 1e-300, math.Log(math.Sqrt2 - 1),
					math.NaN(), math.Inf(1)}[rnd.IntN(10)]
				move[i] = 0
			}
		}
		for i := range positive {
			positive[i] = uint16(rnd.Uint32())
		}
		length := [Lanes]float64(normals(rnd, Lanes))
		r := Rows{}
		for _, weight := range [][]float64{nil, normals(rnd, n)} {
			r.Weight = weight
			run := func(k Kernel) (out [4][]float64) {
				r.Kernel = k
				for i := range 3 {
					out[i] = make([]float64, len(score))
				}
				loss := r.weigh(lanes, score, move, out[0], out[1], out[2], positive, &length)
				out[3] = loss[:lanes]
				return out
			}
			want := run(Kernel{})
			for _, k := range Kernels() {
				for i, got := range run(k) {
					same(t, fmt.Sprintf("%d lanes, part %d", lanes, i), got, want[i])
				}
			}
		}
	}
}

// TestWeigh checks the loop's results against their definitions.
func TestWeigh(t *testing.T) {
	for _, z := range []float64{-800, -691, -30, -1, -1e-9, 0, 1e-9, 0.5, 40, 691, 800} {
		r := Rows{Weight: []float64{3}}
		trial, coef, curve := make([]float64, 4), make([]float64, 4), make([]float64, 4)
		loss := r.weigh(4, []float64{z, z, 1, 1}, []float64{0, 0, z - 1, z - 1}, trial, coef, curve, []uint16{0b0110},
			&[Lanes]float64{2: 1, 3: 1})
		p := 1 / (1 + math.Exp(-z))
		for l, want := range [][3]float64{{-p, p / (1 + math.Exp(z)), math.Log1p(math.Exp(-math.Abs(z))) + max(z, 0)},
			{1 / (1 + math.Exp(z)), p / (1 + math.Exp(z)), math.Log1p(math.Exp(-math.Abs(z))) + max(-z, 0)}} {
			for k, got := range []float64{coef[l], curve[l], loss[l]} {
				if math.Abs(got-3*want[k]) > 1e-14*(1e-200+math.Abs(3*want[k])) && math.Abs(got) > 1e-290 {
					t.Errorf("z %g lane %d: part %d is %g, want %g", z, l, k, got, 3*want[k])
				}
			}
			if near := 3 - l; math.Abs(coef[near]-coef[l]) > 1e-13*max(1, math.Abs(z)) ||
				math.Abs(trial[near]-z) > 1e-13*(1+math.Abs(z)) {
				t.Errorf("z %g: lanes %d and %d differ", z, l, near)
			}
		}
	}
}

// TestKernelSolve checks that a complete solve gives the same bits with every kernel.
func TestKernelSolve(t *testing.T) {
	for seed := range uint64(6) {
		r := sample(seed, 60, 30, seed%2 > 0)
		b := leaves(seed, r, []int{1, 5, 16}[seed%3])
		run := func(k Kernel) (out [2][]float64) {
			r.Kernel = k
			s := &Scratch{}
			s.Open(r, b)
			out[0], out[1] = make([]float64, r.Columns()*len(b.Positive)), make([]float64, r.Columns()*len(b.Positive))
			if _, err := s.Solve(context.Background(), r, out[0], 1e-9); err != nil {
				t.Fatal(err)
			}
			s.Curvature(r, out[1])
			return out
		}
		want := run(Kernel{})
		for _, k := range Kernels() {
			for i, got := range run(k) {
				same(t, fmt.Sprintf("seed %d, part %d", seed, i), got, want[i])
			}
		}
	}
}

// TestCheck checks that a feature beyond the columns is an error and not an access out of bounds.
func TestCheck(t *testing.T) {
	r := sample(1, 5, 4, false)
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	r.X.Cols = 2
	if r.Check() == nil {
		t.Error("feature 3 of 2 was not seen")
	}
}

// TestSystemAlone checks that a lane's step has the same bits alone as together with fifteen
// others, some of which end long before it, with every kernel.
func TestSystemAlone(t *testing.T) {
	r := sample(7, 60, 40, false)
	b := leaves(7, r, Lanes)
	rnd := rand.New(rand.NewPCG(7, 7))
	s := &Scratch{}
	s.Open(r, b)
	s.lay(normals(rnd, r.Columns()*Lanes))
	s.locate(r)
	norm, _, size := s.differentiate(r)
	var share [Lanes]float64
	for l := range share {
		share[l] = math.Pow(10, -float64(l%6))
	}
	run := func(k Kernel, running uint32) (out []float64, narrow bool) {
		r.Kernel = k
		out = make([]float64, len(s.step))
		s.system.open(s, r, running, &norm)
		wide := s.system.line
		s.system.solve(r, &share, out, s.line)
		return out, s.system.line < wide
	}
	all, narrow := run(Kernel{}, 1<<Lanes-1)
	if !narrow || size[0] == 0 {
		t.Fatal("no lane ended early")
	}
	for l := range Lanes {
		for _, k := range Kernels() {
			alone, _ := run(k, 1<<l)
			for i := l; i < len(all); i += Lanes {
				if alone[i] != all[i] {
					t.Fatalf("lane %d: %g alone, %g with others", l, alone[i], all[i])
				}
			}
			same(t, "all lanes", func() []float64 { v, _ := run(k, 1<<Lanes-1); return v }(), all)
		}
	}
}

// TestKernelLoops checks the same for the loops over columns, with far rows in some lanes and
// features of near rows.
func TestKernelLoops(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	const n = 37
	for line := quarter; line <= Lanes; line += quarter {
		var vectors [7][]float64
		for i := range vectors {
			vectors[i] = normals(rnd, n*line)
		}
		for i, x := range vectors[0] {
			vectors[0][i] = 1e-3 + math.Abs(x)
			vectors[4][i] = math.Abs(vectors[4][i])
		}
		place := make([]uint32, n)
		for f := range place {
			place[f] = max(rnd.Uint32N(3), 1) - 1
		}
		e := lineLoop{n: n, stride: 8 * line, slope: [Lanes]float64(normals(rnd, Lanes)),
			bend: [Lanes]float64(normals(rnd, Lanes)), length: [Lanes]float64(normals(rnd, Lanes))}
		for l := range e.total {
			e.total[l] = 1 + rnd.Float64()
			if l%3 > 0 {
				mask(&e.far, l)
			}
			if l%4 > 0 {
				mask(&e.running, l)
			}
		}
		run := func(k Kernel) (out [][]float64) {
			all := k.over(line)
			for i, loop := range []func(*lineLoop){all.differentiate, all.differentiateFar, all.slopes, all.step, all.spans,
				all.bends, all.eliminate, all.follow, all.totals, all.doubts} {
				e, v := e, vectors
				for i := range v {
					v[i] = append([]float64(nil), v[i]...)
				}
				e.precision, e.w, e.above, e.gradient, e.h, e.step, e.u = &v[0][0], &v[1][0], &v[2][0], &v[3][0], &v[4][0],
					&v[5][0], &v[6][0]
				doubt := make([]float64, n)
				if i >= 6 {
					e.place = unsafe.Pointer(&place[0])
				}
				if i == 9 {
					e.place = unsafe.Pointer(&doubt[0])
				}
				loop(&e)
				out = append(append(append(out, v[:]...), doubt), e.sum[0][:], e.sum[1][:], e.sum[2][:])
			}
			return out
		}
		want := run(Kernel{})
		for _, k := range Kernels() {
			for i, got := range run(k) {
				same(t, fmt.Sprintf("%d lanes, vector %d", line, i), got, want[i])
			}
		}
	}
}
