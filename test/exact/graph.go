package exact

import "slices"

// Graph builds the trained graph of design section 1: every node of the structure, in order of
// appearance; labels outside it; a dummy between adjacent terminals, in the order of the edges. It
// returns the nodes and the edges between them.
func (p *Problem) Graph() (nodes []Node, joined [][2]int) {
	labels := p.labels()
	at := map[string]int{}
	add := func(kind, name string, terminal bool) {
		if kind == "node" {
			at[name] = len(nodes)
		}
		nodes = append(nodes, Node{kind, name, -1, terminal})
	}
	for _, e := range p.Edges {
		for _, name := range []string{e.Parent, e.Child} {
			if _, known := at[name]; !known {
				add("node", name, slices.Contains(labels, name))
			}
		}
	}
	for _, l := range labels {
		if _, known := at[l]; !known {
			add("node", l, true)
		}
	}
	seen := map[[2]int]bool{}
	for _, e := range p.Edges {
		a, b := min(at[e.Parent], at[e.Child]), max(at[e.Parent], at[e.Child])
		if a == b || seen[[2]int{a, b}] {
			continue
		}
		seen[[2]int{a, b}] = true
		if !nodes[a].Terminal || !nodes[b].Terminal {
			joined = append(joined, [2]int{a, b})
			continue
		}
		joined = append(joined, [2]int{a, len(nodes)}, [2]int{b, len(nodes)})
		add("dummy", nodes[a].Name+","+nodes[b].Name, false)
	}
	return nodes, joined
}

// graphLaplacian adds the anchor at nodes with edges. A node without edges is tied to zero.
func (p *Problem) graphLaplacian() [][]float64 {
	nodes, joined := p.Graph()
	l := zeros(len(nodes), len(nodes))
	for _, e := range joined {
		weight := 1.0
		if !nodes[e[0]].Terminal && !nodes[e[1]].Terminal {
			weight = p.inner()
		}
		for k := range 2 {
			l[e[k]][e[k]] += weight
			l[e[k]][e[1-k]] -= weight
		}
	}
	for n := range nodes {
		if l[n][n] == 0 {
			l[n][n] = 1
		} else {
			l[n][n] += p.Anchor
		}
	}
	return l
}
