package reducer

import (
	"math"
	"slices"
	"testing"

	"taxon/internal/linalg/contribution"
)

// chain is a path of n internals with one terminal at each.
func chain(n int) *Forest {
	f := &Forest{}
	for p := range int32(n) {
		f.Parent = append(f.Parent, p-1)
		f.Terminals, f.Children, f.Set = append(f.Terminals, 1), append(f.Children, 1), append(f.Set, p%2)
	}
	f.Children[n-1] = 0
	return f
}

// TestDeepChain: a hundred thousand levels, support at the lowest node alone. The solution
// of the chain is known: every node takes its share of the way to the terminal's pull.
func TestDeepChain(t *testing.T) {
	const n = 100_000
	for _, rule := range moving {
		in := []contribution.Contribution{{Parent: n - 1, Feature: []uint32{3}, Sum: []float64{2}, Curvature: []uint8{1}}}
		task := Task{Forest: chain(n), Lo: 3, Hi: 5, Rule: rule, Certify: true, Damping: 1, Beta: 0.5}
		v, sums := task.Run(in, Zero(n), Zero(n))
		if math.Abs(sums.Dual+n*2) > 1e-6 { // U_p = 2 at every node: -1/2 n 2^2
			t.Errorf("rule %d: dual %g, want %d", rule, sums.Dual, -n*2)
		}
		if rule != Support {
			continue
		}
		// current c flows from the last terminal through n edges to the zero parent, the node
		// there at w: c = w/n and c = 2 - w.
		if len(v.Feature) != n {
			t.Fatalf("%d overrides", len(v.Feature))
		}
		c := 2.0 / (n + 1)
		for _, p := range []int{0, 1, 999, n - 1} {
			if want := c * float64(p+1); math.Abs(float64(v.Value[p])-want) > 1e-6*want {
				t.Errorf("node %d: %g, want %g", p, v.Value[p], want)
			}
		}
	}
}

// TestSingleNode by hand: a root with two terminals, one of them with curvature.
func TestSingleNode(t *testing.T) {
	f := &Forest{Parent: []int32{-1}, Terminals: []int32{2}, Children: []int32{0}, Set: []int32{0}}
	x := &Vectors{Begin: []int64{0, 1}, Feature: []uint32{7}, Value: []float32{3}}
	prev := &Vectors{Begin: []int64{0, 1}, Feature: []uint32{7}, Value: []float32{1}}
	in := []contribution.Contribution{{Parent: 0, Feature: []uint32{7}, Sum: []float64{1}, Curvature: []uint8{1}}}
	for rule, want := range map[Rule]float32{
		Support: (4 + 1) / 2.0,     // y = 4: (1 + 1) w = 4 + 1
		Family:  (8 + 1) / 3.0,     // (1 + 2) w = 2 * 4 + 1
		Full:    (8 + 1) / 3.0,     //
		Mean:    (2*3 + 1) / 3.0,   // terminals at x + v
		Jacobi:  3 + 0.5*(3.0/3-3), // mean (2 * 1 + 1) / 3, half of the way
		Emit:    4,
	} {
		task := Task{Forest: f, Lo: 7, Hi: 8, Rule: rule, Damping: 0.5, Beta: 0.5}
		v, _ := task.Run(append([]contribution.Contribution(nil), in...), x, prev)
		if len(v.Value) != 1 || v.Feature[0] != 7 || math.Abs(float64(v.Value[0]-want)) > 1e-6 {
			t.Errorf("rule %d: %+v, want %g", rule, v, want)
		}
	}
}

// TestNothing: no nodes, no features, nothing contributed.
func TestNothing(t *testing.T) {
	for _, rule := range moving {
		for _, f := range []*Forest{{}, chain(3)} {
			n := len(f.Parent)
			v, sums := Task{Forest: f, Lo: 2, Hi: 6, Rule: rule, Certify: true, Damping: 1}.Run(nil, Zero(n), Zero(n))
			if len(v.Begin) != n+1 || len(v.Feature) != 0 || sums != (Sums{}) {
				t.Errorf("rule %d, %d nodes: %+v %+v", rule, n, v, sums)
			}
			v, _ = Task{Forest: f, Lo: 2, Hi: 2, Rule: rule, Damping: 1}.Run(nil, Zero(n), Zero(n))
			if len(v.Begin) != n+1 {
				t.Errorf("rule %d, empty range: %+v", rule, v)
			}
		}
	}
}

// TestToZero: whatever the internals were, and whatever is contributed.
func TestToZero(t *testing.T) {
	s := randomSystem(3, 12, 20)
	v, sums := s.run(ToZero, 0, 20, false)
	if len(v.Begin) != 13 || len(v.Feature) != 0 || sums != (Sums{}) {
		t.Errorf("%+v %+v", v, sums)
	}
	task := Task{Forest: s.forest, Hi: 20, Rule: ToZero}
	x := overrides(s.forest, s.x, 0, 20).Grid(s.forest.Parent, 0, 20)
	grid, _ := new(Scratch).RunDense(task, nil, x, x)
	for p := range 12 {
		if slices.ContainsFunc(grid.Row(p), func(w float32) bool { return w != 0 }) {
			t.Errorf("node %d: %v", p, grid.Row(p))
		}
	}
}

func TestParseRule(t *testing.T) {
	for name, want := range map[string]Rule{"support": Support, "family": Family, "full": Full, "mean": Mean,
		"jacobi": Jacobi, "none": None, "emit": Emit, "zero": ToZero} {
		if got, err := ParseRule(name); err != nil || got != want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	if _, err := ParseRule("median"); err == nil || err.Error() != `unknown reduce rule "median"` {
		t.Errorf("median: %v", err)
	}
}

// TestExtrapolate: one rounding of the product, one of the sum, and x itself at beta 0.
func TestExtrapolate(t *testing.T) {
	for _, c := range []struct{ x, prev, beta float32 }{{1, 0.3, 0.7}, {-2, 5, 0.1}, {1e-20, 1, 0.999}} {
		if got, want := Extrapolate(c.x, c.prev, c.beta), c.x+float32(c.beta*float32(c.x-c.prev)); got != want {
			t.Errorf("%+v: %g, want %g", c, got, want)
		}
	}
	if got := Extrapolate(0.1, float32(math.Inf(1)), 0); got != 0.1 {
		t.Errorf("beta 0: %g", got)
	}
}
