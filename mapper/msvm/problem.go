// Package msvm solves the multi-class support vector machine of Crammer and Singer:
//
//	min_W  P(W) = 1/2 sum_m ||w_m||^2 + sum_i C_i xi_i,   xi_i = max_m (e_im + w_m.x_i) - w_{y_i}.x_i
//
// over classes m, with e_im = 0 for m = y_i and 1 for the others. Its dual has a number b_im >= 0
// for each instance and class m other than y_i, with b_i = sum_m b_im <= C_i:
//
//	max_b  D(b) = sum_i b_i - 1/2 sum_m ||w_m||^2,   w_m = sum_{i: y_i = m} b_i x_i - sum_{i: y_i != m} b_im x_i
//
// It is solved by the sequential dual method (Keerthi, Sundararajan, Chang, Hsieh, Lin: A
// sequential dual method for large scale multi-class linear SVMs, KDD 2008): instance by
// instance the problem in all its b_im is solved exactly. An instance looks only at the classes
// of its working set. A pricing pass scores every instance at every class, sixteen classes at a
// time, gives P and D, and draws the next working sets.
//
// With G_im = e_im + w_m.x_i an instance's part of the gap P - D is
//
//	(C_i - b_i) (max_m G_im - G_iy) + sum_m b_im (max_m' G_im' - G_im) >= 0
//
// which the descent adds up as it goes.
package msvm

import (
	"slices"

	"taxon/mapper"
)

// Problem is what there is to solve. Read-only.
type Problem struct {
	Rows    *mapper.Problem // instances, C, weights, bias; its Loss is not looked at
	Class   []int32         // y of each instance
	Classes int
}

// State is what is kept between solves: the duals of each instance's working set. The zero
// value is that of nothing solved. Classes of an instance ascend and are not its own.
type State struct {
	Primal, Dual float64  // as they were priced
	Begin        []uint64 // instances + 1; instance i has Class[Begin[i]:Begin[i+1]]
	Class        []uint32
	Value        []float64 // b_im, often 0
}

// Options of a solve.
type Options struct {
	Gap       float64 // the relative gap that is wanted
	MaxEpochs int     // bounds the passes over the working sets; 0: only price
	Seed      uint64  // of the order of instances
}

// Sums are the figures of a solve.
type Sums struct {
	Primal, Dual float64
	Support      int   // nonzero duals
	Working      int   // duals of the new working sets
	Epochs       int   // passes over the working sets
	Visits       int64 // nonzeros times classes touched
}

// startClasses is how many classes an instance begins with where there are more.
const startClasses = 16

// start is the state before the first solve: a few classes an instance, others for others,
// so that all are there.
func (p *Problem) start() *State {
	n, s := p.Rows.X.Rows, &State{}
	each := min(p.Classes-1, startClasses)
	s.Begin = make([]uint64, 1, n+1)
	s.Class, s.Value = make([]uint32, 0, n*each), make([]float64, n*each)
	for i := range n {
		at := len(s.Class)
		for k := range each { // steps of (classes-1)/each from i on, around y
			m := (i + k*(p.Classes-1)/each) % (p.Classes - 1)
			if m >= int(p.Class[i]) {
				m++
			}
			s.Class = append(s.Class, uint32(m))
		}
		slices.Sort(s.Class[at:])
		s.Begin = append(s.Begin, uint64(len(s.Class)))
	}
	return s
}

// interleaved: vectors of up to so many classes stand feature by feature, so that an instance's
// classes share cache lines. Of more classes an instance looks at a small part, and they stand
// one by one.
const interleaved = 128

// Solver owns the memory of solves: 8 bytes a class and feature, and a tile of sixteen classes.
// For one goroutine.
type Solver struct {
	p      *Problem
	width  int       // of a vector: the features and the bias
	w      []float64 // feature f of class m stands at f*step + m*leap
	step   int
	leap   int
	scorer *mapper.Scorer
	out    [mapper.ScoreRows][mapper.Lanes]float32

	// The state at work. Classes of an instance that shrank away stand behind the live ones.
	state *State
	live  []uint32 // how many of each instance's classes are looked at
	total []float64
	order []uint32
	sub   []candidate
	g     []float64
	moves []move
}

