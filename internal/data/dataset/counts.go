package dataset

import (
	"cmp"
	"slices"
)

// denseIndices bounds the feature indices that are counted in a plain array, which takes at most 16
// MiB and grows as needed. Larger indices, which are rare outside hashed features, are counted in a
// map.
const denseIndices = 1 << 22

// featureTable holds one word for each feature index that occurs: first its document frequency,
// later its column. Memory grows with the number of features, not with the largest index.
type featureTable struct {
	dense []uint32
	far   map[uint32]uint32
}

// add counts one row for index.
func (t *featureTable) add(index uint32) {
	if int(index) < len(t.dense) {
		t.dense[index]++
		return
	}
	t.put(index, t.get(index)+1)
}

// put sets the word of an index and makes room for it.
func (t *featureTable) put(index, word uint32) {
	if index >= denseIndices {
		if t.far == nil {
			t.far = make(map[uint32]uint32)
		}
		t.far[index] = word
		return
	}
	if int(index) >= len(t.dense) {
		size := max(1024, 2*len(t.dense))
		for size <= int(index) {
			size *= 2
		}
		grown := make([]uint32, size)
		copy(grown, t.dense)
		t.dense = grown
	}
	t.dense[index] = word
}

// get returns the word of an index, or 0 if the index never occurred.
func (t *featureTable) get(index uint32) uint32 {
	if int(index) < len(t.dense) {
		return t.dense[index]
	}
	return t.far[index]
}

// feature is an index with its document frequency.
type feature struct {
	index, rows uint32
}

// ranked lists the features by falling document frequency. Features of equal frequency are ordered
// by before.
func (t *featureTable) ranked(before func(a, b uint32) int) []feature {
	var out []feature
	for index, rows := range t.dense {
		if rows > 0 {
			out = append(out, feature{uint32(index), rows})
		}
	}
	for index, rows := range t.far {
		out = append(out, feature{index, rows})
	}
	slices.SortFunc(out, func(a, b feature) int {
		if c := cmp.Compare(b.rows, a.rows); c != 0 {
			return c
		}
		return before(a.index, b.index)
	})
	return out
}
