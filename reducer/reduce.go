package reducer

import (
	"cmp"
	"fmt"
	"slices"

	"taxon/internal/linalg/contribution"
)

// Rule says how the internals move.
type Rule uint8

const (
	Support Rule = iota // exact solve with the curvature on the support
	Family              // exact solve with full curvature of all terminals of a node where anything below it has support
	Full                // exact solve with the full curvature of all terminals
	Mean                // parent mean over one independent set
	Jacobi              // damped mean of all nodes at once
	None                // no move: certificate only
	Emit                // no move: the result is y itself
	ToZero              // the internals are zero again
)

// ParseRule reads the name that tasks use.
func ParseRule(name string) (Rule, error) {
	for r, n := range [...]string{"support", "family", "full", "mean", "jacobi", "none", "emit", "zero"} {
		if n == name {
			return Rule(r), nil
		}
	}
	return 0, fmt.Errorf("unknown reduce rule %q", name)
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
	// Follower, rule Support on a tree: curvature of a terminal without support. It follows its parent
	// freely, but only until it is moved so far that rows of its own resist.
	Follower float64
	Degrees  bool // the contributions' curvature is in codes of degrees, else in terminals
	Smooth   bool // the certificate is that of a smooth loss: see certify
	Whole    bool // graph: contributions hold the terminals' whole w_n, not their v_n (rules Mean and Jacobi, and the pricing pass of both)
	// Unwanted is asked before each feature. Where it says so, Run ends, and what it returns is of no
	// use. nil: it is never asked.
	Unwanted func() bool
}

func (t *Task) unwanted() bool { return t.Unwanted != nil && t.Unwanted() }

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
func (t Task) Run(in []contribution.Contribution, x, prev *Vectors) (*Vectors, Sums) {
	return new(Scratch).Run(t, in, x, prev)
}

// Scratch is the memory of one Run at a time, to be used again by the next; the zero value
// is ready. What Run returns shares nothing with it until Recycle takes it.
type Scratch struct {
	Plain bool // loops are Go's, even if the CPU could run faster ones

	x, prev  columns
	in, grad inputs
	out      builder
	at       []int32 // node -> its position in the column, if it has one
	edges    []float64
	below    []float64 // node -> terminals of its subtree
	path     []int32
	next     []int32 // of counting sorts
	col      column
	strips   strips
}

// Recycle takes back a result that nobody needs any more: the next one has its memory.
func (s *Scratch) Recycle(v *Vectors) { s.out.spare = v }

// Run is Task.Run with memory to reuse.
func (s *Scratch) Run(t Task, in []contribution.Contribution, x, prev *Vectors) (*Vectors, Sums) {
	if t.Rule == ToZero {
		return Zero(len(t.Forest.Parent)), Sums{}
	}
	slices.SortStableFunc(in, func(a, b contribution.Contribution) int { return cmp.Compare(a.Parent, b.Parent) })
	nodes := len(t.Forest.Parent)
	r := &run{Scratch: s, Task: t, prev: &s.prev, degrees: t.degreesOf()}
	r.dense = t.Rule == Full || t.Rule == Mean || t.Rule == Jacobi
	r.full = t.Rule == Full || t.Rule == Family
	if t.Smooth {
		var gradients []contribution.Contribution
		in, gradients = t.split(in)
		r.grad = &s.grad
		s.gather(r.grad, gradients, t.Lo, t.Hi, &r.degrees)
	}
	s.gather(&s.in, in, t.Lo, t.Hi, &r.degrees)
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
	s.at, s.edges = resize(s.at, nodes), resize(s.edges, nodes)
	for p := range s.edges {
		s.edges[p] = t.Forest.edge(int32(p))
	}
	s.below = t.Forest.below(s.below)
	s.col.reset(nodes)
	for f := range int32(t.Hi - t.Lo) {
		if t.unwanted() {
			break
		}
		r.column(f)
	}
	return s.out.vectors(t.Lo), r.sums
}

// degreesOf is what each value of a contribution's curvature counts.
func (t *Task) degreesOf() (out [256]float64) {
	for k := range out {
		out[k] = float64(k)
		if t.Degrees {
			out[k] = contribution.Degree(uint8(k))
			if g := t.Forest.Graph; g != nil && g.Anchor == 0 && k > 0 {
				out[k] = max(out[k], leastHold)
			}
		}
	}
	return out
}

// leastHold is the least curvature of a graph without an anchor. Nothing else holds back a shift of
// a whole component, and what the inner solves leave would move it far.
const leastHold = 1.0 / 16

// split separates the contributions of a smooth loss. Those with a parent's number are of v.
// Those with a parent's number plus the number of nodes are of G, which a priced block sends for
// the certificate.
func (t Task) split(in []contribution.Contribution) (v, g []contribution.Contribution) {
	parents := int32(len(t.Forest.Parent))
	if t.Forest.Graph != nil {
		parents = int32(len(t.Forest.Graph.LeafGroups))
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
	prev    *columns // may be x's
	grad    *inputs  // smooth losses: G; nil: not sent
	sums    Sums
	dense   bool // columns hold all nodes
	degrees [256]float64
	full    bool // all terminals have full curvature
}

// column solves feature lo+f.
func (r *run) column(f int32) {
	if r.empty(f) {
		return // nobody moves it: zero everywhere
	}
	r.layOut(f)
	c := &r.col
	r.sums.Entries += int64(len(c.cell))
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
		for i := range c.cell {
			c.cell[i].next = c.cell[i].y
		}
		r.emit(f)
		return
	}
	r.momentum()
	r.emit(f)
}

// empty says that the feature holds and gets no value anywhere, or that none may move there: the
// terminals are drawn to zero then, and all of its edges' shares are the blocks'.
func (r *run) empty(f int32) bool {
	return r.Lo+uint32(f)+1 == r.Forest.Apart || len(r.x.of(f))+len(r.prev.of(f))+len(r.in.of(f)) == 0 && (r.grad == nil || len(r.grad.of(f)) == 0)
}
