package td

import (
	"slices"

	"taxon/internal/sparse"
	"taxon/mapper"
)

// problem is a node's: the rows below it as a matrix of their own, without the features that
// none of them has.
type problem struct {
	solver   *mapper.Solver
	features []uint32   // column of it -> column of the data; nil: the same, all rows are below
	width    uint32     // columns of the data
	positive [][]uint32 // of each child: its rows, ascending
}

// below gathers the problem of a node, -1 the root that is not written, for some of its children.
func (j *job) below(node int32, children []uint32) *problem {
	x := j.set.Matrix
	row := make([]int32, x.Rows) // of the data -> of the problem, 1 more
	for n, parent := range j.tree.Parent {
		if parent == node {
			j.leaves(uint32(n), func(rows []uint32) {
				for _, i := range rows {
					row[i] = 1
				}
			})
		}
	}
	count := int32(0)
	for i, in := range row {
		if in != 0 {
			count++
			row[i] = count
		}
	}
	p := &problem{solver: j.whole, width: uint32(x.Cols)}
	for _, c := range children {
		rows := j.rows(c)
		for k, i := range rows {
			rows[k] = uint32(row[i] - 1)
		}
		p.positive = append(p.positive, rows)
	}
	if int(count) == x.Rows {
		return p
	}
	column := make([]uint32, x.Cols)
	index, value := make([][]uint32, 0, count), make([][]float32, 0, count)
	for i, in := range row {
		if in != 0 {
			f, v := x.Row(i)
			index, value = append(index, slices.Clone(f)), append(value, v)
			for _, c := range f {
				column[c] = 1
			}
		}
	}
	p.features = []uint32{}
	for c, in := range column {
		if in != 0 {
			column[c] = uint32(len(p.features))
			p.features = append(p.features, uint32(c))
		}
	}
	for _, f := range index {
		for k, c := range f {
			f[k] = column[c]
		}
	}
	p.solver = mapper.NewSolver(sparse.FromRows(len(p.features), index, value), j.loss, j.options.GetC(), float32(j.options.GetBias()))
	p.solver.Kernel = j.whole.Kernel
	return p
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
