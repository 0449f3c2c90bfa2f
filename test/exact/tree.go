package exact

import "slices"

// Node is a node of the trained tree.
type Node struct {
	// Kind is node, spawned or virtual, as in `export --format text`.
	Kind     string
	Name     string // "-" for a virtual node
	Parent   int    // -1 if the zero vector is the parent
	Terminal bool
}

// Tree builds the trained tree in the order of design section 0: spawn, prune, virtual root. Nodes
// are in depth-first preorder, children as in the file, a spawned leaf first, labels outside the
// structure last.
func (p *Problem) Tree() []Node {
	labels := p.labels()
	if p.Edges == nil {
		var nodes []Node
		for _, l := range labels {
			nodes = append(nodes, Node{"node", l, -1, true})
		}
		return nodes
	}
	var names []string
	children := map[string][]string{}
	isChild := map[string]bool{}
	for _, e := range p.Edges {
		names = append(names, e.Parent, e.Child)
		children[e.Parent] = append(children[e.Parent], e.Child)
		isChild[e.Child] = true
	}
	var kept func(name string) bool
	kept = func(name string) bool {
		return slices.Contains(labels, name) || (len(children[name]) == 0 && p.KeepEmpty) ||
			slices.ContainsFunc(children[name], kept)
	}
	var roots []string
	for _, name := range slices.Concat(names, labels) { // an outside label is a root of its own
		if !isChild[name] && !slices.Contains(roots, name) && kept(name) {
			roots = append(roots, name)
		}
	}
	var nodes []Node
	top := -1
	if len(roots) > 1 {
		nodes, top = append(nodes, Node{"virtual", "-", -1, false}), 0
	}
	var grow func(name string, parent int)
	grow = func(name string, parent int) {
		at := len(nodes)
		nodes = append(nodes, Node{"node", name, parent, len(children[name]) == 0})
		if len(children[name]) > 0 && slices.Contains(labels, name) {
			nodes = append(nodes, Node{"spawned", name, at, true})
		}
		for _, c := range children[name] {
			if kept(c) {
				grow(c, at)
			}
		}
	}
	for _, r := range roots {
		grow(r, top)
	}
	return nodes
}

// signs returns y[n][i] of terminal n and instance i. It is nil for internal nodes.
func (p *Problem) signs(nodes []Node) [][]float64 {
	y := make([][]float64, len(nodes))
	for n, node := range nodes {
		if !node.Terminal {
			continue
		}
		y[n] = make([]float64, len(p.Rows))
		for i, r := range p.Rows {
			y[n][i] = -1
			if slices.Contains(r.Labels, node.Name) {
				y[n][i] = 1
			}
		}
	}
	return y
}
