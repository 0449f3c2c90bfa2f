package mapper

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
)

// twin is one class's dual coordinate descent in plain loops over dense memory, written
// from the package comment and Algorithm 3 of Hsieh et al. 2008: the reference that a
// lane of a block must match bit by bit when both see the rows in the same order.
type twin[T real] struct {
	p            *problem
	set          setting
	wide         bool // sixteen partial sums, as on dense rows
	lane         int
	y            []float32
	positive     []bool
	a            []float64 // between solves; a solve in float32 sees them rounded
	w            []T
	norm         []float64
	active       []bool
	upper, lower T // shrinking bounds of the last epoch
	top, bottom  T // of this one
	estimate     float64
	done         bool
}

func newTwin[T real](p *problem, set setting, l int) *twin[T] {
	n := len(p.index)
	t := &twin[T]{p: p, set: set, lane: l, y: p.mean(l), positive: make([]bool, n), a: make([]float64, n),
		norm: make([]float64, n), active: make([]bool, n)}
	for _, i := range p.block.Positive[l] {
		t.positive[i] = true
	}
	for i := range t.norm {
		q := float64(set.bias) * float64(set.bias)
		for _, x := range p.value[i] {
			q += float64(float64(x) * float64(x))
		}
		t.norm[i] = q
		t.active[i] = q > 0
	}
	return t
}

// start sets w = y + sum a y x, in float64 added to y last, and forgets the shrinking bounds.
func (t *twin[T]) start() {
	t.upper, t.lower, t.done = T(math.Inf(1)), T(math.Inf(-1)), false
	v := make([]T, len(t.y))
	_, single := any(v).([]float32)
	for f := range v {
		if single {
			v[f] = T(t.y[f])
		}
	}
	t.w = v
	for i, a := range t.a {
		if a != 0 && t.positive[i] {
			t.move(i, T(a))
		} else if a != 0 {
			t.move(i, -T(a))
		}
	}
	for f := range v {
		if !single {
			v[f] += T(t.y[f])
		}
	}
}

// epoch visits the rows of order.
func (t *twin[T]) epoch(order []uint32) {
	t.top, t.bottom, t.estimate = T(math.Inf(-1)), T(math.Inf(1)), 0
	for _, i := range order {
		if t.active[i] {
			t.visit(int(i))
		}
	}
	t.upper, t.lower = t.top, t.bottom
	if t.upper <= 0 {
		t.upper = T(math.Inf(1))
	}
	if t.lower >= 0 {
		t.lower = T(math.Inf(-1))
	}
}

func (t *twin[T]) visit(i int) {
	y := T(-1)
	if t.positive[i] {
		y = 1
	}
	classC := t.set.rowC(i, t.positive[i], t.lane)
	bound, soft := T(t.set.loss.Bound(classC)), T(0)
	if t.set.loss == SquaredHinge {
		soft = T(1 / (2 * classC))
	}
	z := y * t.score(i)
	old := T(t.a[i])
	g := z - 1 + T(old*soft)
	c, u := T(t.set.loss.kernelC(classC)), max(1-z, 0)
	if t.set.loss == SquaredHinge {
		t.estimate += float64(T(T(c*T(u*u))+T(old*(z-1))) + T(old*T(T(old*soft)*0.5)))
	} else {
		t.estimate += float64(T(c*u) + T(old*(z-1)))
	}
	projected := g
	switch {
	case old == 0:
		if g > t.upper {
			t.active[i] = false
			return
		}
		projected = min(g, 0)
	case old == bound:
		if g < t.lower {
			t.active[i] = false
			return
		}
		projected = max(g, 0)
	}
	t.top, t.bottom = max(t.top, projected), min(t.bottom, projected)
	if projected == 0 {
		return
	}
	step := T(1 / float32(t.norm[i]))
	if t.set.loss == SquaredHinge {
		step = 1 / (T(float32(t.norm[i]/relaxation)) + soft)
	}
	if now := min(max(old-T(g*step), 0), bound); now != old {
		t.a[i] = float64(now)
		t.move(i, y*(now-old))
	}
}

