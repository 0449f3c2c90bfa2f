package reducer

import (
	"testing"

	"taxon/internal/linalg/contribution"
)

// A task that is no longer wanted ends before its next feature, on a tree and on a graph.
func TestUnwanted(t *testing.T) {
	graph := &Graph{Edges: [][2]int32{{0, 1}}, Weight: 1, Anchor: 1, Linked: []bool{true, true},
		LeafGroups: []LeafGroup{{Nodes: []int32{1}, Terminals: 1, Pull: 2}}}
	graph.Prepare(2, nil)
	for name, f := range map[string]*Forest{
		"tree": {Parent: []int32{-1, 0}, Terminals: []int32{0, 1}, Children: []int32{1, 0}, Set: []int32{0, 0}, Inner: 1},
		"graph": {Parent: []int32{-1, -1}, Terminals: []int32{0, 0}, Children: []int32{0, 0}, Set: []int32{0, 0},
			Graph: graph},
	} {
		asked := 0
		task := Task{Forest: f, Hi: 50, Rule: Support, Unwanted: func() bool { asked++; return asked == 3 }}
		in := contribution.Contribution{Parent: 1}
		if f.Graph != nil {
			in.Parent = 0
		}
		for i := range uint32(50) {
			in.Feature, in.Sum, in.Curvature = append(in.Feature, i), append(in.Sum, 1), append(in.Curvature, 1)
		}
		_, sums := task.Run([]contribution.Contribution{in}, Zero(2), Zero(2))
		if asked != 3 || sums.Entries == 0 || sums.Entries > 4 {
			t.Errorf("%s: asked %d times, %d entries", name, asked, sums.Entries)
		}
	}
}

// A graph that nobody waits for is not prepared to the end.
func TestPrepareUnwanted(t *testing.T) {
	const nodes = 1000
	g := &Graph{Weight: 1, Anchor: 1, Linked: make([]bool, nodes)}
	for n := range int32(nodes - 1) {
		g.Edges = append(g.Edges, [2]int32{n, n + 1})
	}
	asked := 0
	g.Prepare(nodes, func() bool { asked++; return asked == 10 })
	if asked != 10 {
		t.Errorf("asked %d times", asked)
	}
}
