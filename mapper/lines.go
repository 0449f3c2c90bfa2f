package mapper

import (
	"math"
	"math/bits"
	"unsafe"
)

// lines lists the features that have a line in the tiles of a block: the features of its listed
// rows, in ascending order, and the bias. So a block works on memory that lies close together, and
// takes only as much as it needs. Where most features are needed, every feature has a line, which
// is cheaper.
type lines struct {
	// n is the number of lines.
	n int
	// whole rules out compact tiles: the dense layouts need a line for each feature.
	whole bool
	// needed has the feature of each line. If it is empty, a line's feature is its own number.
	needed []uint32
	// index holds the listed rows' entries, with lines in place of features.
	index []uint32
	// mark has a bit for each feature, set while lay runs if the feature is needed.
	mark []uint64
	// before has for each word of marks the number of lines before its features.
	before []uint32
}

// newLines returns lines for problems with this many columns.
func newLines(cols int) lines {
	return lines{n: cols + 1, mark: make([]uint64, cols/64+1), before: make([]uint32, cols/64+1)}
}

// feature returns the feature of a line.
func (s *lines) feature(line uint32) uint32 {
	if len(s.needed) == 0 {
		return line
	}
	return s.needed[line]
}

// lay chooses the lines for a problem with this number of columns, and makes the rows refer to
// lines.
func (s *lines) lay(refs []rowRef, cols int) {
	s.n, s.needed = cols+1, s.needed[:0]
	entries := 0
	for k := range refs {
		entries += int(refs[k].n)
	}
	if s.whole || entries > 4*cols {
		return
	}
	for k := range refs {
		for _, f := range refs[k].features() {
			s.mark[f>>6] |= 1 << (f & 63)
		}
	}
	defer clear(s.mark)
	for word, m := range s.mark {
		s.before[word] = uint32(len(s.needed))
		for ; m != 0; m &= m - 1 {
			s.needed = append(s.needed, uint32(word<<6|bits.TrailingZeros64(m)))
		}
	}
	s.needed = append(s.needed, uint32(cols))
	if len(s.needed) > s.n/3 {
		s.needed = s.needed[:0]
		return
	}
	s.n, s.index = len(s.needed), resized(s.index, entries)
	rest := s.index
	for k := range refs {
		r := &refs[k]
		if r.n == 0 {
			continue
		}
		for j, f := range r.features() {
			rest[j] = s.before[f>>6] + uint32(bits.OnesCount64(s.mark[f>>6]&(1<<(f&63)-1)))
		}
		r.idx, r.room = &rest[0], uint16(min(len(rest), math.MaxUint16))
		rest = rest[r.n:]
	}
}

// features returns the row's features, or its lines once lay has replaced them.
func (r *rowRef) features() []uint32 { return unsafe.Slice(r.idx, r.n) }
