package taxonomy

import (
	"errors"
	"fmt"
	"strconv"
)

// Prune says whether leaves without a positive training instance are removed.
type Prune uint8

const (
	// PruneEmpty removes such leaves, and then the internal nodes without a terminal below.
	PruneEmpty Prune = iota
	PruneNone        // keeps them; they have negative instances only
)

// ParsePrune parses the option's value: "empty" or "none". "" stands for "empty".
func ParsePrune(s string) (Prune, error) {
	switch s {
	case "", "empty":
		return PruneEmpty, nil
	case "none":
		return PruneNone, nil
	}
	return 0, fmt.Errorf("prune %s: use empty or none", strconv.Quote(s))
}

// Build turns a structure into the training tree, in these steps. A leaf is spawned under each
// internal node whose label has positives. Leaves without positives are pruned, then internal nodes
// without terminals (an internal node whose label has positives keeps its spawned leaf). If several
// roots remain, a virtual root joins them. Labels outside the structure become further roots, after
// the others, and are counted in a warning. A nil s gives a flat tree without a virtual root, in
// which every label is a terminal, in label order.
//
// counts[l] is the number of positive training instances of labels[l]. A structure in which a node
// has two parents is an error: see FirstParent. Build takes O(nodes + edges) time and does not
// recurse.
func Build(s *Structure, labels []string, counts []int, prune Prune) (*Tree, []string, error) {
	if len(labels) != len(counts) {
		return nil, nil, fmt.Errorf("%d labels with %d counts", len(labels), len(counts))
	}
	if len(labels) > maxNodes {
		return nil, nil, fmt.Errorf("%d labels: at most %d are possible", len(labels), maxNodes)
	}
	if !anyPositive(counts) {
		return nil, nil, errors.New("no instance has a label: there is nothing to learn from")
	}
	g := grower{labels: labels, counts: counts, keepEmpty: prune == PruneNone, tree: &Tree{}}
	if s == nil {
		for l := range labels {
			g.loneLabel(int32(l), -1)
		}
		return g.tree, nil, nil
	}
	if err := g.open(s); err != nil {
		return nil, nil, err
	}
	g.prune()
	g.grow()
	return g.tree, g.warnings(), nil
}

func anyPositive(counts []int) bool {
	for _, c := range counts {
		if c > 0 {
			return true
		}
	}
	return false
}

// grower builds the training tree from a structure.
type grower struct {
	labels    []string
	counts    []int
	keepEmpty bool
	tree      *Tree

	s       *Structure
	kids    Lists
	roots   []int32 // roots of the structure, by first appearance
	order   []int32 // parents before children
	label   []int32 // label of each node of the structure, -1 if it has none
	keep    []bool  // whether pruning keeps the node of the structure
	outside []int32 // labels that are not in the structure
}

// open checks the structure and finds the labels, the roots and an order of the nodes.
func (g *grower) open(s *Structure) error {
	index, err := s.index()
	if err != nil {
		return err
	}
	g.s, g.kids = s, s.childLists()
	parent := make([]int32, len(s.Names))
	for i := range parent {
		parent[i] = -1
	}
	for e, c := range s.Children {
		p := int32(s.Parents[e])
		switch {
		case parent[c] == p:
			return fmt.Errorf("edge from %s to %s occurs twice in the structure", strconv.Quote(s.Names[p]),
				strconv.Quote(s.Names[c]))
		case parent[c] >= 0:
			return fmt.Errorf("the structure is not a tree: %s has two parents, %s and %s (‹dag=first-parent› "+
				"keeps the first of them)",
				strconv.Quote(s.Names[c]), strconv.Quote(s.Names[parent[c]]), strconv.Quote(s.Names[p]))
		}
		parent[c] = p
	}
	for n, p := range parent {
		if p < 0 {
			g.roots = append(g.roots, int32(n))
		}
	}
	g.order = append(make([]int32, 0, len(parent)), g.roots...)
	for head := 0; head < len(g.order); head++ {
		g.order = append(g.order, g.kids.Of(g.order[head])...)
	}
	if len(g.order) < len(parent) {
		return errors.New(s.describeCycle(s.cycle()))
	}
	g.matchLabels(index)
	return nil
}

