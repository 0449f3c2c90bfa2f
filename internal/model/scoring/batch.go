package scoring

import "math"

// Batch is a block of instances that are scored together. Begin, Column and Value are the instances
// in compressed sparse row form over the model's columns, without the bias. The zero value is an
// empty batch.
type Batch struct {
	// Begin has rows + 1 entries, or none.
	Begin  []int
	Column []uint32
	Value  []float32
	// First is the number of the batch's first row within the whole input.
	First int64
	// Labels are the true labels, row by row. They are empty unless AddLabels was called.
	Labels []string
	// Ends[i] is the end of row i's labels in Labels.
	Ends []int
	// IDs are the names of the rows, row by row. They are empty unless AddID was called.
	IDs []string
	// Broken lists the rows that could not be read, ascending. They are empty in the batch.
	Broken []int
	// limit is the number of rows of a full batch. Zero means BatchRows.
	limit int
}

// A full batch has BatchRows rows or BatchEntries nonzeros. The weights are read once per batch, so
// a batch must be large enough to amortise that. Its scores for one node, 8 bytes per row, should
// stay in the fastest cache.
const (
	BatchRows    = 4096
	BatchEntries = 1 << 20
)

// Rows returns the number of instances.
func (b *Batch) Rows() int { return max(0, len(b.Begin)-1) }

// Full reports whether the batch is large enough to be scored.
func (b *Batch) Full() bool {
	rows := b.limit
	if rows == 0 {
		rows = BatchRows
	}
	return b.Rows() >= rows || len(b.Column) >= BatchEntries
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Begin, b.Column, b.Value = b.Begin[:0], b.Column[:0], b.Value[:0]
	b.Labels, b.Ends = b.Labels[:0], b.Ends[:0]
	b.IDs, b.Broken = b.IDs[:0], b.Broken[:0]
}

// Add appends an instance. The columns are the model's; a column that is given twice counts twice.
// The slices are copied.
func (b *Batch) Add(columns []uint32, values []float32) {
	if len(b.Begin) == 0 {
		b.Begin = append(b.Begin, 0)
	}
	b.Column = append(b.Column, columns...)
	b.Value = append(b.Value, values...)
	b.Begin = append(b.Begin, len(b.Column))
}

// AddLabels appends the true labels of the instance that was added last.
func (b *Batch) AddLabels(labels ...string) {
	b.Labels = append(b.Labels, labels...)
	b.Ends = append(b.Ends, len(b.Labels))
}

// RowLabels returns the true labels of row i. It is nil if none were added.
func (b *Batch) RowLabels(i int) []string {
	if i >= len(b.Ends) {
		return nil
	}
	first := 0
	if i > 0 {
		first = b.Ends[i-1]
	}
	return b.Labels[first:b.Ends[i]]
}

// entry is a nonzero of a column, with its row and value.
type entry struct {
	row   uint32
	value float32
}

// columnsOf is a batch in column form: the entries of column c are entries[begin[c]:begin[c+1]],
// rows ascending. Buffers are reused. Columns at or above width do not exist in the model and are
// omitted.
type columnsOf struct {
	begin   []uint32
	entries []entry
}

// fill converts a batch.
func (t *columnsOf) fill(b *Batch, width int) {
	if cap(t.begin) < width+2 {
		t.begin = make([]uint32, width+2)
	}
	begin := t.begin[:width+2]
	clear(begin)
	for _, c := range b.Column {
		if int64(c) < int64(width) {
			begin[c+2]++
		}
	}
	for c := 2; c < len(begin); c++ {
		begin[c] += begin[c-1]
	}
	n := int(begin[width+1])
	if cap(t.entries) < n {
		t.entries = make([]entry, n)
	}
	t.entries = t.entries[:n]
	for i := range b.Rows() {
		for k := b.Begin[i]; k < b.Begin[i+1]; k++ {
			if c := b.Column[k]; int64(c) < int64(width) {
				t.entries[begin[c+1]] = entry{uint32(i), b.Value[k]}
				begin[c+1]++
			}
		}
	}
	t.begin = begin[:width+1]
}

// finite reports whether all values are numbers.
func (b *Batch) finite() bool {
	for _, v := range b.Value {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
	}
	return true
}
