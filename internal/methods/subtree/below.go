// Package subtree gathers the instances below a node of a tree as a matrix of their own, for
// methods that solve one problem per node.
package subtree

import (
	"slices"
	"sync"

	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/linalg/sparse"
)

// Data is a data set with the tree of its classes. Several goroutines may use it.
type Data struct {
	set  *dataset.Set
	tree *taxonomy.Tree
	end  []int32   // node -> end of its subtree
	all  bool      // the root's problem has all instances
	free sync.Pool // *places, all zero
}

// New returns the data of a job. If all is set, the problems of the roots contain all instances,
// labelled or not, as nested problems require.
func New(set *dataset.Set, tree *taxonomy.Tree, all bool) *Data {
	d := &Data{set: set, tree: tree, end: tree.SubtreeEnd(), all: all}
	d.free.New = func() any {
		return &places{row: make([]uint32, set.Matrix.Rows), column: make([]uint32, set.Matrix.Cols)}
	}
	return d
}

// places maps rows and columns of the data to their index in a problem plus 1. It is 0 for those
// outside the problem.
type places struct{ row, column []uint32 }

// Problem is the problem of a node. It has the rows below the node, without the features that none
// of them has.
type Problem struct {
	// X holds the rows. It is the data's own matrix if all rows are below the node.
	X *sparse.Matrix

	// Weight holds the weights of the rows. A nil Weight gives each row weight 1.
	Weight []float64

	// Positive lists the rows of each child, ascending.
	Positive [][]uint32
	// features maps a column of X to the column of the data. It is nil if they are the same.
	features []uint32
	width    uint32 // columns of the data
}

// rows returns the instances with a label at or below node n, ascending. If n is -1, it returns
// those with any label of the tree.
func (d *Data) rows(n int32) []uint32 {
	first, end := int32(0), int32(d.tree.Len())
	if n >= 0 {
		first, end = n, d.end[n]
	}
	var out []uint32
	for m := first; m < end; m++ {
		if l := d.tree.Label[m]; d.tree.Leaf[m] && l >= 0 {
			out = append(out, d.set.PosRows[d.set.PosBegin[l]:d.set.PosBegin[l+1]]...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// rowsAt returns the instances of the problem at node n.
func (d *Data) rowsAt(n int32) []uint32 {
	if !d.all || n >= 0 && d.tree.Kind[n] != taxonomy.Virtual {
		return d.rows(n)
	}
	all := make([]uint32, d.set.Matrix.Rows)
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

// Node gathers the problem of a node for some of its children. Node -1 is the root that is not
// stored. The cost is linear in the rows below the node, regardless of the size of the data.
func (d *Data) Node(node int32, children []uint32) *Problem {
	x, at := d.set.Matrix, d.free.Get().(*places)
	p := &Problem{X: x, Weight: d.set.Weight, width: uint32(x.Cols)}
	rows := d.rowsAt(node)
	for k, i := range rows {
		at.row[i] = uint32(k) + 1
	}
	for _, c := range children {
		positive := d.rows(int32(c))
		for k, i := range positive {
			positive[k] = at.row[i] - 1
		}
		p.Positive = append(p.Positive, positive)
	}
	for _, i := range rows {
		at.row[i] = 0
	}
	if len(rows) < x.Rows {
		p.gather(d.set, rows, at.column)
	}
	d.free.Put(at)
	return p
}

// gather copies the rows. column must be all zero before the call, and is all zero after it.
func (p *Problem) gather(set *dataset.Set, rows []uint32, column []uint32) {
	index, value := make([][]uint32, len(rows)), make([][]float32, len(rows))
	p.features = []uint32{}
	for k, i := range rows {
		index[k], value[k] = set.Matrix.Row(int(i))
		for _, c := range index[k] {
			if column[c] == 0 {
				column[c] = 1
				p.features = append(p.features, c)
			}
		}
	}
	slices.Sort(p.features)
	for k, c := range p.features {
		column[c] = uint32(k)
	}
	for k := range index {
		index[k] = slices.Clone(index[k])
		for e, c := range index[k] {
			index[k][e] = column[c]
		}
	}
	for _, c := range p.features {
		column[c] = 0
	}
	p.X = sparse.FromRows(len(p.features), index, value)
	if set.Weight != nil {
		p.Weight = make([]float64, len(rows))
		for k, i := range rows {
			p.Weight[k] = set.Weight[i]
		}
	}
}

// ColumnsOf converts columns of the problem, with the bias last, to columns of the data.
func (p *Problem) ColumnsOf(columns []uint32) []uint32 {
	if p.features == nil {
		return columns
	}
	for k, c := range columns {
		if int(c) < len(p.features) {
			columns[k] = p.features[c]
		} else {
			columns[k] = p.width
		}
	}
	return columns
}
