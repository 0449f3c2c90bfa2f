package model

import "taxon/internal/modelform"

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
		if !m.Tree.Leaf[n] && m.Form.Weights == modelform.Overrides {
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
