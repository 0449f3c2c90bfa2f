package reducer

import (
	"cmp"
	"fmt"
	"slices"
)

// Rule says how the internals move.
type Rule uint8

const (
	Support Rule = iota // support-aware exact solve
	Family              // exact solve, all terminals of a node stiff where anything below it has support
	Full                // plain exact solve
	Mean                // parent mean over one independent set
	Jacobi              // damped mean of all nodes at once
	None                // no move: certificate only
	Emit                // no move: the result is y itself
)

// ParseRule reads the name that tasks use.
func ParseRule(name string) (Rule, error) {
	for r, n := range [...]string{"support", "family", "full", "mean", "jacobi", "none", "emit"} {
		if n == name {
			return Rule(r), nil
		}
	}
	return 0, fmt.Errorf("unknown reduce rule %q", name)
}

// Contribution is one block's part for one parent: on Feature (ascending, within the
// range) the sum of its terminals' v_n and the number of them that are stiff there.
type Contribution struct {
	Parent  int32 // internal node; graph: fan
	Feature []uint32
	Sum     []float64
	Stiff   []uint8
}

// Task is one update over the features [Lo, Hi).
type Task struct {
	Forest  *Forest
	Lo, Hi  uint32
	Rule    Rule
	Set     int32   // rule Mean: the set that moves
	Damping float64 // rule Jacobi: weight of the new value, in (0, 1]
	Certify bool
	Beta    float32
	Degrees bool // stiffness comes in StiffUnits
	Smooth  bool // the certificate is that of a smooth loss: see certify
	Whole   bool // graph: contributions hold the terminals' whole w_n, not their v_n (rules Mean, Jacobi and what prices them)
}

// StiffUnit is what one terminal that is wholly stiff counts in the contributions of
// losses whose terminals are stiff by degrees: all but the hinge.
const StiffUnit = 15

// Sums are the range's shares of the joint figures.
type Sums struct {
	Primal  float64 // 1/2 sum over internal edges of ||y_p - y_parent(p)||^2 (Certify)
	Dual    float64 // -1/2 sum over internals of ||U_p||^2 (Certify)
	Restart float64 // (y - x+)' M (x+ - x), M the system's matrix
	Moved   float64 // ||x+ - y||^2 in the edge norm
	Entries int64   // (node, feature) pairs worked on
}

// Run updates the internals from the blocks' contributions, which must come in one
// fixed order: equal parents are added up in it. in is reordered by parent.
func (t Task) Run(in []Contribution, x, prev *Vectors) (*Vectors, Sums) {
	return new(Scratch).Run(t, in, x, prev)
}

// Scratch is the memory of one Run at a time, to be used again by the next; the zero value
// is ready. What Run returns shares nothing with it.
type Scratch struct {
	x, prev  columns
	in, grad inputs
	out      builder
	at       []int32 // node -> position in the column, if it stands there
	path     []int32
	next     []int32 // of counting sorts
	col      column
}

// Run is Task.Run with memory to reuse.
func (s *Scratch) Run(t Task, in []Contribution, x, prev *Vectors) (*Vectors, Sums) {
	slices.SortStableFunc(in, func(a, b Contribution) int { return cmp.Compare(a.Parent, b.Parent) })
	nodes := len(t.Forest.Parent)
	r := &run{Scratch: s, Task: t, unit: 1, prev: &s.prev}
	if t.Degrees {
		r.unit = 1.0 / StiffUnit
	}
	if t.Smooth {
		var gradients []Contribution
		in, gradients = t.split(in)
		r.grad = &s.grad
		s.gather(r.grad, gradients, t.Lo, t.Hi)
	}
	s.gather(&s.in, in, t.Lo, t.Hi)
	s.transpose(&s.x, x, t.Lo, t.Hi)
	if prev == x {
		r.prev = &s.x
	} else {
		s.transpose(&s.prev, prev, t.Lo, t.Hi)
	}
	s.out.reset(nodes, int(t.Hi-t.Lo))
	if t.Forest.Graph != nil {
		r.graph()
		return s.out.vectors(t.Lo), r.sums
	}
	s.at = resize(s.at, nodes)
	s.col.reset(nodes)
	r.dense = t.Rule == Full || t.Rule == Mean || t.Rule == Jacobi
	r.rigid = t.Rule == Full || t.Rule == Family
	for f := range int32(t.Hi - t.Lo) {
		r.column(f)
	}
	return s.out.vectors(t.Lo), r.sums
}

// split parts the contributions of a smooth loss: those of v and, under the parents'
// numbers and as many more, those of G, that a priced block sends for the certificate.
func (t Task) split(in []Contribution) (v, g []Contribution) {
	parents := int32(len(t.Forest.Parent))
	if t.Forest.Graph != nil {
		parents = int32(len(t.Forest.Graph.Fans))
	}
	for _, c := range in {
		if c.Parent >= parents {
			c.Parent -= parents
			g = append(g, c)
			continue
		}
		v = append(v, c)
	}
	return v, g
}

// run is the state of one Task.
type run struct {
	*Scratch
	Task
	prev  *columns // may be x's
	grad  *inputs  // smooth losses: G; nil: not sent
	sums  Sums
	unit  float64 // what a contribution's unit of stiffness counts
	dense bool    // columns hold all nodes
	rigid bool    // all terminals are stiff
}

// column solves feature lo+f.
func (r *run) column(f int32) {
	if r.empty(f) {
		return // nobody moves it: zero everywhere
	}
	r.layOut(f)
	c := &r.col
	r.sums.Entries += int64(len(c.node))
	if r.Certify {
		r.certify()
	}
	switch r.Rule {
	case Support, Family, Full:
		c.solve()
	case Mean:
		r.mean()
	case Jacobi:
		r.jacobi()
	case None:
		return
	case Emit:
		copy(c.next, c.y)
		r.emit(f)
		return
	}
	r.momentum()
	r.emit(f)
}

// empty says that the feature holds and gets no value anywhere.
func (r *run) empty(f int32) bool {
	return len(r.x.of(f))+len(r.prev.of(f))+len(r.in.of(f)) == 0 && (r.grad == nil || len(r.grad.of(f)) == 0)
}
