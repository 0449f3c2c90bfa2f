package exact

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// sure is the bracket's width on which the tests rely. Most brackets end below 1e-10.
const sure = 1e-9

// TestReferenceClosesItsBracket checks that the reference proves its own optimum for all kinds of
// problems, far more precisely than the trainer must.
func TestReferenceClosesItsBracket(t *testing.T) {
	for _, k := range kinds {
		for _, c := range []float64{0.01, 1, 100} {
			for _, squared := range []bool{false, true} {
				p := k.make(rand.New(rand.NewPCG(1, 2)))
				p.C, p.Squared, p.Bias = c, squared, 1
				b := p.Solve(1e-10)
				if !(math.Abs(b.Width()) < sure) {
					t.Errorf("%s, C %v, squared %v: bracket %v .. %v, width %.1e after %d iterations", k.name, c, squared, b.Dual,
						b.Primal, b.Width(), b.Iterations)
				}
			}
		}
	}
}

// TestReferenceKnowsSeries uses a chain, which acts like springs in series: a leaf at depth k below
// zero has the penalty 1/2 w^2/(k+1), so a single row x with y = +1 has its optimum in closed form.
func TestReferenceKnowsSeries(t *testing.T) {
	p := &Problem{Edges: edges("a b", "b c"), C: 0.1, Rows: []Row{{Labels: []string{"c"}, Index: []int{1},
		Value: []float32{1}}}}
	const k = 3 // edges between zero and the leaf
	// hinge: a = min(C, 1/k), P = a - k a^2/2; squared hinge: a (k + 1/2C) = 1, P = a/2
	if got, want := p.Solve(1e-12).Primal, 0.1-k*0.1*0.1/2; math.Abs(got-want) > 1e-11 {
		t.Errorf("hinge: %v, want %v", got, want)
	}
	p.Squared = true
	if got, want := p.Solve(1e-12).Primal, 0.5/(k+5); math.Abs(got-want) > 1e-11 {
		t.Errorf("squared hinge: %v, want %v", got, want)
	}
}

// TestReferenceAgreesWithCoordinateAscent solves the dual by the simplest method, with the dense
// inverse of the Laplacian as the kernel over the terminals.
func TestReferenceAgreesWithCoordinateAscent(t *testing.T) {
	for seed := range uint64(12) {
		p := randomProblem(rand.New(rand.NewPCG(seed, 77)))
		p.C, p.Bias, p.Squared = 0.5, float64(seed%2), seed%3 == 0
		b := p.Solve(1e-10)
		if d := p.Dual(p.ascend(3000)); math.Abs(d-b.Dual) > 1e-8*b.Dual {
			t.Errorf("seed %d: coordinate ascent %v, bracket %v .. %v", seed, d, b.Dual, b.Primal)
		}
	}
}

// ascend runs cyclic dual coordinate ascent. It computes every score anew from W(a).
func (p *Problem) ascend(sweeps int) [][]float64 {
	nodes, x := p.Nodes(), p.Matrix()
	y, inverse := p.signs(nodes), invert(p.laplacian())
	w := zeros(len(nodes), p.Width())
	a := make([][]float64, len(nodes))
	for n := range nodes {
		a[n] = make([]float64, len(y[n]))
	}
	for range sweeps {
		moved := 0.0
		for n := range nodes {
			for i := range a[n] {
				gradient, curvature, upper := 1-y[n][i]*dot(w[n], x[i]), inverse[n][n]*dot(x[i], x[i]), p.C
				if p.Squared {
					gradient, curvature, upper = gradient-a[n][i]/(2*p.C), curvature+1/(2*p.C), math.Inf(1)
				}
				next := upper
				if curvature > 0 {
					next = math.Min(math.Max(a[n][i]+gradient/curvature, 0), upper)
				}
				step := next - a[n][i]
				a[n][i] = next
				moved = math.Max(moved, math.Abs(step))
				for m := range nodes {
					axpy(w[m], step*y[n][i]*inverse[m][n], x[i])
				}
			}
		}
		if moved < 1e-13 {
			break
		}
	}
	return a
}

// TestReferenceTree checks spawning, pruning and the virtual root on the cases of the design.
func TestReferenceTree(t *testing.T) {
	row := func(labels ...string) Row { return Row{Labels: labels, Index: []int{1}, Value: []float32{1}} }
	tests := []struct {
		name  string
		p     Problem
		nodes []Node
	}{
		{"flat", Problem{Rows: []Row{row("b"), row("a")}}, []Node{{"node", "b", -1, true}, {"node", "a", -1, true}}},
		{"one edge, both labelled", Problem{Edges: edges("a b"), Rows: []Row{row("b"), row("a")}},
			[]Node{{"node", "a", -1, false}, {"spawned", "a", 0, true}, {"node", "b", 0, true}}},
		{"labelled internal node whose children are pruned", Problem{Edges: edges("r a", "a b", "r c"),
			Rows: []Row{row("a"), row("c")}},
			[]Node{{"node", "r", -1, false}, {"node", "a", 0, false}, {"spawned", "a", 1, true}, {"node", "c", 0, true}}},
		{"the same, kept", Problem{Edges: edges("r a", "a b", "r c"), KeepEmpty: true, Rows: []Row{row("a"), row("c")}},
			[]Node{{"node", "r", -1, false}, {"node", "a", 0, false}, {"spawned", "a", 1, true}, {"node", "b", 1, true},
				{"node", "c", 0, true}}},
		{"one root is left after pruning", Problem{Edges: edges("r a", "s b"), Rows: []Row{row("b")}},
			[]Node{{"node", "s", -1, false}, {"node", "b", 0, true}}},
		{"a label outside", Problem{Edges: edges("r a"), Rows: []Row{row("o"), row("a")}},
			[]Node{{"virtual", "-", -1, false}, {"node", "r", 0, false}, {"node", "a", 1, true}, {"node", "o", 0, true}}},
	}
	for _, test := range tests {
		if got := test.p.Tree(); !reflect.DeepEqual(got, test.nodes) {
			t.Errorf("%s: %v, want %v", test.name, got, test.nodes)
		}
	}
}
