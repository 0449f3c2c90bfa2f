package mapper

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// densePass is a random pass over rows of up to sixteen lanes: duals within, at both ends
// of their boxes, some bounds that make lanes drop rows.
func densePass[T real](r *rand.Rand) (e *laneArgs[T], order []uint32, rows []laneRow[T], w [][16]T) {
	n, lines := 1+r.IntN(60), 1+r.IntN(6)
	x := make([][16]float32, n*lines)
	for i := range x {
		for j := range x[i] {
			x[i][j] = float32(r.NormFloat64())
		}
	}
	for i := range n {
		c := [...]T{0.5, 1, 3}[r.IntN(3)]
		rows = append(rows, laneRow[T]{dual: [...]T{0, c, c / 3}[r.IntN(3)], c: c, step: T(r.Float64()) / 8,
			lane: uint32(r.IntN(Lanes))})
		order = append(order, uint32(i))
	}
	Shuffle(order, r.Uint64(), 0)
	w = randomTile[T](r, Lanes*lines-1)
	e = &laneArgs[T]{n: n, x: &x[0], lines: lines}
	for l := range Lanes {
		e.upper[l], e.lower[l] = T(r.NormFloat64()+1), T(r.NormFloat64()-1)
		e.newUpper[l], e.newLower[l] = T(r.NormFloat64()), T(r.NormFloat64())
		e.estimate[l] = r.NormFloat64()
	}
	return e, order, rows, w
}

// lanesOf is the kernel's loop for T.
func lanesOf[T real](k *Kernel) func(*laneArgs[T]) {
	if f, ok := any(k.lanes32).(func(*laneArgs[T])); ok {
		return f
	}
	return any(k.lanes64).(func(*laneArgs[T]))
}

// TestDenseConformance: every kernel leaves the bits that visitLanes leaves.
func TestDenseConformance(t *testing.T) {
	denseConformance[float32](t)
	denseConformance[float64](t)
}

func denseConformance[T real](t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	dropped := 0
	for range 300 {
		start, order, rows, w := densePass[T](r)
		type after struct {
			sweep laneArgs[T]
			order []uint32
			rows  []laneRow[T]
			w     [][16]T
		}
		run := func(k *Kernel) after {
			a := after{*start, slices.Clone(order), slices.Clone(rows), slices.Clone(w)}
			a.sweep.order, a.sweep.kept, a.sweep.rows, a.sweep.w = &a.order[0], &a.order[0], &a.rows[0], &a.w[0]
			lanesOf[T](k)(&a.sweep)
			a.order = a.order[:a.sweep.left]
			a.sweep.order, a.sweep.kept, a.sweep.rows, a.sweep.w = nil, nil, nil, nil
			return a
		}
		want := run(&goKernel)
		dropped += len(order) - want.sweep.left
		for _, k := range Kernels() {
			got := run(&k)
			if got.sweep != want.sweep || !slices.Equal(got.order, want.order) || !slices.Equal(got.rows, want.rows) ||
				!slices.Equal(got.w, want.w) {
				t.Fatalf("%v leaves\n%+v\nGo\n%+v", k, got, want)
			}
		}
	}
	if dropped < 300 {
		t.Errorf("only %d rows were dropped: the test sees too little", dropped)
	}
}

// TestDenseLayout holds the argument of the dense kernels to the offsets of internal/tools/kernelgen.
func TestDenseLayout(t *testing.T) {
	var s laneArgs[float32]
	var d laneArgs[float64]
	for name, pair := range map[string][2]uintptr{
		"laneRow 32":    {unsafe.Sizeof(laneRow[float32]{}), 16},
		"laneRow 64":    {unsafe.Sizeof(laneRow[float64]{}), 32},
		"row.lane 64":   {unsafe.Offsetof(laneRow[float64]{}.lane), 24},
		"kept":          {unsafe.Offsetof(s.kept), 16},
		"left":          {unsafe.Offsetof(s.left), 24},
		"x":             {unsafe.Offsetof(s.x), 32},
		"lines":         {unsafe.Offsetof(s.lines), 40},
		"rows":          {unsafe.Offsetof(s.rows), 48},
		"w":             {unsafe.Offsetof(s.w), 56},
		"upper":         {unsafe.Offsetof(s.upper), 64},
		"estimate 32":   {unsafe.Offsetof(s.estimate), 64 + 4*64},
		"newLower 64":   {unsafe.Offsetof(d.newLower), 64 + 3*128},
		"estimate 64":   {unsafe.Offsetof(d.estimate), 64 + 4*128},
		"line of x":     {unsafe.Sizeof(*s.x), 64},
		"line of w, 64": {unsafe.Sizeof(*d.w), 128},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %d, the generator has %d", name, pair[0], pair[1])
		}
	}
}