// move is what is added to a class's vector, times an instance.
type move struct {
	class int32
	by    float64
}

// NewSolver is a solver of the problem.
func (p *Problem) NewSolver() *Solver {
	width := p.Rows.X.Cols + 1
	s := &Solver{p: p, width: width, w: make([]float64, width*p.Classes), step: 1, leap: width, scorer: p.Rows.NewScorer()}
	if p.Classes <= interleaved {
		s.step, s.leap = p.Classes, 1
	}
	return s
}

// rebuild adds w up from the state's duals, instance by instance.
func (s *Solver) rebuild() {
	clear(s.w)
	for i := range s.p.Rows.X.Rows {
		sum, moves := 0.0, s.moves[:0]
		for k := s.state.Begin[i]; k < s.state.Begin[i+1]; k++ {
			if b := s.state.Value[k]; b != 0 {
				sum += b
				moves = append(moves, move{int32(s.state.Class[k]), -b})
			}
		}
		if sum != 0 {
			s.add(i, append(moves, move{s.p.Class[i], sum}))
		}
		s.moves = moves
	}
}

// add is w_m += by x_i for each move.
func (s *Solver) add(i int, moves []move) {
	idx, val := s.p.Rows.X.Row(i)
	val = val[:len(idx)]
	bias := float64(s.p.Rows.Bias)
	last := s.w[(s.width-1)*s.step:]
	if s.leap == 1 {
		for k, f := range idx {
			v := float64(val[k])
			w := s.w[int(f)*s.step:][:s.step]
			for _, m := range moves {
				w[m.class] += float64(m.by * v)
			}
		}
	} else {
		for _, m := range moves {
			w := s.w[int(m.class)*s.leap:][:s.leap]
			for k, f := range idx {
				w[f] += float64(m.by * float64(val[k]))
			}
		}
	}
	for _, m := range moves {
		last[int(m.class)*s.leap] += float64(m.by * bias)
	}
}

// scores sets g to the scores of instance i at some classes, and returns its own class's.
func (s *Solver) scores(i int, classes []uint32, g []float64) (own float64) {
	idx, val := s.p.Rows.X.Row(i)
	val = val[:len(idx)]
	y, bias := int(s.p.Class[i]), float64(s.p.Rows.Bias)
	g = g[:len(classes)]
	last := s.w[(s.width-1)*s.step:]
	own = float64(last[y*s.leap] * bias)
	for k, m := range classes {
		g[k] = float64(last[int(m)*s.leap] * bias)
	}
	if s.leap == 1 {
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

// product is x.w of one class whose vector stands by itself, without the bias, as four sums.
func (s *Solver) product(m int, idx []uint32, val []float32) float64 {
	w := s.w[m*s.leap:][:s.leap]
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
func (s *Solver) rounded(i int, m int32) (sum float64) {
	idx, val := s.p.Rows.X.Row(i)
	val = val[:len(idx)]
	w := s.w[int(m)*s.leap:]
	for k, f := range idx {
		sum += float64(float64(float32(w[int(f)*s.step])) * float64(val[k]))
	}
	return sum + float64(float64(float32(w[(s.width-1)*s.step]))*float64(s.p.Rows.Bias))
}

// Weights are the vectors of a state's duals in float32, class by class: the columns that are
// not zero, the bias last.
func (s *Solver) Weights(st *State) []mapper.Override {
	s.state = st
	s.rebuild()
	out := make([]mapper.Override, s.p.Classes)
	for m := range out {
		for f := range s.width {
			if v := float32(s.w[f*s.step+m*s.leap]); v != 0 {
				out[m].Feature, out[m].Value = append(out[m].Feature, uint32(f)), append(out[m].Value, v)
			}
		}
	}
	return out
}

// Carry makes duals of a problem with one C the start of a problem with another. All are
// scaled alike: by the quotient of the two, but for a greater C only as far as D rises.
func (s *State) Carry(from, to float64) {
	sum, by := 0.0, to/from
	for _, b := range s.Value {
		sum += b
	}
	if by > 1 { // D of by times b is by sum - by^2 (sum - D)
		by = max(1, min(by, sum/(2*(sum-s.Dual))))
	}
	for k := range s.Value {
		s.Value[k] *= by
	}
	s.Primal, s.Dual = 0, 0 // not priced
}
