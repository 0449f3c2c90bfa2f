package model

// columnIndex maps indices of the input to columns.
type columnIndex struct {
	dense  []uint32 // index -> column+1; 0: no such column
	sparse map[uint32]uint32
}

// denseSlack: a table is used if it has at most this many entries a feature (or is
// small anyway); else indices are so scattered that a hash map takes less memory.
const (
	denseSlack = 8
	denseSmall = 1 << 20
)

func newColumnIndex(feature []uint32) columnIndex {
	var top uint32
	for _, f := range feature {
		top = max(top, f)
	}
	if uint64(top) > denseSmall && uint64(top) > denseSlack*uint64(len(feature)) {
		c := columnIndex{sparse: make(map[uint32]uint32, len(feature))}
		for col, f := range feature {
			c.sparse[f] = uint32(col)
		}
		return c
	}
	c := columnIndex{dense: make([]uint32, int(top)+1)}
	for col, f := range feature {
		c.dense[f] = uint32(col) + 1
	}
	return c
}

func (c *columnIndex) find(index uint32) (uint32, bool) {
	if c.sparse != nil {
		col, ok := c.sparse[index]
		return col, ok
	}
	if int64(index) >= int64(len(c.dense)) {
		return 0, false
	}
	col := c.dense[index]
	return col - 1, col != 0
}

// Column returns the column of the feature that has this (1-based) index in the input;
// false if training never saw it.
func (m *Model) Column(index uint32) (uint32, bool) { return m.column.find(index) }
