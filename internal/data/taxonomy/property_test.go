package taxonomy

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawStructure generates a forest or, if dag is set, an acyclic graph. Edges go from an earlier
// name of a random permutation to a later one, in random order.
func drawStructure(t *rapid.T, dag bool) *Structure {
	n := rapid.IntRange(2, 25).Draw(t, "nodes")
	type edge struct{ p, c int }
	var all []edge
	for c := 1; c < n; c++ {
		for range rapid.IntRange(0, 3).Draw(t, "parents") {
			all = append(all, edge{rapid.IntRange(0, c-1).Draw(t, "parent"), c})
			if !dag {
				break
			}
		}
	}
	if len(all) == 0 {
		all = append(all, edge{0, 1})
	}
	all = rapid.Permutation(all).Draw(t, "order")
	s := &Structure{}
	node, seen := map[int]uint32{}, map[edge]bool{}
	number := func(v int) uint32 {
		if _, ok := node[v]; !ok {
			node[v] = uint32(len(s.Names))
			s.Names = append(s.Names, fmt.Sprintf("n%d", v))
		}
		return node[v]
	}
	for _, e := range all {
		if !seen[e] {
			seen[e] = true
			s.Parents = append(s.Parents, number(e.p))
			s.Children = append(s.Children, number(e.c))
		}
	}
	return s
}

// drawLabels generates labels inside and outside of s, some without positives and at least one
// with.
func drawLabels(t *rapid.T, s *Structure) ([]string, []int) {
	pool := append(slices.Clone(s.Names), "out1", "out2", "out3")
	pool = rapid.Permutation(pool).Draw(t, "pool")
	labels := pool[:rapid.IntRange(1, len(pool)).Draw(t, "labels")]
	counts := make([]int, len(labels))
	for l := range counts {
		counts[l] = rapid.IntRange(0, 2).Draw(t, "count")
	}
	counts[rapid.IntRange(0, len(labels)-1).Draw(t, "positive")]++
	return labels, counts
}

// ref is a node of the reference tree, built as the definition reads.
type ref struct {
	name     string
	kind     Kind
	label    int32
	leaf     bool
	children []*ref
}

// buildRef builds the same tree as Build by simple recursion.
func buildRef(s *Structure, labels []string, counts []int, prune Prune) *Tree {
	label := func(name string) int32 { return int32(slices.Index(labels, name)) }
	positive := func(l int32) bool { return l >= 0 && counts[l] > 0 }
	var grow func(v int) *ref
	grow = func(v int) *ref { // spawn
		r := &ref{name: s.Names[v], label: label(s.Names[v]), leaf: true}
		for e, p := range s.Parents {
			if int(p) == v {
				r.leaf = false
				r.children = append(r.children, grow(int(s.Children[e])))
			}
		}
		if !r.leaf && positive(r.label) {
			spawned := &ref{name: r.name, kind: Spawned, label: r.label, leaf: true}
			r.children = append([]*ref{spawned}, r.children...)
		}
		return r
	}
	var cut func(r *ref) bool // prunes the subtree; returns false if r itself is removed
	cut = func(r *ref) bool {
		if r.leaf {
			return prune == PruneNone || positive(r.label)
		}
		r.children = slices.DeleteFunc(r.children, func(c *ref) bool { return !cut(c) })
		return len(r.children) > 0
	}
	var roots []*ref
	for v := range s.Names {
		if !slices.Contains(s.Children, uint32(v)) {
			if r := grow(v); cut(r) {
				roots = append(roots, r)
			}
		}
	}
	for l, name := range labels {
		if r := (&ref{name: name, label: int32(l), leaf: true}); !slices.Contains(s.Names, name) && cut(r) {
			roots = append(roots, r)
		}
	}
	if len(roots) > 1 {
		roots = []*ref{{kind: Virtual, label: -1, children: roots}}
	}
	t := &Tree{}
	var number func(r *ref, parent, depth int32)
	number = func(r *ref, parent, depth int32) {
		at := int32(t.Len())
		t.Parent, t.Kind, t.Name = append(t.Parent, parent), append(t.Kind, r.kind), append(t.Name, r.name)
		t.Label, t.Depth, t.Leaf = append(t.Label, r.label), append(t.Depth, depth), append(t.Leaf, r.leaf)
		for _, c := range r.children {
			number(c, at, depth+1)
		}
	}
	number(roots[0], -1, 0)
	return t
}

func TestBuildAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStructure(t, false)
		labels, counts := drawLabels(t, s)
		prune := rapid.SampledFrom([]Prune{PruneEmpty, PruneNone}).Draw(t, "prune")
		got, _, err := Build(s, labels, counts, prune)
		if err != nil {
			t.Fatal(err)
		}
		if want := buildRef(s, labels, counts, prune); draw(got) != draw(want) || !slices.Equal(got.Parent, want.Parent) {
			t.Fatalf("\n got %s\nwant %s", draw(got), draw(want))
		}
		checkTree(t, got, labels, counts)
	})
}

// checkTree checks the invariants of training trees, and their methods against the definitions.
func checkTree(t *rapid.T, tree *Tree, labels []string, counts []int) {
	kids, end, at := tree.Children(), tree.SubtreeEnd(), terminalOf(tree, len(labels))
	for n := range int32(tree.Len()) {
		p := tree.Parent[n]
		if p >= n {
			t.Fatalf("node %d before its parent %d", n, p)
		}
		if p >= 0 && (n >= end[p] || tree.Leaf[p] || !slices.Contains(kids.Of(p), n)) {
			t.Fatalf("node %d is no proper child of %d", n, p)
		}
		if (len(kids.Of(n)) == 0) != tree.Leaf[n] {
			t.Fatalf("node %d: leaf %v with %d children", n, tree.Leaf[n], len(kids.Of(n)))
		}
	}
	for l, c := range counts {
		switch {
		case c > 0 && (at[l] < 0 || tree.Label[at[l]] != int32(l) || tree.Name[at[l]] != labels[l]):
			t.Fatalf("label %s has no terminal of its own", labels[l])
		}
	}
	if len(tree.Terminals())+len(tree.Internals()) != tree.Len() {
		t.Fatal("terminals and internals are not all nodes")
	}
}

// TestSetsAreIndependent checks that no edge lies within one set and that every node is in exactly
// one.
func TestSetsAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStructure(t, false)
		labels, counts := drawLabels(t, s)
		tree, _, err := Build(s, labels, counts, PruneNone)
		if err != nil {
			t.Fatal(err)
		}
		parity := tree.ParitySets()
		for _, sets := range [][][]int32{parity[:], tree.Colours(LargestFirst)} {
			member := make([]int, tree.Len())
			total := 0
			for k, set := range sets {
				if !slices.IsSorted(set) {
					t.Fatal("set out of order")
				}
				for _, n := range set {
					member[n] = k
				}
				total += len(set)
			}
			if total != tree.Len() {
				t.Fatalf("%d nodes in sets, %d in the tree", total, tree.Len())
			}
			for n, p := range tree.Parent {
				if p >= 0 && member[n] == member[p] {
					t.Fatalf("edge %d-%d within set %d", p, n, member[n])
				}
			}
		}
	})
}

func TestColours(t *testing.T) {
	// two hubs three edges apart, joined over x and y: largest-first colours both hubs first, with
	// the same colour, so x and y need two more colours
	s := mustRead(t, "h x\nh a\nh b\nx y\ny g\ng c\ng d\n")
	tree, _, err := Build(s, s.Names, ones(len(s.Names)), PruneNone)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(tree.Colours(LargestFirst)); got != 3 {
		t.Errorf("%d colours, want 3", got)
	}
	// the chain a-b-c-d: if b and c come first, two colours suffice; if the ends come first, three
	// are needed
	s = mustRead(t, "a b\nb c\nc d\n")
	tree, _, err = Build(s, []string{"d"}, []int{1}, PruneEmpty)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(tree.Colours(LargestFirst)); got != 2 {
		t.Errorf("%d colours for a chain, want 2", got)
	}
	flat, _, err := Build(nil, []string{"a", "b"}, []int{1, 1}, PruneEmpty)
	if err != nil {
		t.Fatal(err)
	}
	if got := flat.Colours(LargestFirst); len(got) != 1 || len(got[0]) != 2 {
		t.Errorf("flat: %v", got)
	}
	if flat.MaxDepth() != 0 || len(flat.ParitySets()[1]) != 0 {
		t.Error("flat tree has depth")
	}
}

