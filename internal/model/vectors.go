package model

import (
	"slices"

	"taxon/internal/model/form"
	"taxon/internal/model/shard"
)

// Columns returns the length of a weight vector, which is the number of features, plus one if there
// is a bias.
func (m *Model) Columns() int { return m.columns() }

// Above returns the node from whose weights the record of node n differs. It is -1 for zero.
func (m *Model) Above(n int32) int32 { return m.Form.Above(m.Tree.Parent[n]) }

// Overrides returns the columns in which node n differs from its parent, and its values there. For
// whole weights these are its nonzeros. Both slices alias the mapped file.
func (m *Model) Overrides(n int) (columns []uint32, values []float32) {
	r := m.Records()[n]
	return r.Columns, r.Values
}

// Vector returns the effective weights of node n as a new slice of Columns() entries. For many
// nodes WalkVectors is cheaper.
func (m *Model) Vector(n int) []float32 {
	w := shard.NewPath[float32](m.columns())
	m.seek(w, int32(n))
	return w.Current
}

// seek enters the ancestors of n and n itself.
func (m *Model) seek(w *shard.Path[float32], n int32) {
	var up []int32
	for ; n >= 0; n = m.Above(n) {
		up = append(up, n)
	}
	w.LeaveTo(-1)
	records := m.Records()
	for i := len(up) - 1; i >= 0; i-- {
		w.Override(up[i], records[up[i]].Columns, records[up[i]].Values)
	}
}

// WalkVectors calls visit with the effective vector of each node in [first, last), in order. The
// slice is valid during the call only and must not be modified.
func (m *Model) WalkVectors(first, last int, visit func(n int, vector []float32) error) error {
	if first >= last {
		return nil
	}
	w := shard.NewPath[float32](m.columns())
	if p := m.Above(int32(first)); p >= 0 {
		m.seek(w, p)
	}
	records := m.Records()
	for n := first; n < last; n++ {
		w.LeaveTo(m.Above(int32(n)))
		w.Override(int32(n), records[n].Columns, records[n].Values)
		if err := visit(n, w.Current); err != nil {
			return err
		}
	}
	return nil
}

// WalkSums does what WalkVectors does, with the sums of the vectors from the root to each node. The
// records must be whole vectors.
func (m *Model) WalkSums(first, last int, visit func(n int, vector []float32) error) error {
	w, records := shard.NewPath[float32](m.columns()), m.Records()
	add := func(n int32) {
		w.Enter(n, records[n].Columns)
		for i, c := range records[n].Columns {
			w.Current[c] += records[n].Values[i]
		}
	}
	var up []int32
	if first < last {
		for a := m.Tree.Parent[first]; a >= 0; a = m.Tree.Parent[a] {
			up = append(up, a)
		}
	}
	for _, a := range slices.Backward(up) {
		add(a)
	}
	for n := first; n < last; n++ {
		w.LeaveTo(m.Tree.Parent[n])
		add(int32(n))
		if err := visit(n, w.Current); err != nil {
			return err
		}
	}
	return nil
}

// Records returns the records of all nodes.
func (m *Model) Records() []shard.Record {
	if m.Manifest.Pruned != nil {
		m.unpack.Do(func() { m.records = m.nodeRecords() })
	}
	return m.records
}

// Rest returns the parts of the records after the vectors, which are variances and precisions, or
// draws (see package form). It is nil if records of the model's form hold vectors alone, or if the
// model is pruned.
func (m *Model) Rest() []shard.Record { return m.rest }

// EachDifference calls visit with all nodes' differences from their parents, node by node.
func (m *Model) EachDifference(visit func(node int32, column uint32, d float64)) {
	at := shard.NewPath[float32](m.columns())
	for n, rec := range m.Records() {
		at.LeaveTo(m.Above(int32(n)))
		for i, c := range rec.Columns {
			visit(int32(n), c, float64(rec.Values[i])-float64(at.Current[c]))
		}
		if !m.Tree.Leaf[n] && m.Form.Weights == form.Overrides {
			at.Override(int32(n), rec.Columns, rec.Values)
		}
	}
}

// cutRest splits records that hold more than a mean: recs keeps the mean, rest gets the remainder.
func (m *Model) cutRest(first int, recs []shard.Record) {
	if m.rest == nil {
		return
	}
	for i, r := range recs {
		at, _ := slices.BinarySearch(r.Columns, uint32(m.columns()))
		recs[i] = shard.Record{Columns: r.Columns[:at], Values: r.Values[:at]}
		m.rest[first+i] = shard.Record{Columns: r.Columns[at:], Values: r.Values[at:]}
	}
}

// nodeRecords converts packed shards to records of overrides, for exports and explanations, which
// need whole vectors; predictions do not. It takes 8 bytes per entry. A value is the float64 sum of
// the differences on the path, rounded to float32.
func (m *Model) nodeRecords() []shard.Record {
	nodes := m.Tree.Len()
	end := make([]int, nodes+1) // initially the start of a node's entries
	for _, s := range m.packed {
		first, last := s.Range()
		for c := first; c < last; c++ {
			s.Each(c, func(node uint32, _ float32) { end[node+1]++ })
		}
	}
	for n := range nodes {
		end[n+1] += end[n]
	}
	total := end[nodes]
	columns, values := make([]uint32, total), make([]float32, total)
	for _, s := range m.packed {
		first, last := s.Range()
		for c := first; c < last; c++ {
			s.Each(c, func(node uint32, delta float32) {
				columns[end[node]], values[end[node]] = uint32(c), delta
				end[node]++
			})
		}
	}
	records := make([]shard.Record, nodes)
	begin := 0
	for n := range records {
		records[n] = shard.Record{Columns: columns[begin:end[n]:end[n]], Values: values[begin:end[n]:end[n]]}
		begin = end[n]
	}
	m.sumDifferences(records)
	return records
}

// sumDifferences replaces the differences in records by the weights, which are their sums along the
// paths.
func (m *Model) sumDifferences(records []shard.Record) {
	sums := shard.NewPath[float64](m.columns())
	for n, r := range records {
		sums.LeaveTo(m.Above(int32(n)))
		sums.Enter(int32(n), r.Columns)
		for i, c := range r.Columns {
			sums.Current[c] += float64(r.Values[i])
			r.Values[i] = float32(sums.Current[c])
		}
	}
}