func (t *twin[T]) score(i int) T {
	if t.wide {
		var s [16]T
		for f, x := range t.p.dense(i, t.set.bias) {
			s[f%16] += T(T(x) * t.w[f])
		}
		for half := 8; half > 0; half /= 2 {
			for j := range half {
				s[j] += s[j+half]
			}
		}
		return s[0]
	}
	s := [parts]T{T(T(t.set.bias) * t.w[len(t.w)-1])}
	for j, f := range t.p.index[i] {
		s[j%parts] += T(T(t.p.value[i][j]) * t.w[f])
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func (t *twin[T]) move(i int, delta T) {
	t.w[len(t.w)-1] += T(T(t.set.bias) * delta)
	for j, f := range t.p.index[i] {
		t.w[f] += T(T(t.p.value[i][j]) * delta)
	}
}

// descendTwins runs the twins of a block side by side: they share nothing but the order,
// which holds the rows that any of them still looks at.
func descendTwins[T real](twins []*twin[T], o Options, dense bool) {
	var order []uint32
	collect := func() {
		kept := order[:0]
		for _, i := range order {
			for _, t := range twins {
				if t.active[i] {
					kept = append(kept, i)
					break
				}
			}
		}
		order = kept
	}
	for i := range twins[0].a {
		order = append(order, uint32(i))
	}
	collect()
	for _, t := range twins {
		t.start()
	}
	for epoch := range max(o.Epochs, o.MaxEpochs) {
		if epoch >= tileEpochs && dense {
			looks := 0
			for _, i := range order {
				for _, t := range twins {
					if t.active[i] && !t.done {
						looks++
					}
				}
			}
			if looks < crowdedLanes*len(order) {
				finishDense(twins, order, epoch, o)
				return
			}
		}
		Shuffle(order, o.Seed, uint64(epoch))
		running := false
		for _, t := range twins {
			if t.done {
				continue
			}
			t.epoch(order)
			t.done = epoch+1 >= o.Epochs && t.estimate <= o.InnerGap
			running = running || !t.done
		}
		if !running {
			return
		}
		collect()
	}
}

// finishDense goes on in groups of lanes, each over its own rows in one order.
func finishDense[T real](twins []*twin[T], order []uint32, epoch int, o Options) {
	type visit struct{ row, lane int }
	for first := 0; first < len(twins); first += laneGroup {
		group := twins[first:min(first+laneGroup, len(twins))]
		var visits []visit
		for _, i := range order {
			for l, t := range group {
				if t.active[i] && !t.done {
					visits = append(visits, visit{int(i), l})
				}
			}
		}
		for at := epoch; at < max(o.Epochs, o.MaxEpochs); at++ {
			turn := make([]uint32, len(visits))
			for k := range turn {
				turn[k] = uint32(k)
			}
			if at > epoch { // what is left, in the order of the last epoch
				turn = turn[:0]
				for k, v := range visits {
					if t := group[v.lane]; t.active[v.row] && !t.done {
						turn = append(turn, uint32(k))
					}
				}
			}
			least := first
			for l, t := range slices.Backward(group) {
				if !t.done {
					least = first + l
				}
			}
			Shuffle(turn, o.Seed, uint64(at)<<4+uint64(least))
			sorted := make([]visit, len(turn))
			for k, v := range turn {
				sorted[k] = visits[v]
			}
			visits = sorted
			lanes := make([][]uint32, len(group))
			for _, v := range visits {
				lanes[v.lane] = append(lanes[v.lane], uint32(v.row))
			}
			for l, t := range group {
				if t.done {
					continue
				}
				t.wide = true
				t.epoch(lanes[l]) // lanes share nothing but the order
				t.wide = false
				t.done = at+1 >= o.Epochs && t.estimate <= o.InnerGap
			}
		}
	}
}

// TestTwins feeds blocks and their twins the same orders, over several warm-started
// solves with and without pricing: equal bits in every dual.
func TestTwins(t *testing.T) {
	shrunk := 0
	for n, set := range settings {
		for _, lanes := range []int{1, 3, 8, 9, 16} {
			for _, sh := range []shape{
				{rows: 70, cols: 14, lanes: lanes}, {rows: 70, cols: 14, lanes: lanes, whole: true},
				{rows: 70, cols: 14, lanes: lanes, dense: true}, {rows: 70, cols: 33, lanes: lanes, dense: true, whole: true},
			} {
				t.Run(fmt.Sprintf("%v %+v", set, sh), func(t *testing.T) {
					p := generate(uint64(100*n+lanes), sh)
					shrunk += compareTwins[float32](t, p, set, false)
					shrunk += compareTwins[float64](t, p, set, true)
				})
			}
		}
	}
	if shrunk < 1000 {
		t.Errorf("only %d rows were ever shrunk away: the test sees too little", shrunk)
	}
}

// compareTwins returns how many rows the twins shrank away.
func compareTwins[T real](t *testing.T, p *problem, set setting, precise bool) (shrunk int) {
	s := set.solver(p.x)
	set.weigh(p.block)
	solver := s.NewSolver()
	twins := make([]*twin[T], len(p.block.Slot))
	for l := range twins {
		twins[l] = newTwin[T](p, set, l)
	}
	var warm *State
	for k, o := range []Options{
		{Epochs: 1},
		{Epochs: 2, MaxEpochs: 9, InnerGap: 1e-3, Price: true, Band: 0.02},
		{Epochs: 3, MaxEpochs: 3},
		{Epochs: 1, MaxEpochs: 30, InnerGap: 1e-4},
		{Epochs: 12, Price: true, Band: 0.3},
		{Epochs: 12},
	} {
		o.Seed, o.Precise = uint64(k)*7919, precise
		for l, tw := range twins {
			switch {
			case warm == nil || !warm.Priced:
				for i := range tw.active {
					tw.active[i] = tw.norm[i] > 0
				}
			default:
				tw.active = visited(warm, len(p.index), l)
			}
		}
		before := activeRows(twins)
		descendTwins(twins, o, s.Loss == Hinge && s.denseRows())
		shrunk += before - activeRows(twins)
		r, err := solver.Solve(context.Background(), p.block, warm, o)
		if err != nil {
			t.Fatal(err)
		}
		warm = &r.State
		for l, tw := range twins {
			got := duals(warm, len(p.index), l)
			for i := range got {
				if got[i] != tw.a[i] {
					t.Fatalf("solve %d lane %d row %d: dual %g, the twin's is %g", k, l, i, got[i], tw.a[i])
				}
			}
		}
	}
	return shrunk
}

func activeRows[T real](twins []*twin[T]) (n int) {
	for _, t := range twins {
		for _, on := range t.active {
			if on {
				n++
			}
		}
	}
	return n
}