// matchLabels finds the node of each label.
func (g *grower) matchLabels(index map[string]int32) {
	g.label = make([]int32, len(g.s.Names))
	for n := range g.label {
		g.label[n] = -1
	}
	for l, name := range g.labels {
		if n, ok := index[name]; ok {
			g.label[n] = int32(l)
		} else if g.counts[l] > 0 || g.keepEmpty {
			g.outside = append(g.outside, int32(l))
		}
	}
}

// positive reports whether node n of the structure has a label with positives.
func (g *grower) positive(n int32) bool { return g.label[n] >= 0 && g.counts[g.label[n]] > 0 }

// prune decides which nodes are kept. A node whose label has positives is always kept: a leaf for
// itself, an internal node for the leaf that is spawned under it.
func (g *grower) prune() {
	g.keep = make([]bool, len(g.s.Names))
	for i := len(g.order) - 1; i >= 0; i-- {
		n := g.order[i]
		kids := g.kids.Of(n)
		keep := g.positive(n) || (g.keepEmpty && len(kids) == 0)
		for _, c := range kids {
			keep = keep || g.keep[c]
		}
		g.keep[n] = keep
	}
}

// grow numbers the kept nodes in depth-first preorder.
func (g *grower) grow() {
	type visit struct{ node, parent int32 }
	var stack []visit
	top := int32(-1)
	roots := g.kept(g.roots)
	if len(roots)+len(g.outside) > 1 {
		top = g.add("", Virtual, -1, -1, false)
	}
	push := func(nodes []int32, parent int32) {
		for i := len(nodes) - 1; i >= 0; i-- {
			if g.keep[nodes[i]] {
				stack = append(stack, visit{nodes[i], parent})
			}
		}
	}
	for push(roots, top); len(stack) > 0; {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		kids, label := g.kids.Of(v.node), g.label[v.node]
		at := g.add(g.s.Names[v.node], Node, v.parent, label, len(kids) == 0)
		if len(kids) > 0 && g.positive(v.node) {
			g.add(g.labels[label], Spawned, at, label, true)
		}
		push(kids, at)
	}
	for _, l := range g.outside {
		g.loneLabel(l, top)
	}
}

// kept returns those of the nodes that pruning keeps.
func (g *grower) kept(nodes []int32) []int32 {
	var stay []int32
	for _, n := range nodes {
		if g.keep[n] {
			stay = append(stay, n)
		}
	}
	return stay
}

// loneLabel adds a label that is not in the structure.
func (g *grower) loneLabel(l, parent int32) {
	if g.counts[l] > 0 || g.keepEmpty {
		g.add(g.labels[l], Node, parent, l, true)
	}
}

// add appends a node and returns its number.
func (g *grower) add(name string, kind Kind, parent, label int32, leaf bool) int32 {
	t, depth := g.tree, int32(0)
	if parent >= 0 {
		depth = t.Depth[parent] + 1
	}
	t.Parent = append(t.Parent, parent)
	t.Kind = append(t.Kind, kind)
	t.Name = append(t.Name, name)
	t.Label = append(t.Label, label)
	t.Depth = append(t.Depth, depth)
	t.Leaf = append(t.Leaf, leaf)
	return int32(len(t.Parent) - 1)
}

// warnings reports the labels outside the structure.
func (g *grower) warnings() []string {
	if len(g.outside) == 0 {
		return nil
	}
	names := make([]string, len(g.outside))
	for i, l := range g.outside {
		names[i] = g.labels[l]
	}
	return []string{fmt.Sprintf("labels that are not in the structure, joined under a virtual root: %d (%s)", len(names),
		quoteSome(names))}
}
