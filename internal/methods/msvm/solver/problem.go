// Package solver solves the multi-class support vector machine of Crammer and Singer:
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
package solver

import (
	"slices"

	"taxon/mapper"
)

// Problem is what there is to solve. Read-only.
type Problem struct {
	Rows    *mapper.Problem // instances, C, weights, bias; its Loss is not looked at
	Class   []int32         // y of each instance
	Classes int
	// Tree: the classes are the leaves of a tree, which shapes regularisation, margins and losses.
	// Class numbers and Classes are then those of all nodes. nil: the problem above.
	Tree *Tree
}

// State is what is kept between solves: the duals of each instance's working set. The zero
// value is that of nothing solved. Classes of an instance ascend and are not its own.
type State struct {
	Primal, Dual float64  // as they were priced; P of the vectors in float64, where it was
	Begin        []uint64 // instances + 1; instance i has Class[Begin[i]:Begin[i+1]]
	Class        []uint32
	Value        []float64 // b_im, often 0
	Sign         []float64 // of Orthogonal: S of the pairs of nodes and ancestors
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

// startClasses is the number of classes that an instance begins with if there are more.
const startClasses = 16

// start is the state before the first solve. Each instance has a few classes, and together they
// cover all.
func (p *Problem) start() *State {
	if p.Tree != nil {
		return p.startTree()
	}
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

// Solver owns the memory of solves: 8 bytes a class and feature, and a tile of sixteen classes.
// For one goroutine.
type Solver struct {
	p *Problem
	vectors
	scorer *mapper.Scorer
	out    [mapper.ScoreRows][mapper.Lanes]float32

	// The state being improved. Classes that an instance dropped come after the live ones.
	state *State
	live  []uint32 // how many of each instance's classes are looked at
	total []float64
	order []uint32
	sub   []candidate
	g     []float64
	moves []move
	t     *nodes // of a tree

	// Of few classes: all duals above zero, and the costs of an instance.
	duals  [][]dual
	all    []float64
	list   []dual
	join   []joined
	class  []uint32
	b      []float64
	spread []float64 // by class, 0
	// The pass before the last leap: its duals, vectors and D. momentum counts leaps; 0: there is
	// none.
	then             [][]dual
	wThen            []float64
	before, momentum float64
}

// NewSolver is a solver of the problem.
func (p *Problem) NewSolver() *Solver {
	s := &Solver{p: p, vectors: newVectors(p.Rows, p.Classes)}
	if s.all, s.spread = make([]float64, s.step), make([]float64, s.step); s.classStride != 1 {
		s.scorer = p.Rows.NewScorer()
	}
	if p.Tree != nil {
		s.t = newNodes(p)
	}
	return s
}

// rebuild computes w from the state's duals, instance by instance.
func (s *Solver) rebuild() {
	if s.t != nil && s.t.form == Orthogonal {
		s.sign()
	}
	s.fill()
}

// fill is rebuild with the signs of Orthogonal unchanged.
func (s *Solver) fill() {
	if clear(s.w); s.t != nil {
		if s.sumUp(); s.t.form != Paths {
			s.solveAll()
		}
		return
	}
	for i := range s.p.Rows.X.Rows {
		sum, moves := 0.0, s.moves[:0]
		for k := s.state.Begin[i]; k < s.state.Begin[i+1]; k++ {
			if b := s.state.Value[k]; b != 0 {
				sum += b
				moves = append(moves, move{int32(s.state.Class[k]), -b})
			}
		}
		if len(moves) > 0 {
			s.add(i, append(moves, move{s.p.Class[i], sum}))
		}
		s.moves = moves
	}
}

// Weights are the vectors of a state's duals in float32, class by class: the columns that are
// not zero, the bias last.
func (s *Solver) Weights(st *State) []mapper.Override {
	s.state = st
	s.rebuild()
	out := make([]mapper.Override, s.p.Classes)
	for m := range out {
		for f := range s.width {
			if v := float32(s.w[f*s.step+m*s.classStride]); v != 0 {
				out[m].Feature, out[m].Value = append(out[m].Feature, uint32(f)), append(out[m].Value, v)
			}
		}
	}
	return out
}

// Carry makes the duals of a problem with one C the start of a problem with another C. All are
// scaled by the same factor, the quotient of the two C. For a greater C it is limited to what
// still raises D, and with a tree to 1.
func (s *State) Carry(from, to float64, tree bool) {
	sum, by := 0.0, to/from
	if tree { // the parts of D are not known
		by = min(by, 1)
	}
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
