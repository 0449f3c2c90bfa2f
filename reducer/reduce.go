package reducer

import (
	"cmp"
	"fmt"
	"slices"

	"taxon/internal/linalg/contribution"
)

// Rule says how the internals move. The package comment has the equations.
type Rule uint8

const (
	// Support solves exactly with the curvature on the support.
	Support Rule = iota
	// Family solves exactly with the full curvature of all terminals of a node where anything below
	// it has support.
	Family
	// Full solves exactly with the full curvature of all terminals.
	Full
	// Mean moves the nodes of one independent set to their neighbours' mean.
	Mean
	// Jacobi moves all nodes towards their neighbours' mean, damped.
	Jacobi
	// None moves nothing: only the certificate's sums are computed.
	None
	// Emit moves nothing: the result is y itself.
	Emit
	// ToZero makes all internals zero.
	ToZero
)

// ParseRule returns the rule with the name that tasks use.
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
	Forest *Forest
	Lo, Hi uint32
	Rule   Rule
	// Set is the set that rule Mean moves.
	Set int32
	// Damping is the share of the way to the mean that rule Jacobi moves, in (0, 1].
	Damping float64
	// Certify asks for the sums Primal and Dual.
	Certify bool
	// Beta is the momentum: y = x + Beta (x - prev).
	Beta float32
	// Follower is, for rule Support on a tree, the curvature of a terminal without support. It
	// follows its parent freely only until it is moved so far that rows of its own resist. If
	// Follower is 0, such terminals do not count.
	Follower float64
	// Degrees says that the contributions' curvature is in codes of degrees. Else it is a number of
	// terminals.
	Degrees bool
	// Smooth says that the certificate is for a smooth loss; see certify.
	Smooth bool
	// Whole says, on a graph, that contributions hold the terminals' whole w_n in place of their
	// v_n, as with the rules Mean and Jacobi and the full pass of both.
	Whole bool
	// Unwanted is called before each feature. When it returns true, Run ends early and its result
	// is invalid. A nil Unwanted is never called.
	Unwanted func() bool
}

// unwanted reports whether the task's result is no longer wanted.
func (t *Task) unwanted() bool { return t.Unwanted != nil && t.Unwanted() }

// Sums holds what the range adds to the sums over all ranges. Primal and Dual are set only if
// Task.Certify is set.
type Sums struct {
	// Primal is 1/2 the sum over internal edges of ||y_p - y_parent(p)||^2.
	Primal float64
	// Dual is -1/2 the sum over internals of ||U_p||^2.
	Dual float64
	// Restart is (y - x+)' M (x+ - x), M being the system's matrix. Momentum restarts when the sum
	// over all ranges is positive.
	Restart float64
	// Moved is ||x+ - y||^2 in the norm of the edges.
	Moved float64
	// Entries is the number of (node, feature) pairs that the task worked on.
	Entries int64
}

// Run updates the internals from the blocks' contributions. They must come in one fixed order,
// because those to equal parents are added up in it. Run sorts in by parent. x and prev may be the
// same.
func (t Task) Run(in []contribution.Contribution, x, prev *Vectors) (*Vectors, Sums) {
	return new(Scratch).Run(t, in, x, prev)
}

// Scratch is the memory of one Run at a time, for the next one to reuse. The zero value is ready.
// What Run returns shares no memory with it until Recycle takes it back.
type Scratch struct {
	// Plain makes Run use the loops in Go, even if the CPU supports faster ones.
	Plain bool

	x, prev  columns
	in, grad inputs
	out      builder
	// at has the position of each node in the column, if it has one.
	at    []int32
	edges []float64
	// below has the number of terminals in each node's subtree.
	below []float64
	path  []int32
	// next is used by counting sorts.
	next   []int32
	col    column
	strips strips
}

// Recycle takes back a result that nobody needs any more: the next one will have its memory.
func (s *Scratch) Recycle(v *Vectors) { s.out.spare = v }

// Run does what Task.Run does with memory to reuse.
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

// degreesOf returns the number for which each value of a contribution's curvature stands.
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

// leastHold is the least curvature of a graph without an anchor, where a contribution has any.
// Nothing else resists a shift of a whole component, which the inner solves' errors would move far.
const leastHold = 1.0 / 16

// split separates the contributions of a smooth loss. Those with a parent's number are v. Those
// with a parent's number plus the number of nodes are G, which a block sends with a full pass for
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
	// prev may be the columns of x.
	prev *columns
	// grad holds G of smooth losses. It is nil for others.
	grad *inputs
	sums Sums
	// dense says that columns hold all nodes.
	dense   bool
	degrees [256]float64
	// full says that all terminals of a listed node have full curvature.
	full bool
}

// column solves feature Lo+f.
func (r *run) column(f int32) {
	if r.empty(f) {
		return // zero everywhere
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

// empty reports whether the feature has no value and gets none at any node. It also reports true
// for the feature Forest.Apart, at which no internal node may move: its terminals are drawn to
// zero, and their blocks account for all of its edges.
func (r *run) empty(f int32) bool {
	return r.Lo+uint32(f)+1 == r.Forest.Apart || len(r.x.of(f))+len(r.prev.of(f))+len(r.in.of(f)) == 0 &&
		(r.grad == nil || len(r.grad.of(f)) == 0)
}
