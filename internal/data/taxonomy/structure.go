package taxonomy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"taxon/internal/data/textio"
	"taxon/internal/fs"
)

// Structure is a class hierarchy as the user gave it: a tree, a forest or a DAG. The zero value has
// no nodes. A Structure must not be changed once it is in use.
type Structure struct {
	Names    []string // names in order of first appearance, without repeats
	Parents  []uint32 // index into Names, edge by edge in file order
	Children []uint32 // aligned with Parents
}

// IsDAG reports whether some node has more than one parent.
func (s *Structure) IsDAG() bool {
	seen := make([]bool, len(s.Names))
	for _, c := range s.Children {
		if seen[c] {
			return true
		}
		seen[c] = true
	}
	return false
}

// IsReversed reports whether some node has several parents but none has several children. This is
// what a tree looks like if its edges are written CHILD PARENT; no real class hierarchy looks like
// it.
func (s *Structure) IsReversed() bool {
	seen := make([]bool, len(s.Names))
	for _, p := range s.Parents {
		if seen[p] {
			return false
		}
		seen[p] = true
	}
	return s.IsDAG()
}

// FirstParent returns the tree or forest that keeps the first parent of each node, in file order.
// All names are kept; a name without edges becomes a root.
func (s *Structure) FirstParent() *Structure {
	t := &Structure{Names: s.Names}
	seen := make([]bool, len(s.Names))
	for e, c := range s.Children {
		if seen[c] {
			continue
		}
		seen[c] = true
		t.Parents = append(t.Parents, s.Parents[e])
		t.Children = append(t.Children, c)
	}
	return t
}

// Check returns an error if the structure is invalid: lists of different lengths, an index out of
// range, an empty or repeated name, a self-loop, or a cycle. Structures returned by Read are valid.
func (s *Structure) Check() error {
	_, err := s.index()
	if err != nil {
		return err
	}
	if cycle := s.cycle(); cycle != nil {
		return errors.New(s.describeCycle(cycle))
	}
	return nil
}

// CheckLabels returns an error if the structure, which was read from source, contains none of the
// labels, because then it belongs to other data or spells the names differently. A nil structure,
// or an empty list of labels, is accepted. CheckLabels takes O(names + labels) time.
func (s *Structure) CheckLabels(source string, labels []string) error {
	if s == nil || len(labels) == 0 {
		return nil
	}
	own := make(map[string]bool, len(s.Names))
	for _, name := range s.Names {
		own[name] = true
	}
	if slices.ContainsFunc(labels, func(l string) bool { return own[l] }) {
		return nil
	}
	return fs.Inputf(source, 0, "no label of the data is in it: they are %s, its names %s; is it of other data, or are "+
		"the names written otherwise?", quoteSome(labels), quoteSome(s.Names))
}

// index checks everything except cycles, and returns the node of each name.
func (s *Structure) index() (map[string]int32, error) {
	n := len(s.Names)
	if n > maxNodes {
		return nil, fmt.Errorf("structure of %d nodes: at most %d are possible", n, maxNodes)
	}
	if len(s.Parents) != len(s.Children) {
		return nil, fmt.Errorf("structure with %d parents but %d children in its edges", len(s.Parents), len(s.Children))
	}
	if len(s.Parents) > math.MaxInt32 {
		return nil, fmt.Errorf("structure of %d edges: at most %d are possible", len(s.Parents), math.MaxInt32)
	}
	index := make(map[string]int32, n)
	for i, name := range s.Names {
		if name == "" {
			return nil, fmt.Errorf("node %d of the structure has no name", i)
		}
		if _, twice := index[name]; twice {
			return nil, fmt.Errorf("two nodes of the structure are named %s", strconv.Quote(name))
		}
		index[name] = int32(i)
	}
	for e, p := range s.Parents {
		c := s.Children[e]
		if int64(p) >= int64(n) || int64(c) >= int64(n) {
			return nil, fmt.Errorf("edge %d of the structure names a node beyond its %d nodes", e, n)
		}
		if p == c {
			return nil, fmt.Errorf("node %s is its own parent", strconv.Quote(s.Names[p]))
		}
	}
	return index, nil
}

