package mapper

import (
	"math"
	"math/bits"
	"unsafe"
)

// lines are those of a block's tiles: one for each feature of its listed rows, ascending, and one for
// the bias. So a block works on memory that lies close together, and takes as much of it as it
// needs. Where most features are needed, every feature has a line, which is cheaper.
type lines struct {
	n      int
	whole  bool     // every feature always has a line: what lays rows out densely knows no others
	needed []uint32 // the feature of each line; empty: its own number
	index  []uint32 // the listed rows' entries, lines in place of features
	mark   []uint64 // a bit for each feature, set where it is needed
	before []uint32 // for each word of marks, the lines before its features
}

func newLines(cols int) lines {
	return lines{n: cols + 1, mark: make([]uint64, cols/64+1), before: make([]uint32, cols/64+1)}
}

// feature is a line's.
func (s *lines) feature(line uint32) uint32 {
	if len(s.needed) == 0 {
		return line
	}
	return s.needed[line]
}

// lay finds the lines of a problem with so many columns, and has the rows refer to them.
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

// features are the row's, or once lines are laid their lines.
func (r *rowRef) features() []uint32 { return unsafe.Slice(r.idx, r.n) }
