package exact

import (
	"fmt"
	"math/rand/v2"
)

// graphKinds lists the unusual kinds of graphs.
var graphKinds = []kind{
	{"a cycle of terminals and internals", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("a p", "p b", "b q", "q c", "c s", "s a")}
		p.Rows = draw(r, 15, 5, "a", "b", "c")
		return p
	}},
	{"terminals only: every edge has a dummy", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("a b", "b c", "c d", "d a", "a c")}
		p.Rows = draw(r, 16, 6, "a", "b", "c", "d")
		return p
	}},
	{"isolated terminals and a dead component", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("a p", "b p", "p q", "dead1 dead2", "dead2 dead3", "lone lone")}
		p.Rows = draw(r, 18, 6, "a", "b", "lone", "outside")
		return p
	}},
	{"only isolated terminals", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("x y", "a a")} // the self-loop is dropped, and a is a node
		p.Rows = draw(r, 12, 4, "a", "b", "c")
		return p
	}},
	{"repeated edges, both ways, and loops", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("a p", "p a", "a p", "p p", "b p", "b a", "a b", "q p")}
		p.Rows = draw(r, 12, 5, "a", "b")
		return p
	}},
	{"a hub of many terminals", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("hub top", "top side")}
		var names []string
		for l := range 19 {
			names = append(names, fmt.Sprint("t", l))
			p.Edges = append(p.Edges, Edge{"hub", names[l]})
		}
		p.Edges = append(p.Edges, edges("t0 side", "t1 side", "t1 top", "t2 t3")...)
		p.Rows = draw(r, 40, 6, names...)
		return p
	}},
	{"a grid", func(r *rand.Rand) *Problem {
		p := &Problem{}
		var names []string
		at := func(i, j int) string { return fmt.Sprintf("n%d-%d", i, j) }
		for i := range 4 {
			for j := range 4 {
				if i > 0 {
					p.Edges = append(p.Edges, Edge{at(i-1, j), at(i, j)})
				}
				if j > 0 {
					p.Edges = append(p.Edges, Edge{at(i, j-1), at(i, j)})
				}
				if (i*3+j)%4 != 1 {
					names = append(names, at(i, j))
				}
			}
		}
		p.Rows = draw(r, 26, 5, names...)
		return p
	}},
	{"a DAG with diamonds", func(r *rand.Rand) *Problem {
		p := &Problem{Directed: true, Edges: edges("root a", "root b", "a x", "b x", "a y", "b z", "x x1", "x x2", "y x2",
			"z x2", "root x2")}
		p.Rows = draw(r, 20, 6, "x", "x1", "x2", "y", "z")
		return p
	}},
	{"a long path", func(r *rand.Rand) *Problem {
		p := &Problem{}
		for d := range 12 {
			p.Edges = append(p.Edges, Edge{fmt.Sprint("c", d), fmt.Sprint("c", d+1)})
		}
		p.Rows = draw(r, 14, 5, "c0", "c6", "c12")
		return p
	}},
	{"zero rows, multi-label", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("a p", "b p", "b q", "c q", "q p")}
		p.Rows = append(draw(r, 14, 5, "a", "b", "c"), Row{Labels: []string{"a"}}, Row{Labels: []string{"b", "c"}})
		p.Rows[3].Labels = []string{"a", "c"}
		p.Rows[4].Labels = nil
		return p
	}},
	{"factor that fills in", wellConnected},
	{"random graph", randomGraph},
}

func init() {
	for k := range graphKinds {
		make := graphKinds[k].make
		graphKinds[k].make = func(r *rand.Rand) *Problem {
			p := make(r)
			p.IsGraph = true
			p.Anchor = []float64{0.01, 0.01, 0.3, 2}[r.IntN(4)]
			return p
		}
	}
}

// wellConnected has so many edges between internal nodes that its equations are solved by conjugate
// gradients.
func wellConnected(r *rand.Rand) *Problem {
	const internals = 70
	p := &Problem{}
	name := func(n int) string { return fmt.Sprint("n", n) }
	for n := 1; n < internals; n++ {
		for range 4 {
			p.Edges = append(p.Edges, Edge{name(r.IntN(n)), name(n)})
		}
	}
	labels := []string{"a", "b", "c", "d"}
	for _, l := range labels {
		for range 3 {
			p.Edges = append(p.Edges, Edge{name(r.IntN(internals)), l})
		}
	}
	p.Rows = draw(r, 16, 4, labels...)
	return p
}

// randomGraph generates random edges among named nodes, and labels anywhere or outside.
func randomGraph(r *rand.Rand) *Problem {
	p := &Problem{}
	size := 3 + r.IntN(12)
	names := []string{"outside"}
	for n := range size {
		names = append(names, fmt.Sprint("n", n))
	}
	for range 2 + r.IntN(2*size) {
		p.Edges = append(p.Edges, Edge{names[1+r.IntN(size)], names[1+r.IntN(size)]})
	}
	if p.Edges[0].Parent == p.Edges[0].Child {
		p.Edges[0] = Edge{"n0", "n1"}
	}
	r.Shuffle(len(names), func(a, b int) { names[a], names[b] = names[b], names[a] })
	p.Rows = draw(r, 6+r.IntN(16), 2+r.IntN(5), names[:1+r.IntN(min(len(names), 8))]...)
	learnable(p)
	return p
}
