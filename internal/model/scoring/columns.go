package scoring

import (
	"math"

	"taxon/internal/model"
	"taxon/internal/model/shard"
)

// packedPlan scores a model row by row and column by column. A pruned model is scored directly from
// the mapped shards:
//
//	s_n = s_parent(n) + bias d_n[bias] + sum over the row's columns c of x_c d_n[c]
//
// Each column lists the nodes that it changes. So the cost of a row is the entries of its columns
// and one pass over the tree, and no other part of the file is read. Sums are in float64, in the
// order of the columns, then down the path.
type packedPlan struct {
	shards []*shard.Packed
	// whole replaces shards if the model is not pruned.
	whole *columnIndex
	// features bounds the columns: larger ones do not exist.
	features uint32
	// base holds, by node, the bias times the node's difference at the bias.
	base []float64
	// internals lists parents before children.
	internals []link
	// terminals is in node order.
	terminals []link
}

// link is a node with its parent, or with -1 if it has none.
type link struct{ node, parent int32 }

// plan returns the model's plan, which is made once.
func plan(m *model.Model) *packedPlan {
	return m.Derive(derived("plan"),
		func() any { return newPackedPlan(m, float64(float32(m.Options.Bias))) }).(*packedPlan)
}

func newPackedPlan(m *model.Model, bias float64) *packedPlan {
	p := &packedPlan{shards: m.Packed(), features: uint32(len(m.Feature)), base: make([]float64, m.Tree.Len())}
	if p.shards == nil {
		p.whole = index(m)
	}
	for n := range m.Tree.Len() {
		parent := m.Above(int32(n))
		if m.Tree.Leaf[n] {
			p.terminals = append(p.terminals, link{int32(n), parent})
		} else if parent >= 0 { // a root's score is its sum already
			p.internals = append(p.internals, link{int32(n), parent})
		}
	}
	switch {
	case m.Columns() == len(m.Feature):
	case p.whole != nil:
		p.whole.add(p.features, bias, p.base)
	default:
		last := p.shards[len(p.shards)-1]
		last.Each(len(m.Feature), func(node uint32, delta float32) { p.base[node] = bias * float64(delta) })
	}
	return p
}

// shard returns the shard that holds column c.
func (p *packedPlan) shard(c uint32) *shard.Packed {
	low, high := 0, len(p.shards)
	for high-low > 1 {
		mid := (low + high) / 2
		if first, _ := p.shards[mid].Range(); first <= int(c) {
			low = mid
		} else {
			high = mid
		}
	}
	return p.shards[low]
}

// sum adds up the differences of one row at every node.
func (p *packedPlan) sum(columns []uint32, values []float32, sums []float64) {
	copy(sums, p.base)
	for i, c := range columns {
		if c >= p.features {
			continue
		}
		if p.whole != nil {
			p.whole.add(c, float64(values[i]), sums)
			continue
		}
		p.shard(c).Add(c, float64(values[i]), sums)
	}
	for _, l := range p.internals {
		sums[l.node] += sums[l.parent]
	}
}

// scorePacked scores the rows of a batch one after the other.
func (s *Scorer) scorePacked(b *Batch) {
	s.reset(b.Rows())
	for row := range b.Rows() {
		begin, end := b.Begin[row], b.Begin[row+1]
		s.p.packed.sum(b.Column[begin:end], b.Value[begin:end], s.sums)
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
	for _, l := range s.p.packed.terminals {
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

// columnIndex is an unpruned model by column. Entry (node, d) of column c means that weight c of
// the node exceeds its parent's by d. So the cost of a row is the entries of its columns and one
// pass over the tree, even if there are few rows. Batches of thousands of rows are scored faster by
// node; see Predictor. The index takes 12 bytes per override.
type columnIndex struct {
	// begin maps a column to its first entry.
	begin []uint32
	node  []uint32
	delta []float64
}

// index returns the model's index, which is made once.
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

// add adds x times the differences of column c to the sums of their nodes.
func (x *columnIndex) add(c uint32, value float64, sums []float64) {
	first, end := x.begin[c], x.begin[c+1]
	deltas := x.delta[first:end]
	for k, n := range x.node[first:end] {
		sums[n] += float64(value * deltas[k])
	}
}
