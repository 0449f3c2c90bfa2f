package taxonomy

// Shape has the counts of a structure.
type Shape struct {
	Nodes        int `json:"nodes"`
	Edges        int `json:"edges"`
	Roots        int `json:"roots"`         // nodes without a parent
	Leaves       int `json:"leaves"`        // nodes without a child
	MultiParent  int `json:"multi_parent"`  // nodes with more than one parent
	SingleChild  int `json:"single_child"`  // nodes with exactly one child
	MaxChildren  int `json:"max_children"`  //
	Depth        int `json:"depth"`         // edges of the longest path from a root
	LabelsInside int `json:"labels_inside"` // labels that are internal nodes
	LabelsLeaves int `json:"labels_leaves"` // labels that are not in the structure
	LabelsAbsent int `json:"labels_absent"` // labels that are no nodes
}

// Shape counts. labels are those of the data, and may be nil. The structure must pass Check.
// O(nodes + edges).
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
