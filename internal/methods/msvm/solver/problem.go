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
// instance the problem in all its b_im is solved exactly. A pass considers only the classes of an
// instance's working set. A full pass scores every instance at every class, sixteen classes at a
// time, gives P and D, and draws the next working sets, which is called pricing (column generation).
//
// With few classes (interleaved) there are no working sets: every pass scores an instance at all
// classes (narrow.go). On a tree the classes become nodes (type Tree).
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

// Problem is the problem that a Solver solves. It is read-only.
type Problem struct {
	// Rows gives the instances, C, weights and bias. Its Loss is ignored.
	Rows *mapper.Problem
	// Class holds y of each instance.
	Class   []int32
	Classes int
	// Tree makes the classes the leaves of a tree, which shapes regularisation, margins and losses.
	// Class numbers and Classes are then those of all nodes. A nil Tree stands for the problem
	// above.
	Tree *Tree
}

// State holds the duals of each instance's working set between two solves. The zero value has no
// instances. The classes of an instance are ascending and do not include its own class.
type State struct {
	// Primal and Dual are P and D of the last full pass. P may be the objective of the vectors in
	// float64; see certified.
	Primal, Dual float64
	// Begin has one element more than there are instances. The working set of instance i is
	// Class[Begin[i]:Begin[i+1]].
	Begin []uint64
	Class []uint32
	// Value is b_im, often 0.
	Value []float64
	// Sign is, for the form Orthogonal, S of the pairs of nodes and ancestors.
	Sign []float64
}

// Options determines when a solve ends.
type Options struct {
	// Gap is the relative gap to reach.
	Gap float64

	// MaxEpochs bounds the number of passes over the working sets. If it is 0, there is only the
	// full pass.
	MaxEpochs int

	// Seed determines the order of instances.
	Seed uint64
}

// Sums are the figures of a solve.
type Sums struct {
	Primal, Dual float64
	// Support is the number of nonzero duals.
	Support int
	// Working is the number of duals of the new working sets.
	Working int
	// Epochs is the number of passes over the working sets.
	Epochs int
	// Visits counts the pairs of a nonzero and a class that were touched.
	Visits int64
}

// startClasses is the number of classes that an instance's first working set has, if there are
// more.
const startClasses = 16

// start returns the state before the first solve. Each instance has a few classes, and together
// they cover all classes.
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
		for k := range each { // evenly spaced from i on, without y
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

// Solver solves a problem. It owns the memory of solves, which is 8 bytes per class and feature,
// and a tile of sixteen classes. Only one goroutine may use it at a time.
type Solver struct {
	p *Problem
	vectors
	scorer *mapper.Scorer
	out    [mapper.ScoreRows][mapper.Lanes]float32

	// state is the state being improved. The classes that an instance dropped follow its live ones.
	state *State
	// live is the number of live classes of each instance: those that passes still visit.
	live  []uint32
	total []float64
	order []uint32
	sub   []candidate
	g     []float64
	moves []move
	// t is nil without a tree.
	t *nodes

	// duals to spread are used with few classes: duals has those above zero of each instance, all the
	// costs of an instance, and spread a zero for each class.
	duals  [][]dual
	all    []float64
	list   []dual
	join   []joined
	class  []uint32
	b      []float64
	spread []float64
	// then, wThen and before are the duals, vectors and D of the pass before the last extrapolation.
	// momentum counts extrapolations, and is 0 when there is nothing to extrapolate from.
	then             [][]dual
	wThen            []float64
	before, momentum float64
}

// NewSolver returns a solver of the problem.
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

// rebuild computes w from the state's duals, and with Orthogonal M from its signs.
func (s *Solver) rebuild() {
	if s.t != nil && s.t.form == Orthogonal {
		s.sign()
	}
	s.fill()
}

// fill computes w from the state's duals, instance by instance. M stays as it is.
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

// Weights returns the vectors of a state's duals in float32, class by class. They have the columns
// that are not zero, with the bias last.
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

// Carry turns duals for the value `from` of C into duals for the value `to`. All are multiplied by
// the same factor, which is to/from. If C grows, the factor is limited to the largest that still
// raises D, and with a tree to 1.
func (s *State) Carry(from, to float64, tree bool) {
	sum, by := 0.0, to/from
	if tree { // the parts of D are not known
		by = min(by, 1)
	}
	for _, b := range s.Value {
		sum += b
	}
	// At by times b, D is by sum - by^2 (sum - D).
	if by > 1 {
		by = max(1, min(by, sum/(2*(sum-s.Dual))))
	}
	for k := range s.Value {
		s.Value[k] *= by
	}
	s.Primal, s.Dual = 0, 0 // there was no full pass
}
