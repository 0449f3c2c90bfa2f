package taxonomy

// Kind says where a node of the training tree comes from.
type Kind uint8

const (
	Node    Kind = iota // a node of the structure, or a label outside it
	Spawned             // the leaf spawned under a labelled internal node; bears that label
	Virtual             // the virtual root that joins several roots; has no name
	Dummy               // graph: internal node that splits the edge between two terminals; named after both
)

// Tree is the tree, or the graph (BuildGraph), that is trained. Nodes are numbered in depth-first preorder:
// a parent comes before its children, a subtree is an interval, children stand in
// the order of the structure file (a spawned leaf first). All slices have one entry a node.
type Tree struct {
	Parent []int32  // -1: the zero vector is its parent
	Kind   []Kind   //
	Name   []string // Spawned: the label it stands for; Virtual: ""
	Label  []int32  // index into the data's labels; -1: no such label in the data. A labelled internal node and its spawned leaf have the same
	Depth  []int32  // 0 for nodes whose parent is the zero vector
	Leaf   []bool   // terminal: bears a loss

	Adjacent *Lists // graph: neighbours of each node, ascending; nil: a tree
}

// Len is the number of nodes.
func (t *Tree) Len() int { return len(t.Parent) }
