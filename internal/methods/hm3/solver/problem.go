// Package solver trains maximum margin hierarchical multilabel models ([JMLR]: Rousu, Saunders,
// Szedmak, Shawe-Taylor: Kernel-based learning of hierarchical multilabel classification models, 2006).
//
// Every node j of the tree has a microlabel y_j, 0 or 1, the root too. An edge e from p to c has a
// labeling y_e = (y_p, y_c) and a vector for each of the four; w.phi(x, y) = sum_e w_e^{y_e}.x. The
// problem and its dual over all labelings y of the whole tree are
//
//	min_w  P(w) = 1/2 ||w||^2 + sum_i C_i xi_i,   xi_i = max_y l(y_i, y) - w.(phi(x_i, y_i) - phi(x_i, y))
//	max_a  D(a) = sum_iy a_i(y) l(y_i, y) - 1/2 ||w(a)||^2,   w(a) = sum_iy a_i(y) (phi(x_i, y_i) - phi(x_i, y))
//	       a >= 0,  sum_y a_i(y) <= C_i
//
// As losses and vectors belong to edges, only the marginals mu_e(i, u) = sum of a_i(y) with y_e = u
// count ([JMLR] eq. 5): w_e^u = sum_i x_i ([y_ie = u] C_i - mu_e(i, u)). Numbers are the marginals of
// some a if all edges at a node agree on it, and so do those that leave the root (eq. 8, corrected).
// The part of C_i that an instance does not use is given to its true labeling, which costs nothing,
// so that the marginals of every edge add up to C_i.
//
// Algorithm 1 of the paper goes from instance to instance, and Algorithm 2 moves an instance's
// marginals towards the labeling of the greatest gradient, which a dynamic programme over the tree
// finds (section 3.4). As all edges move alike, its gap falls as 1/steps only. The tests use it for
// comparison. This package applies the same programme to every edge e = (p, c): a part of the mass
// with y_p = a moves from one y_c to the other. The mass below c follows as it is divided there, or,
// where there is none, to the best labeling. The best step has a closed form. Where no edge gains,
// the marginals are optimal: by induction from the leaves all mass is on labelings of the greatest
// gradient.
//
// With h_i(y) = l(y_i, y) - w.(phi(x_i, y_i) - phi(x_i, y)) an instance's part of P - D is
//
//	C_i max_y h_i(y) - sum_y a_i(y) h_i(y) >= 0,   together  sum_i C_i xi_i - mu'g  of the paper.
//
// Instances need not have norm 1: steps use K(x_i, x_i) as it is.
package solver

import (
	"fmt"
	"slices"

	"taxon/mapper"
)

// Losses are the values of the option label-loss. Delta counts wrong microlabels. The others are H~
// of [JMLR] 2.1, which counts wrong microlabels whose parent is right, with weights c_j: 1 (unif), an
// equal share of the parent's weight (sibl), or the share of all nodes that are at or below j (subtree).
var Losses = []string{"delta", "unif", "sibl", "subtree"}

// Problem is the problem to solve. It is read-only.
type Problem struct {
	// Rows gives the instances, C, weights and bias. Its Loss is ignored.
	Rows *mapper.Problem
	// Parent holds the parent of each microlabel. Microlabel 0 is the root, whose parent is -1.
	// Parents come first.
	Parent []int32
	// Weight is c_j. It is 0 for a root that is not a class.
	Weight []float64
	// Nested says that a microlabel costs only where its parent's is right (H~). A root that is not
	// a class is always right.
	Nested bool
	// On is y_i of each instance, as bits.
	On [][]uint64
}

// NewProblem returns a problem with the loss of this name. virtual says that the root is not a
// class. on lists each instance's microlabels that are 1, including ancestors.
func NewProblem(rows *mapper.Problem, parent []int32, virtual bool, loss string, on [][]int32) (*Problem, error) {
	p := &Problem{Rows: rows, Parent: parent, Weight: make([]float64, len(parent)), Nested: loss != "delta",
		On: make([][]uint64, len(on))}
	children, below := make([]float64, len(parent)), make([]float64, len(parent))
	for j := len(parent) - 1; j >= 0; j-- {
		below[j]++
		if up := parent[j]; up >= 0 {
			below[up] += below[j]
			children[up]++
		}
	}
	for j, up := range parent {
		switch {
		case loss == "sibl" && up >= 0:
			p.Weight[j] = p.Weight[up] / children[up]
		case loss == "subtree":
			p.Weight[j] = below[j] / below[0]
			if virtual { // it is no node
				p.Weight[j] = below[j] / (below[0] - 1)
			}
		case loss == "delta" || loss == "unif" || loss == "sibl":
			p.Weight[j] = 1
		default:
			return nil, fmt.Errorf("label loss %q: use one of %v", loss, Losses)
		}
	}
	if virtual {
		p.Weight[0] = 0
	}
	words := (len(parent) + 63) / 64
	for i, list := range on {
		p.On[i] = make([]uint64, words)
		for _, j := range list {
			p.On[i][j/64] |= 1 << (j % 64)
		}
	}
	return p, nil
}

// bit returns y_j of a labeling.
func bit(y []uint64, j int32) int { return int(y[j/64] >> (j % 64) & 1) }

// cost returns what microlabel j adds to the loss if it is b, its parent's microlabel is a and the
// true labeling is y.
func (p *Problem) cost(y []uint64, j int32, a, b int) float64 {
	up := p.Parent[j]
	if b == bit(y, j) || p.Nested && up >= 0 && a != bit(y, up) && !(up == 0 && p.Weight[0] == 0) {
		return 0
	}
	return p.Weight[j]
}

// State holds the marginals of each instance between two solves. Edge e with child j has the mass
// of (a, b) at 4j + 2a + b. The root has the mass of b at b. An edge that is not listed has all its
// mass at the true labeling. A nil State means that nothing has been solved.
type State struct {
	// Primal and Dual are P and D when they were last computed.
	Primal, Dual float64
	Rows         []Marginals
}

// Marginals are the marginals of an instance that are not 0, with places ascending.
type Marginals struct {
	At    []uint32
	Value []float64
}

// clone returns a copy of a state.
func (s *State) clone() *State {
	out := &State{Primal: s.Primal, Dual: s.Dual, Rows: make([]Marginals, len(s.Rows))}
	for i, row := range s.Rows {
		out.Rows[i] = Marginals{slices.Clone(row.At), slices.Clone(row.Value)}
	}
	return out
}

// moved counts the instances that have mass beyond their true labeling.
func (s *State) moved() (n int) {
	for _, row := range s.Rows {
		if len(row.At) > 0 {
			n++
		}
	}
	return n
}

// Carry turns duals for the value `from` of C into duals for the value `to`.
func (s *State) Carry(from, to float64) {
	for _, row := range s.Rows {
		for k := range row.Value {
			row.Value[k] *= to / from
		}
	}
	s.Primal, s.Dual = 0, 0 // there was no full pass
}
