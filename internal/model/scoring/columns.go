package scoring

import (
	"math"

	"taxon/internal/model"
	"taxon/internal/model/shard"
)

// columnPlan scores a model row by row and by column:
//
//	s_n = s_parent(n) + bias d_n[bias] + sum over the row's columns c of x_c d_n[c]
//
// Each column lists the nodes that it changes. So a row costs the entries of its columns and one
// pass over the tree, and reads no other weights. Sums are in float64, in the order of the columns,
// then down the path.
type columnPlan struct {
	columns   columnSource
	features  uint32    // larger columns do not exist
	base      []float64 // node -> bias times its difference at the bias
	internals []link    // parents before children
	terminals []link    // in node order
}

// columnSource holds a model's weights by column. Entry (node, d) of column c says that weight c of
// the node is d more than its parent's.
type columnSource interface {
	// add adds x times the differences of column c to the sums of their nodes.
	add(c uint32, x float64, sums []float64)
	// each visits the differences of column c.
	each(c uint32, visit func(node uint32, d float64))
}

// packedColumns are the mapped shards of a pruned model.
type packedColumns []*shard.Packed

// of finds the shard that holds column c.
func (p packedColumns) of(c uint32) *shard.Packed {
	low, high := 0, len(p)
	for high-low > 1 {
		mid := (low + high) / 2
		if first, _ := p[mid].Range(); first <= int(c) {
			low = mid
		} else {
			high = mid
		}
	}
	return p[low]
}

func (p packedColumns) add(c uint32, x float64, sums []float64) { p.of(c).Add(c, x, sums) }

func (p packedColumns) each(c uint32, visit func(node uint32, d float64)) {
	p.of(c).Each(int(c), func(node uint32, d float32) { visit(node, float64(d)) })
}

// link is a node with its parent, or with -1 if it has none.
type link struct{ node, parent int32 }

// plan returns the model's plan. The first call makes it.
func plan(m *model.Model) *columnPlan {
	return m.Derive(derived("plan"),
		func() any { return newColumnPlan(m, float64(float32(m.Options.Bias))) }).(*columnPlan)
}

func newColumnPlan(m *model.Model, bias float64) *columnPlan {
	p := &columnPlan{features: uint32(len(m.Feature)), base: make([]float64, m.Tree.Len())}
	if shards := m.Packed(); shards != nil {
		p.columns = packedColumns(shards)
	} else {
		p.columns = index(m)
	}
	for n := range m.Tree.Len() {
		parent := m.Above(int32(n))
		if m.Tree.Leaf[n] {
			p.terminals = append(p.terminals, link{int32(n), parent})
		} else if parent >= 0 { // a root's score is its sum already
			p.internals = append(p.internals, link{int32(n), parent})
		}
	}
	if m.Columns() > len(m.Feature) {
		p.columns.each(p.features, func(node uint32, d float64) { p.base[node] += bias * d })
	}
	return p
}

// sum adds up the differences of one row at every node.
func (p *columnPlan) sum(columns []uint32, values []float32, sums []float64) {
	copy(sums, p.base)
	for i, c := range columns {
		if c < p.features {
			p.columns.add(c, float64(values[i]), sums)
		}
	}
	for _, l := range p.internals {
		sums[l.node] += sums[l.parent]
	}
}

// scoreColumns scores the rows of a batch one after the other.
func (s *Scorer) scoreColumns(b *Batch) {
	s.reset(b.Rows())
	for row := range b.Rows() {
		begin, end := b.Begin[row], b.Begin[row+1]
		s.p.columns.sum(b.Column[begin:end], b.Value[begin:end], s.sums)
		if s.rank != nil {
			s.rank(&Row{s, row}, s.sums)
		} else {
			s.offerRow(row)
		}
	}
}

// offerRow offers all terminals to a row's lists. sums hold the scores of internal nodes, and the
// terminals' own parts of their scores.
func (s *Scorer) offerRow(row int) {
	h, sums, floor := &s.heaps[row], s.sums, math.Inf(-1)
	cutoff := math.Inf(1)
	if s.p.o.Rule == Threshold {
		cutoff = s.p.o.Cutoff
	}
	for _, l := range s.p.columns.terminals {
		score := sums[l.node]
		if l.parent >= 0 {
			score += sums[l.parent]
		}
		if s.p.scale > 0 {
			s.mass[row].add(s.p.scale * score)
		}
		if score > floor {
			h.offer(Scored{l.node, score})
			if len(h.heap) == cap(h.heap) {
				floor = h.heap[0].Score
			}
		}
		if score > cutoff {
			s.positive[row] = append(s.positive[row], Scored{l.node, score})
		}
	}
}

// columnIndex is a whole model by columns, for few rows at a time. (A batch of thousands is scored
// faster by node: see Predictor.) It takes 12 bytes an override.
type columnIndex struct {
	// begin maps a column to its first entry.
	begin []uint32
	node  []uint32
	delta []float64
}

// index returns the model's index. The first call makes it.
func index(m *model.Model) *columnIndex {
	return m.Derive(derived("index"), func() any {
		x := &columnIndex{begin: make([]uint32, m.Columns()+1)}
		m.EachDifference(func(_ int32, c uint32, _ float64) { x.begin[c+1]++ })
		for c := range m.Columns() {
			x.begin[c+1] += x.begin[c]
		}
		n := x.begin[m.Columns()]
		x.node, x.delta = make([]uint32, n), make([]float64, n)
		next := append([]uint32(nil), x.begin...)
		m.EachDifference(func(node int32, c uint32, d float64) {
			x.node[next[c]], x.delta[next[c]] = uint32(node), d
			next[c]++
		})
		return x
	}).(*columnIndex)
}

func (x *columnIndex) add(c uint32, value float64, sums []float64) {
	first, end := x.begin[c], x.begin[c+1]
	deltas := x.delta[first:end]
	for k, n := range x.node[first:end] {
		sums[n] += float64(value * deltas[k])
	}
}

func (x *columnIndex) each(c uint32, visit func(node uint32, d float64)) {
	for k := x.begin[c]; k < x.begin[c+1]; k++ {
		visit(x.node[k], x.delta[k])
	}
}
