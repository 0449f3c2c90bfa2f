package model

import (
	"math"

	"taxon/internal/model/form"
)

// packedPlan scores a model row by row and by column. A pruned model is scored straight from the
// mapped shards:
//
//	s_n = s_parent(n) + bias d_n[bias] + sum over the row's columns c of x_c d_n[c]
//
// Each column lists the nodes that it changes. So a row costs the entries of its columns and one
// pass over the tree, and reads no other part of the file. Sums are in float64, in the order of
// the columns, then down the path.
type packedPlan struct {
	shards    []*packedShard
	whole     *columnIndex // in place of shards if the model is not pruned
	features  uint32       // larger columns do not exist
	base      []float64    // node -> bias times its difference at the bias
	internals []link       // parents before children
	terminals []link       // in node order
}

// link is a node with its parent, -1 for none.
type link struct{ node, parent int32 }

// plan makes the model's plan, once.
func (m *Model) plan() *packedPlan {
	m.planned.Do(func() { m.byRow = newPackedPlan(m, float64(float32(m.Options.Bias))) })
	return m.byRow
}

func newPackedPlan(m *Model, bias float64) *packedPlan {
	p := &packedPlan{shards: m.packed, features: uint32(len(m.Feature)), base: make([]float64, m.Tree.Len())}
	if m.packed == nil {
		p.whole = m.index()
	}
	for n := range m.Tree.Len() {
		parent := m.above(int32(n))
		if m.Tree.Leaf[n] {
			p.terminals = append(p.terminals, link{int32(n), parent})
		} else if parent >= 0 { // a root's score is its sum already
			p.internals = append(p.internals, link{int32(n), parent})
		}
	}
	switch {
	case m.columns() == len(m.Feature):
	case p.whole != nil:
		p.whole.add(p.features, bias, p.base)
	default:
		last := p.shards[len(p.shards)-1]
		last.eachEntry(len(last.gapsAt)-1, func(node uint32, delta float32) { p.base[node] = bias * float64(delta) })
	}
	return p
}

// shard finds the shard that holds column c.
func (p *packedPlan) shard(c uint32) *packedShard {
	low, high := 0, len(p.shards)
	for high-low > 1 {
		if mid := (low + high) / 2; p.shards[mid].first <= int(c) {
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
		s := p.shard(c)
		switch x := float64(values[i]); {
		case s.values != nil:
			s.addSingles(c, x, sums)
		case s.bytes != nil:
			s.addBytes(c, x, sums)
		default:
			s.addHalves(c, x, sums)
		}
	}
	for _, l := range p.internals {
		sums[l.node] += sums[l.parent]
	}
}

// addSingles adds x times the differences of column c to the sums of their nodes:
//
//	for each entry (node, d) of column c: sums[node] += x d
func (s *packedShard) addSingles(c uint32, x float64, sums []float64) {
	i := int(c) - s.first
	gaps, next := s.gaps[s.gapsAt[i]:], uint32(0)
	at := 0
	for _, d := range s.values[s.begin[i]:s.begin[i+1]] {
		gap := uint32(gaps[at])
		at++
		if gap >= 0x80 {
			gap, at = longGap(gaps, at-1)
		}
		next += gap
		sums[next] += float64(x * float64(d))
		next++
	}
}

// addHalves is addSingles for values in float16. Sign, exponent and digits of one, moved to their
// places in a float64, are short of 2^1008: exponents count from -15 there, and from -1023 here.
// So x is larger by that, and products are the same.
func (s *packedShard) addHalves(c uint32, x float64, sums []float64) {
	i := int(c) - s.first
	scaled := x * 0x1p1008
	if math.IsInf(scaled, 0) {
		s.eachEntry(i, func(node uint32, d float32) { sums[node] += float64(x * float64(d)) })
		return
	}
	gaps, next := s.gaps[s.gapsAt[i]:], uint32(0)
	at := 0
	for _, bits := range s.halves[s.begin[i]:s.begin[i+1]] {
		gap := uint32(gaps[at])
		at++
		if gap >= 0x80 {
			gap, at = longGap(gaps, at-1)
		}
		next += gap
		moved := int64(int16(bits)) << 42
		sums[next] += float64(scaled * math.Float64frombits(uint64(moved)&^(0x3f<<57)))
		next++
	}
}

// steps are the numbers that bytes stand for.
var steps = func() (s [256]float64) {
	for b := range s {
		s[b] = float64(int8(b))
	}
	return s
}()

// addBytes is addSingles for values in steps of the column's scale.
func (s *packedShard) addBytes(c uint32, x float64, sums []float64) {
	i := int(c) - s.first
	gaps, next := s.gaps[s.gapsAt[i]:], uint32(0)
	at, scale := 0, float64(s.scale[i]) // of eight bits: its products with steps are exact
	for _, b := range s.bytes[s.begin[i]:s.begin[i+1]] {
		gap := uint32(gaps[at])
		at++
		if gap >= 0x80 {
			gap, at = longGap(gaps, at-1)
		}
		next += gap
		sums[next] += float64(x * float64(scale*steps[b]))
		next++
	}
}

// longGap reads a gap of more than one byte at gaps[at:]; then is where the next one begins.
func longGap(gaps []byte, at int) (gap uint32, then int) {
	for shift := 0; ; shift += 7 {
		b := gaps[at]
		at++
		gap |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return gap, at
		}
	}
}