// TestDenseOptimum: on dense rows, too, solves end at the certified gap asked for; sparse
// rows stay on the tile.
func TestDenseOptimum(t *testing.T) {
	for seed := range uint64(8) {
		p := generate(seed, shape{rows: 400, cols: 30, lanes: 6, dense: true})
		s := NewProblem(p.x, Hinge, 1, 1)
		if !s.denseRows() {
			t.Fatal("rows with every column are dense")
		}
		for _, precise := range []bool{false, true} {
			var warm *State
			var sums Sums
			for n := range 4 {
				r, err := s.NewSolver().Solve(context.Background(), p.block, warm,
					Options{Epochs: 3, MaxEpochs: 3000, InnerGap: 1e-4, Price: true, Precise: precise, Seed: uint64(n)})
				if err != nil {
					t.Fatal(err)
				}
				warm, sums = &r.State, r.Sums
			}
			if sums.InnerGap > 3e-3 { // of several hundred: what shrinking misses, and float32
				t.Errorf("seed %d, precise %v: gap %g of %g after %d epochs", seed, precise, sums.InnerGap, sums.Primal,
					sums.Epochs)
			}
		}
	}
	if s := NewProblem(generate(1, shape{rows: 50, cols: 30, lanes: 1}).x, Hinge, 1, 1); s.denseRows() {
		t.Error("a third of the values are there: not dense")
	}
}

// TestLeap: on rows that are alike, whose passes creep, leaps get further in as many passes. Duals
// stay in their box, and the weights are those of the duals.
func TestLeap(t *testing.T) {
	const rows, lines, bound, passes = 200, 2, 10, 300
	far := 0
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 0))
		x := make([][16]float32, rows*lines)
		for i := range x {
			sign := float32(1 - 2*(i/lines%2))
			for j := range x[i] {
				x[i][j] = sign * float32(1+0.1*r.NormFloat64())
			}
		}
		var value [2]float64 // of D
		for leaps := range value {
			n := &laneDescent[float64]{visit: visitLanes[float64], x: x}
			n.lines = lines
			for i := range rows {
				norm := 0.0
				for _, line := range x[i*lines:][:lines] {
					for _, v := range line {
						norm += float64(v) * float64(v)
					}
				}
				n.row = append(n.row, laneRow[float64]{c: bound, step: 1 / norm, lane: uint32(i / 2 % 3)})
				n.order = append(n.order, uint32(i))
			}
			n.w = make([][16]float64, Lanes*lines)
			for l := range Lanes {
				n.upper[l], n.lower[l] = math.Inf(1), math.Inf(-1)
			}
			for pass := range uint64(passes) {
				Shuffle(n.order, seed, pass)
				n.pass()
				for l := range Lanes {
					n.upper[l], n.lower[l] = shrinkBounds(n.newUpper[l], n.newLower[l])
				}
				if leaps == 1 && pass+1 < passes {
					n.extrapolate(0b111)
				}
			}
			w := make([][16]float64, len(n.w))
			for i, row := range n.row {
				if row.dual < 0 || row.dual > bound {
					t.Fatalf("a dual is %g", row.dual)
				}
				value[leaps] += row.dual
				for j, line := range x[i*lines:][:lines] {
					for k, v := range line {
						w[int(row.lane)*lines+j][k] += row.dual * float64(v)
					}
				}
			}
			for i, line := range w {
				for k, v := range line {
					value[leaps] -= v * v / 2
					if math.Abs(v-n.w[i][k]) > 1e-9 {
						t.Fatalf("weight %g, by the duals %g", n.w[i][k], v)
					}
				}
			}
		}
		if value[1] > value[0] {
			far++
		}
	}
	if far < 8 {
		t.Errorf("leaps got further in %d of 10", far)
	}
}

// BenchmarkDenseVisit is an epoch over rows of 80 features of four lanes, none of which is dropped.
func BenchmarkDenseVisit(b *testing.B) {
	b.Run("float32", denseVisits[float32])
	b.Run("float64", denseVisits[float64])
}

func denseVisits[T real](b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const n, lines = 1200, 6
	x := make([][16]float32, n*lines)
	for i := range x {
		for j := range x[i] {
			x[i][j] = float32(r.NormFloat64())
		}
	}
	rows, order := make([]laneRow[T], n), make([]uint32, n)
	for i := range rows {
		rows[i] = laneRow[T]{dual: 0.5, c: 1, step: 1e-3, lane: uint32(i % 4)}
		order[i] = uint32(i)
	}
	Shuffle(order, 1, 1)
	w := make([][16]T, Lanes*lines)
	eachKernel(b, func(b *testing.B, k Kernel) {
		e := &laneArgs[T]{order: &order[0], n: n, kept: &order[0], x: &x[0], lines: lines, rows: &rows[0], w: &w[0]}
		for l := range Lanes {
			e.upper[l], e.lower[l] = 1e30, -1e30
		}
		start := cpuTime()
		for range b.N {
			lanesOf[T](&k)(e)
		}
		perVisit(b, start, int64(b.N)*n*16*lines)
	})
}