// TestClosureAgainstReference compares ancestors with brute-force reachability, and distances with
// those computed from the root paths.
func TestClosureAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStructure(t, rapid.Bool().Draw(t, "dag"))
		c, err := NewClosure(s)
		if err != nil {
			t.Fatal(err)
		}
		n := len(s.Names)
		reach := make([][]bool, n) // reach[v][a]: a is v or an ancestor of v
		for v := range reach {
			reach[v] = make([]bool, n)
			reach[v][v] = true
		}
		for range n {
			for e, p := range s.Parents {
				for a := range n {
					if reach[p][a] {
						reach[s.Children[e]][a] = true
					}
				}
			}
		}
		w := c.NewWalker()
		size := 0
		for v := range int32(n) {
			got := w.Ancestors(nil, []int32{v, v})
			for a := range int32(n) {
				if slices.Contains(got, a) != reach[v][a] {
					t.Fatalf("ancestors of %d: %v, want %v", v, got, reach[v])
				}
			}
			if path := w.FirstAncestors(nil, []int32{v}); len(path) != int(c.Depth(v))+1 {
				t.Fatalf("path %v at depth %d", path, c.Depth(v))
			}
			size += c.SubtreeSize(v) // each node is counted once for each of its first ancestors
		}
		want := 0
		for a := range int32(n) {
			want += int(c.Depth(a)) + 1
			for b := range int32(n) {
				if got := c.Distance(a, b); got != pathDistance(w, a, b) {
					t.Fatalf("distance %d-%d is %d, want %d", a, b, got, pathDistance(w, a, b))
				}
			}
		}
		if size != want {
			t.Fatalf("subtree sizes add up to %d, want %d", size, want)
		}
	})
}

// pathDistance counts the nodes that are on only one of the two root paths.
func pathDistance(w *Walker, a, b int32) int {
	pa, pb := w.FirstAncestors(nil, []int32{a}), w.FirstAncestors(nil, []int32{b})
	d := 0
	for _, v := range pa {
		if !slices.Contains(pb, v) {
			d++
		}
	}
	for _, v := range pb {
		if !slices.Contains(pa, v) {
			d++
		}
	}
	return d
}

func TestClosureByHand(t *testing.T) {
	// r - a - c, r - b - c (second parent), c - d; t - u is separate
	s := mustRead(t, "r a\nr b\na c\nb c\nc d\nt u\n")
	c, err := NewClosure(s)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) int32 {
		n, ok := c.Node(name)
		if !ok || c.Name(n) != name {
			t.Fatalf("node %s: %d %v", name, n, ok)
		}
		return n
	}
	if _, ok := c.Node("x"); ok {
		t.Error("found a name outside")
	}
	if c.Roots() != 2 || !c.IsDAG() || c.Depth(at("d")) != 3 || c.Len() != 7 {
		t.Errorf("roots %d, depth %d", c.Roots(), c.Depth(at("d")))
	}
	for _, d := range []struct {
		a, b string
		want int
	}{{"d", "d", 0}, {"d", "a", 2}, {"d", "b", 4}, {"r", "t", 2}, {"d", "u", 6}, {"u", "t", 1}} {
		if got := c.Distance(at(d.a), at(d.b)); got != d.want {
			t.Errorf("distance %s-%s is %d, want %d", d.a, d.b, got, d.want)
		}
	}
	if c.Children(at("b")) != 0 || c.SubtreeSize(at("r")) != 5 || c.SubtreeSize(at("a")) != 3 {
		t.Error("first-parent tree is wrong")
	}
	if got := s.Shape([]string{"d", "c", "q"}); got != (Shape{Nodes: 7, Edges: 6, Roots: 2, Leaves: 2, MultiParent: 1,
		SingleChild: 4, MaxChildren: 2, Depth: 3, LabelsInside: 1, LabelsLeaves: 1, LabelsAbsent: 1}) {
		t.Errorf("shape %+v", got)
	}
	if _, err := NewClosure(&Structure{Names: []string{"a", "b"}, Parents: []uint32{0, 1},
		Children: []uint32{1, 0}}); err == nil {
		t.Error("a cycle went through")
	}
}

// TestWalkerWrapsAround checks that marks of 2^32 rounds ago are ignored.
func TestWalkerWrapsAround(t *testing.T) {
	c, err := NewClosure(mustRead(t, "r a\n"))
	if err != nil {
		t.Fatal(err)
	}
	w := c.NewWalker()
	w.Ancestors(nil, []int32{1})
	w.round = ^uint32(0)
	if got := w.Ancestors(nil, []int32{1}); len(got) != 2 {
		t.Errorf("ancestors %v", got)
	}
}

func TestPruneOption(t *testing.T) {
	for text, want := range map[string]Prune{"": PruneEmpty, "empty": PruneEmpty, "none": PruneNone} {
		got, err := ParsePrune(text)
		if err != nil || got != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	if _, err := ParsePrune("all"); err == nil {
		t.Error("all went through")
	}
}

// terminalOf returns the terminal of each of the data's labels, of which there are `labels`, or -1
// for a label without one. The terminal of a label at an internal node is its spawned leaf.
func terminalOf(t *Tree, labels int) []int32 {
	at := make([]int32, labels)
	for l := range at {
		at[l] = -1
	}
	for n, l := range t.Label {
		if t.Leaf[n] && l >= 0 && int(l) < labels {
			at[l] = int32(n)
		}
	}
	return at
}
