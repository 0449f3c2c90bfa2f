package model

// nodeRecords turns packed shards into records of overrides, for what needs whole vectors
// (exports, explanations): prediction does without. Memory: 8 bytes an entry. A value is
// the float64 sum of the differences on the path, rounded to float32.
func (m *Model) nodeRecords() []record {
	nodes := m.Tree.Len()
	end := make([]int, nodes+1) // at first: where the entries of a node begin
	for _, s := range m.packed {
		for i := range s.gapsAt {
			s.eachEntry(i, func(node uint32, _ float32) { end[node+1]++ })
		}
	}
	for n := range nodes {
		end[n+1] += end[n]
	}
	total := end[nodes]
	columns, values := make([]uint32, total), make([]float32, total)
	for _, s := range m.packed {
		for i := range s.gapsAt {
			s.eachEntry(i, func(node uint32, delta float32) {
				columns[end[node]], values[end[node]] = uint32(s.first+i), delta
				end[node]++
			})
		}
	}
	records := make([]record, nodes)
	begin := 0
	for n := range records {
		records[n] = record{columns[begin:end[n]:end[n]], values[begin:end[n]:end[n]]}
		begin = end[n]
	}
	m.sumDifferences(records)
	return records
}

// sumDifferences replaces the differences in records by the values they lead to.
func (m *Model) sumDifferences(records []record) {
	sums := newPath[float64](m.columns())
	for n, r := range records {
		sums.leaveTo(m.above(int32(n)))
		sums.enter(int32(n), r.columns)
		for i, c := range r.columns {
			sums.current[c] += float64(r.values[i])
			r.values[i] = float32(sums.current[c])
		}
	}
}
