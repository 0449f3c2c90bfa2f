package solver

import (
	"unsafe"

	"taxon/mapper"
)

// line is the number of classes whose weights of a feature fill a cache line.
const line = 8

// rowArgs is the argument of a kernel on one instance. Assembly knows its layout.
type rowArgs struct {
	// idx and val have the n features and their values.
	idx *uint32
	val *float32
	n   int

	// w points to the weights of the first feature (one or several lines), and last to those of the
	// bias feature.
	w    *float64
	last *float64
	// stride is the number of bytes from a feature's weights to the next one's.
	stride int
	// lines is the number of lines of scores.
	lines int
	// out holds the scores of all classes, or the multiples of the instance to add to the classes
	// of one line.
	out  *float64
	bias float64
}

// kernel holds the loops over an instance's entries. Assembly and Go give equal bits: for each
// class, products are rounded and added entry by entry, the bias first.
type kernel struct{ scores, add func(*rowArgs) }

// kernelOf returns the kernel that corresponds to one of package mapper.
func kernelOf(k mapper.Kernel) kernel {
	if found, ok := native()[k.String()]; ok {
		return found
	}
	return kernel{scoreLines, addLine}
}

// scoreLines sets out to the scores of an instance.
func scoreLines(e *rowArgs) {
	classes := e.lines * line
	out, last := unsafe.Slice(e.out, classes), unsafe.Slice(e.last, classes)
	for m := range out {
		out[m] = float64(last[m] * e.bias)
	}
	val := unsafe.Slice(e.val, e.n)
	for k, f := range unsafe.Slice(e.idx, e.n) {
		v := float64(val[k])
		w := unsafe.Slice((*float64)(unsafe.Add(unsafe.Pointer(e.w), int(f)*e.stride)), classes)
		for m := range out {
			out[m] += float64(w[m] * v)
		}
	}
}

// addLine adds out times the instance to a line of each feature.
func addLine(e *rowArgs) {
	by := unsafe.Slice(e.out, line)
	val := unsafe.Slice(e.val, e.n)
	for k, f := range unsafe.Slice(e.idx, e.n) {
		v := float64(val[k])
		w := unsafe.Slice((*float64)(unsafe.Add(unsafe.Pointer(e.w), int(f)*e.stride)), line)
		for m := range by {
			w[m] += float64(by[m] * v)
		}
	}
	for m, x := range unsafe.Slice(e.last, line) {
		unsafe.Slice(e.last, line)[m] = x + float64(by[m]*e.bias)
	}
}

// open sets up the arguments of instance i for the vectors.
func (s *vectors) open(i int) *rowArgs {
	idx, val := s.rows.X.Row(i)
	s.args = rowArgs{idx: unsafe.SliceData(idx), val: unsafe.SliceData(val), n: len(idx), w: &s.w[0],
		last:   &s.w[(s.width-1)*s.step],
		stride: 8 * s.step, lines: s.step / line, bias: float64(s.rows.Bias)}
	return &s.args
}

// scoreAll sets out to the scores of instance i at all classes. out must have room for whole lines.
func (s *vectors) scoreAll(i int, out []float64) {
	e := s.open(i)
	e.out = &out[:s.step][0]
	s.kernel.scores(e)
}

// addAll does what add does, for vectors that are stored feature by feature. It visits only the
// lines that have a move.
func (s *vectors) addAll(i int, moves []move) {
	e := s.open(i)
	for len(moves) > 0 {
		s.by = [line]float64{}
		at, rest := moves[0].class/line, moves[:0]
		for _, m := range moves {
			if m.class/line == at {
				s.by[m.class%line] += m.by
			} else {
				rest = append(rest, m)
			}
		}
		moves = rest
		e.w, e.last, e.out = &s.w[int(at)*line], &s.w[(s.width-1)*s.step+int(at)*line], &s.by[0]
		s.kernel.add(e)
	}
}