// cycle returns the edges of one cycle, where each edge's child is the next edge's parent. It
// returns nil if there is no cycle.
func (s *Structure) cycle() []int {
	waiting := make([]int32, len(s.Names)) // number of parents that have not been removed
	for _, c := range s.Children {
		waiting[c]++
	}
	queue := make([]int32, 0, len(s.Names))
	for n, w := range waiting {
		if w == 0 {
			queue = append(queue, int32(n))
		}
	}
	kids := s.childLists()
	for head := 0; head < len(queue); head++ {
		for _, c := range kids.Of(queue[head]) {
			if waiting[c]--; waiting[c] == 0 {
				queue = append(queue, c)
			}
		}
	}
	if len(queue) == len(s.Names) {
		return nil
	}
	return s.walkUp(waiting)
}

// walkUp finds a cycle among the nodes that still wait for a parent. Each of them has a parent that
// waits too, so a walk towards the roots must repeat a node.
func (s *Structure) walkUp(waiting []int32) []int {
	up := make([]int, len(s.Names)) // index of the edge to the first waiting parent, plus one
	start := -1
	for e := len(s.Parents) - 1; e >= 0; e-- {
		if p, c := s.Parents[e], s.Children[e]; waiting[p] > 0 && waiting[c] > 0 {
			up[c] = e + 1
			start = int(c)
		}
	}
	seen := make([]bool, len(s.Names))
	at := uint32(start)
	for !seen[at] {
		seen[at] = true
		at = s.Parents[up[at]-1]
	}
	var edges []int
	for n := at; ; {
		e := up[n] - 1
		edges = append(edges, e)
		if n = s.Parents[e]; n == at {
			break
		}
	}
	slices.Reverse(edges)
	first := slices.Index(edges, slices.Min(edges)) // begin with the edge that comes first in the file
	return slices.Concat(edges[first:], edges[:first])
}

// namesShown bounds the number of names that an error or a warning lists.
const namesShown = 10

// describeCycle describes a cycle in the form "cycle: a -> b -> a (...)".
func (s *Structure) describeCycle(edges []int) string {
	var b strings.Builder
	b.WriteString("cycle: ")
	b.WriteString(s.Names[s.Parents[edges[0]]])
	for i, e := range edges {
		if i == namesShown && len(edges) > namesShown+1 {
			fmt.Fprintf(&b, " -> ... (%d nodes in all) -> %s", len(edges), s.Names[s.Children[edges[len(edges)-1]]])
			break
		}
		b.WriteString(" -> " + s.Names[s.Children[e]])
	}
	b.WriteString(": a class cannot be above itself; remove one of these edges")
	return b.String()
}

// Lists holds a list of nodes for each node, all in one slice.
type Lists struct {
	Begin []int32 // one entry per node and a last one
	Node  []int32 // list of node n: Node[Begin[n]:Begin[n+1]]
}

// Of returns the list of node n. It must not be changed.
func (l Lists) Of(n int32) []int32 { return l.Node[l.Begin[n]:l.Begin[n+1]] }

// childLists lists the children of each node, in file order.
func (s *Structure) childLists() Lists { return group(len(s.Names), s.Parents, s.Children) }

// parentLists lists the parents of each node, in file order.
func (s *Structure) parentLists() Lists { return group(len(s.Names), s.Children, s.Parents) }

// group collects values by key, in the given order (a stable counting sort).
func group(n int, keys, values []uint32) Lists {
	l := Lists{Begin: make([]int32, n+1), Node: make([]int32, len(keys))}
	for _, k := range keys {
		l.Begin[k+1]++
	}
	for i := range n {
		l.Begin[i+1] += l.Begin[i]
	}
	next := append([]int32(nil), l.Begin[:n]...)
	for i, k := range keys {
		l.Node[next[k]] = int32(values[i])
		next[k]++
	}
	return l
}

// quoteSome lists the first names, quoted, and the number of the rest.
func quoteSome(names []string) string {
	shown := min(len(names), namesShown/2)
	quoted := make([]string, shown)
	for i := range quoted {
		quoted[i] = strconv.Quote(names[i])
	}
	list := strings.Join(quoted, ", ")
	if rest := len(names) - shown; rest > 0 {
		list += fmt.Sprintf(" and %d more", rest)
	}
	return list
}

