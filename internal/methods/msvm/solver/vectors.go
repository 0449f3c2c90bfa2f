package solver

import "taxon/mapper"

// interleaved is the greatest number of classes whose vectors are stored feature by feature, so
// that an instance is scored at all of them at once. With more classes a pass considers a small
// part of them, and vectors are stored one after another.
const interleaved = 128

// vectors are the vectors of all classes.
type vectors struct {
	rows *mapper.Problem
	// width is the length of a vector: the features and the bias.
	width int
	// w holds feature f of class m at f*step + m*classStride.
	w []float64
	// step is a multiple of a line where vectors are stored feature by feature.
	step        int
	classStride int
	kernel      kernel
	args        rowArgs
	by          [line]float64
	// some is scratch for scores.
	some []float64
}

// newVectors returns vectors of zeros for this many classes.
func newVectors(rows *mapper.Problem, classes int) vectors {
	width := rows.X.Cols + 1
	v := vectors{rows: rows, width: width, step: 1, classStride: width, kernel: kernelOf(rows.Kernel)}
	if classes <= interleaved {
		v.step, v.classStride = (classes+line-1)/line*line, 1
		classes = v.step
		v.some = make([]float64, v.step)
	}
	v.w = make([]float64, width*classes)
	return v
}

// move is a change of a class's vector: the multiple `by` of an instance is added to it.
type move struct {
	class int32
	by    float64
}

// add adds by*x_i to w_m for each move (m, by).
func (s *vectors) add(i int, moves []move) {
	if s.classStride == 1 {
		s.addAll(i, moves)
		return
	}
	idx, val := s.rows.X.Row(i)
	val = val[:len(idx)]
	bias := float64(s.rows.Bias)
	for _, m := range moves {
		w := s.w[int(m.class)*s.classStride:][:s.classStride]
		for k, f := range idx {
			w[f] += float64(m.by * float64(val[k]))
		}
		w[s.width-1] += float64(m.by * bias)
	}
}

// scores sets g to the scores of instance i at some classes, and returns the score at class y.
func (s *vectors) scores(i, y int, classes []uint32, g []float64) (own float64) {
	if s.classStride == 1 {
		s.scoreAll(i, s.some)
		for k, m := range classes {
			g[k] = s.some[m]
		}
		return s.some[y]
	}
	idx, val := s.rows.X.Row(i)
	for k, m := range classes {
		g[k] = s.product(int(m), idx, val[:len(idx)])
	}
	return s.product(y, idx, val)
}

// product returns x.w for a class whose vector is stored on its own. It computes four partial sums.
func (s *vectors) product(m int, idx []uint32, val []float32) float64 {
	w := s.w[m*s.classStride:][:s.classStride]
	a, b, c, d := float64(w[s.width-1]*float64(s.rows.Bias)), 0.0, 0.0, 0.0
	for len(idx) >= 4 && len(val) >= 4 {
		a += float64(w[idx[0]] * float64(val[0]))
		b += float64(w[idx[1]] * float64(val[1]))
		c += float64(w[idx[2]] * float64(val[2]))
		d += float64(w[idx[3]] * float64(val[3]))
		idx, val = idx[4:], val[4:]
	}
	for k, f := range idx {
		a += float64(w[f] * float64(val[k]))
	}
	return (a + b) + (c + d)
}
