package msvm

import "taxon/mapper"

// interleaved is the greatest number of classes whose vectors are stored feature by feature, so
// that an instance's classes share cache lines. Of more classes an instance looks at a small
// part, and the vectors are stored one after another.
const interleaved = 128

// vectors are those of all classes.
type vectors struct {
	rows        *mapper.Problem
	width       int       // of a vector: the features and the bias
	w           []float64 // feature f of class m is at f*step + m*classStride
	step        int
	classStride int
}

func newVectors(rows *mapper.Problem, classes int) vectors {
	width := rows.X.Cols + 1
	v := vectors{rows: rows, width: width, w: make([]float64, width*classes), step: 1, classStride: width}
	if classes <= interleaved {
		v.step, v.classStride = classes, 1
	}
	return v
}

// move is what is added to a class's vector, times an instance.
type move struct {
	class int32
	by    float64
}

// add is w_m += by x_i for each move.
func (s *vectors) add(i int, moves []move) {
	idx, val := s.rows.X.Row(i)
	val = val[:len(idx)]
	bias := float64(s.rows.Bias)
	last := s.w[(s.width-1)*s.step:]
	if s.classStride == 1 {
		for k, f := range idx {
			v := float64(val[k])
			w := s.w[int(f)*s.step:][:s.step]
			for _, m := range moves {
				w[m.class] += float64(m.by * v)
			}
		}
	} else {
		for _, m := range moves {
			w := s.w[int(m.class)*s.classStride:][:s.classStride]
			for k, f := range idx {
				w[f] += float64(m.by * float64(val[k]))
			}
		}
	}
	for _, m := range moves {
		last[int(m.class)*s.classStride] += float64(m.by * bias)
	}
}

// scores sets g to the scores of instance i at some classes, and returns that of class y.
func (s *vectors) scores(i, y int, classes []uint32, g []float64) (own float64) {
	idx, val := s.rows.X.Row(i)
	val = val[:len(idx)]
	bias := float64(s.rows.Bias)
	g = g[:len(classes)]
	last := s.w[(s.width-1)*s.step:]
	own = float64(last[y*s.classStride] * bias)
	for k, m := range classes {
		g[k] = float64(last[int(m)*s.classStride] * bias)
	}
	if s.classStride == 1 {
		for k, f := range idx {
			v := float64(val[k])
			w := s.w[int(f)*s.step:][:s.step]
			own += float64(w[y] * v)
			for k, m := range classes {
				g[k] += float64(w[m] * v)
			}
		}
		return own
	}
	own += s.product(y, idx, val)
	for k, m := range classes {
		g[k] += s.product(int(m), idx, val)
	}
	return own
}

// product is x.w without the bias, for a class whose vector is stored on its own. It has four
// partial sums.
func (s *vectors) product(m int, idx []uint32, val []float32) float64 {
	w := s.w[m*s.classStride:][:s.classStride]
	var a, b, c, d float64
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

// rounded is w_m.x_i at the weights as they are written, in float32.
func (s *vectors) rounded(i int, m int32) (sum float64) {
	idx, val := s.rows.X.Row(i)
	val = val[:len(idx)]
	w := s.w[int(m)*s.classStride:]
	for k, f := range idx {
		sum += float64(float64(float32(w[int(f)*s.step])) * float64(val[k]))
	}
	return sum + float64(float64(float32(w[(s.width-1)*s.step]))*float64(s.rows.Bias))
}
