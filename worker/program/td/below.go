package td

import (
	"slices"

	"taxon/internal/sparse"
	"taxon/internal/taxonomy"
	"taxon/mapper"
)

// problem is a node's: the rows below it as a matrix of their own, without the features that
// none of them has.
type problem struct {
	rows     *mapper.Problem
	features []uint32   // column of it -> column of the data; nil: the same, all rows are below
	width    uint32     // columns of the data
	positive [][]uint32 // of each child: its rows, ascending
}

// places are where rows and columns of the data stand in a problem, from 1; 0: not in it.
type places struct{ row, column []uint32 }

// rows are the instances with a label at or below node n, ascending; n = -1: those with any
// label of the tree.
func (j *job) rows(n int32) []uint32 {
	first, end := int32(0), int32(j.tree.Len())
	if n >= 0 {
		first, end = n, j.end[n]
	}
	var out []uint32
	for m := first; m < end; m++ {
		if l := j.tree.Label[m]; j.tree.Leaf[m] && l >= 0 {
			out = append(out, j.set.PosRows[j.set.PosBegin[l]:j.set.PosBegin[l+1]]...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// rowsAt are the instances of the problem at node n. Where problems are nested those of the
// roots have all instances.
func (j *job) rowsAt(n int32) []uint32 {
	if !j.plan.Nested || n >= 0 && j.tree.Kind[n] != taxonomy.Virtual {
		return j.rows(n)
	}
	all := make([]uint32, j.set.Matrix.Rows)
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

// below gathers the problem of a node, -1 the root that is not written, for some of its
// children. Its cost is that of the rows below the node, whatever else the data holds.
func (j *job) below(node int32, children []uint32) *problem {
	x, at := j.set.Matrix, j.free.Get().(*places)
	p := &problem{rows: j.whole, width: uint32(x.Cols)}
	rows := j.rowsAt(node)
	for k, i := range rows {
		at.row[i] = uint32(k) + 1
	}
	for _, c := range children {
		positive := j.rows(int32(c))
		for k, i := range positive {
			positive[k] = at.row[i] - 1
		}
		p.positive = append(p.positive, positive)
	}
	for _, i := range rows {
		at.row[i] = 0
	}
	if len(rows) < x.Rows {
		p.gather(j, rows, at.column)
	}
	j.free.Put(at)
	return p
}

// gather copies the rows. column is all zero, and so it is left.
func (p *problem) gather(j *job, rows []uint32, column []uint32) {
	index, value := make([][]uint32, len(rows)), make([][]float32, len(rows))
	p.features = []uint32{}
	for k, i := range rows {
		index[k], value[k] = j.set.Matrix.Row(int(i))
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
	p.rows = mapper.NewProblem(sparse.FromRows(len(p.features), index, value), j.loss, j.options.GetC(), float32(j.options.GetBias()))
	p.rows.Kernel = j.whole.Kernel
	if j.set.Weight != nil {
		p.rows.Weight = make([]float64, len(rows))
		for k, i := range rows {
			p.rows.Weight[k] = j.set.Weight[i]
		}
	}
}

// columnsOf turns columns of the problem, the bias last, into those of the data.
func (p *problem) columnsOf(columns []uint32) []uint32 {
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
