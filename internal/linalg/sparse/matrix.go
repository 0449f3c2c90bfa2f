package sparse

// RowShift determines the size of shards: every shard but the last has 1<<RowShift rows.
const RowShift = 16

// Shard is a part of the matrix in compressed sparse row form.
//
// Row i has entries Begin[i]..Begin[i+1] of Index and Value; indices are strictly ascending within
// a row. len(Begin) = rows + 1. The slices may be mapped, read-only memory: callers must not write
// to them.
type Shard struct {
	Begin []uint64
	Index []uint32
	Value []float32
}

// Matrix is an immutable instances x features matrix. The bias feature is not stored in it.
type Matrix struct {
	Shards []Shard
	// Rows, Cols and NNZ are the numbers of instances, of features and of stored entries.
	Rows int
	Cols int
	NNZ  int64
}

// Row returns the indices and values of row i. Both alias the matrix.
func (m *Matrix) Row(i int) ([]uint32, []float32) {
	s := &m.Shards[i>>RowShift]
	i &= 1<<RowShift - 1
	a, b := s.Begin[i], s.Begin[i+1]
	return s.Index[a:b:b], s.Value[a:b:b]
}

// FromRows returns a matrix in memory from rows of indices and values, for tests and generated
// data. Indices must be strictly ascending within a row.
func FromRows(cols int, index [][]uint32, value [][]float32) *Matrix {
	m := &Matrix{Rows: len(index), Cols: cols}
	for lo := 0; lo < len(index) || lo == 0; lo += 1 << RowShift {
		hi := min(lo+1<<RowShift, len(index))
		s := Shard{Begin: make([]uint64, 1, hi-lo+1)}
		for i := lo; i < hi; i++ {
			s.Index = append(s.Index, index[i]...)
			s.Value = append(s.Value, value[i]...)
			s.Begin = append(s.Begin, uint64(len(s.Index)))
		}
		m.NNZ += int64(len(s.Index))
		m.Shards = append(m.Shards, s)
	}
	return m
}

// Dot returns x.y of dense vectors. It keeps four partial sums, in an order that gives the same
// bits on every machine. y must be at least as long as x.
func Dot(x, y []float64) float64 {
	y = y[:len(x)]
	var a, b, c, d float64
	for len(x) >= 4 {
		a += float64(x[0] * y[0])
		b += float64(x[1] * y[1])
		c += float64(x[2] * y[2])
		d += float64(x[3] * y[3])
		x, y = x[4:], y[4:]
	}
	for k := range x {
		a += float64(x[k] * y[k])
	}
	return (a + b) + (c + d)
}
