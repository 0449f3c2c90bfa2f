package scoring

import (
	"slices"

	"taxon/internal/model/form"
	"taxon/internal/model/shard"
)

// fewColumns is the number of distinct columns up to which a batch is scored by searching each
// column in every record, which reads a small part of the weights. With more columns one pass over
// all weights is cheaper.
const fewColumns = 96

// few is the working memory of scoreFew. It holds the effective weights of the current path at the
// batch's columns only.
type few struct {
	// columns is ascending, with the bias last if the model has one.
	columns []uint32
	current []float32
	frames  []fewFrame
}

// fewFrame saves the weights that a node changed.
type fewFrame struct {
	node int32
	// at are indices into columns.
	at  []int32
	old []float32
}

// collect finds the columns of b below width. It returns false if there are too many.
func (f *few) collect(b *Batch, width int) bool {
	f.columns = f.columns[:0]
	for _, c := range b.Column {
		if int64(c) >= int64(width) {
			continue
		}
		if at, found := slices.BinarySearch(f.columns, c); !found {
			if len(f.columns) == fewColumns {
				return false
			}
			f.columns = slices.Insert(f.columns, at, c)
		}
	}
	return true
}

// scoreFew does what score does, for a batch with few distinct columns, which are in s.few. It adds
// the same terms in the same order, so its result has the same bits.
func (s *Scorer) scoreFew(b *Batch) {
	m, rows, f := s.p.m, b.Rows(), &s.few
	records := m.Records()
	width := len(m.Feature)
	s.reset(rows)
	s.cols.fill(b, width)
	if m.Columns() > width {
		f.columns = append(f.columns, uint32(width))
	}
	f.current = append(f.current[:0], make([]float32, len(f.columns))...)
	f.frames = f.frames[:0]
	for n := range m.Tree.Len() {
		f.leaveTo(m.Above(int32(n)))
		level := len(f.frames)
		scores := s.level(level, rows)
		if level == 0 {
			clear(scores)
		} else {
			copy(scores, s.levels[level-1])
		}
		var frame *fewFrame
		if !m.Tree.Leaf[n] && m.Form.Weights == form.Overrides {
			frame = f.push(int32(n))
		}
		s.addFew(records[n], scores, frame)
		s.scored(int32(n), scores)
	}
}

// addFew adds x.(w_n - w_parent) to every row's score. A frame that is not nil saves the changes to
// the path.
func (s *Scorer) addFew(rec shard.Record, scores []float64, frame *fewFrame) {
	f, from := &s.few, 0
	width := len(s.cols.begin) - 1
	for j, c := range f.columns {
		k := lookUp(rec.Columns, from, c)
		if k == len(rec.Columns) {
			return
		}
		if from = k; rec.Columns[k] != c {
			continue
		}
		v := rec.Values[k]
		d := float64(v) - float64(f.current[j])
		if int(c) >= width {
			d *= s.p.bias
			for row := range scores {
				scores[row] += d
			}
		} else {
			for _, x := range s.cols.entries[s.cols.begin[c]:s.cols.begin[c+1]] {
				scores[x.row] += float64(d * float64(x.value))
			}
		}
		if frame != nil {
			frame.at, frame.old = append(frame.at, int32(j)), append(frame.old, f.current[j])
			f.current[j] = v
		}
	}
}

// lookUp returns the first index at or after from whose column is at least c. It gallops: steps
// double, then halve, so the cost is logarithmic in the distance.
func lookUp(columns []uint32, from int, c uint32) int {
	step, to := 1, from
	for to < len(columns) && columns[to] < c {
		from, to = to+1, to+step
		step *= 2
	}
	to = min(to, len(columns))
	for from < to {
		if mid := int(uint(from+to) / 2); columns[mid] < c {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from
}

// push enters node n.
func (f *few) push(n int32) *fewFrame {
	k := len(f.frames)
	if k < cap(f.frames) {
		f.frames = f.frames[:k+1]
	} else {
		f.frames = append(f.frames, fewFrame{})
	}
	frame := &f.frames[k]
	frame.node, frame.at, frame.old = n, frame.at[:0], frame.old[:0]
	return frame
}

// leaveTo leaves nodes until p is the one entered last.
func (f *few) leaveTo(p int32) {
	for k := len(f.frames) - 1; k >= 0 && f.frames[k].node != p; k-- {
		frame := &f.frames[k]
		for i, j := range frame.at {
			f.current[j] = frame.old[i]
		}
		f.frames = f.frames[:k]
	}
}