// scorePacked scores the rows of a batch one after the other.
func (s *Scorer) scorePacked(b *Batch) {
	s.reset(b.Rows())
	for row := range b.Rows() {
		begin, end := b.Begin[row], b.Begin[row+1]
		s.p.packed.sum(b.Column[begin:end], b.Value[begin:end], s.sums)
		if s.p.rank != nil {
			s.p.rank(s, row, s.sums)
		} else {
			s.offerRow(row)
		}
	}
}

// offerRow offers all terminals to a row's lists. sums hold the scores of internals and the
// terminals' own part.
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

// columnIndex is a whole model by columns. Entry (node, d) of column c says that weight c of the
// node is d more than its parent's. So a row costs the entries of its columns and one pass over
// the tree, even if few rows come together. (A batch of thousands is scored faster by node: see
// Predictor.) It takes 12 bytes an override.
type columnIndex struct {
	begin []uint32 // column -> its first entry
	node  []uint32
	delta []float64
}

// index makes the index, once.
func (m *Model) index() *columnIndex {
	m.indexed.Do(func() {
		x := &columnIndex{begin: make([]uint32, m.columns()+1)}
		m.eachDifference(func(_ int32, c uint32, _ float64) { x.begin[c+1]++ })
		for c := range m.columns() {
			x.begin[c+1] += x.begin[c]
		}
		n := x.begin[m.columns()]
		x.node, x.delta = make([]uint32, n), make([]float64, n)
		next := append([]uint32(nil), x.begin...)
		m.eachDifference(func(node int32, c uint32, d float64) {
			x.node[next[c]], x.delta[next[c]] = uint32(node), d
			next[c]++
		})
		m.byColumn = x
	})
	return m.byColumn
}

// eachDifference visits all nodes' differences from their parents, node by node.
func (m *Model) eachDifference(visit func(node int32, column uint32, d float64)) {
	at := newPath[float32](m.columns())
	for n, rec := range m.overrides() {
		at.leaveTo(m.above(int32(n)))
		for i, c := range rec.columns {
			visit(int32(n), c, float64(rec.values[i])-float64(at.current[c]))
		}
		if !m.Tree.Leaf[n] && m.Form.Weights == form.Overrides {
			at.override(int32(n), rec.columns, rec.values)
		}
	}
}

// add adds x times the differences of column c to the sums of their nodes.
func (x *columnIndex) add(c uint32, value float64, sums []float64) {
	first, end := x.begin[c], x.begin[c+1]
	deltas := x.delta[first:end]
	for k, n := range x.node[first:end] {
		sums[n] += float64(value * deltas[k])
	}
}