// mostNames bounds the bytes of the class names of paths, in addition to a multiple of the labels'
// size.
const mostNames = 64 << 20

// OfPaths derives the hierarchy from labels that are paths. A node's name is its path from the top,
// with the parts joined by the separator. Nodes are in the order in which labels first mention
// them.
func OfPaths(labels []string, separator string) (*Structure, error) {
	s := &Structure{}
	node := map[string]uint32{}
	var put func(name string) uint32
	put = func(name string) uint32 {
		if n, ok := node[name]; ok {
			return n
		}
		parent, inner := uint32(0), strings.LastIndex(name, separator)
		if inner > 0 {
			parent = put(name[:inner])
		}
		n := uint32(len(s.Names))
		s.Names, node[name] = append(s.Names, name), n
		if inner > 0 {
			s.Parents, s.Children = append(s.Parents, parent), append(s.Children, n)
		}
		return n
	}
	given, all := 0, 0
	for _, label := range labels {
		if n := strings.Count(label, separator) + 1; n > textio.MaxParts {
			return nil, fmt.Errorf("label %s is a path of %d parts: at most %d are possible; is %q the separator "+
				"of paths?", shorten([]byte(label)), n, textio.MaxParts, separator)
		}
		before := len(s.Names)
		put(label)
		for _, name := range s.Names[before:] {
			all += len(name)
		}
		if given += len(label); all > mostNames+16*given {
			return nil, fmt.Errorf("the labels are paths so long that the names of their classes take more than "+
				"%d MiB: is %q the separator of paths?", all>>20, separator)
		}
	}
	if len(s.Parents) == 0 {
		return nil, fmt.Errorf("no label is a path: none of the %d holds %q", len(labels), separator)
	}
	return s, nil
}

// Shape holds the counts of a structure.
type Shape struct {
	Nodes        int `json:"nodes"`
	Edges        int `json:"edges"`
	Roots        int `json:"roots"`         // nodes without a parent
	Leaves       int `json:"leaves"`        // nodes without a child
	MultiParent  int `json:"multi_parent"`  // nodes with more than one parent
	SingleChild  int `json:"single_child"`  // nodes with exactly one child
	MaxChildren  int `json:"max_children"`  // most children of a node
	Depth        int `json:"depth"`         // edges of the longest path from a root
	LabelsInside int `json:"labels_inside"` // labels that are internal nodes
	LabelsLeaves int `json:"labels_leaves"` // labels that are leaves
	LabelsAbsent int `json:"labels_absent"` // labels that the structure does not have
}

// Shape counts the nodes, edges and labels. labels lists the labels of the data and may be nil. The
// structure must pass Check. Shape takes O(nodes + edges) time.
func (s *Structure) Shape(labels []string) Shape {
	n := len(s.Names)
	shape := Shape{Nodes: n, Edges: len(s.Parents)}
	kids, parents := s.childLists(), s.parentLists()
	node := make(map[string]int32, n)
	waiting, depth := make([]int, n), make([]int, n)
	var queue []int32
	for v := range int32(n) {
		node[s.Names[v]] = v
		below, above := len(kids.Of(v)), len(parents.Of(v))
		shape.MaxChildren = max(shape.MaxChildren, below)
		switch {
		case below == 0:
			shape.Leaves++
		case below == 1:
			shape.SingleChild++
		}
		switch {
		case above == 0:
			shape.Roots++
			queue = append(queue, v)
		case above > 1:
			shape.MultiParent++
		}
		waiting[v] = above
	}
	for head := 0; head < len(queue); head++ {
		v := queue[head]
		shape.Depth = max(shape.Depth, depth[v])
		for _, c := range kids.Of(v) {
			depth[c] = max(depth[c], depth[v]+1)
			if waiting[c]--; waiting[c] == 0 {
				queue = append(queue, c)
			}
		}
	}
	for _, l := range labels {
		v, ok := node[l]
		switch {
		case !ok:
			shape.LabelsAbsent++
		case len(kids.Of(v)) == 0:
			shape.LabelsLeaves++
		default:
			shape.LabelsInside++
		}
	}
	return shape
}
