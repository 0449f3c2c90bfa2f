package predict

import (
	"cmp"
	"slices"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/option"
)

// Sure finds the deepest nodes of the hierarchy whose probability is high enough. A class, with
// everything below it, has the probability
//
//	P(n) = sum of p over n and below       where each instance has one label,
//	P(n) = 1 - product of (1 - p)          otherwise, as if labels were independent of each other.
//
// The hierarchy is the user's if no class has several parents, and otherwise the trained one. A
// graph has none. A Sure belongs to one goroutine.
type Sure struct {
	// Names and Paths are the names and paths of the places, which are the nodes of the hierarchy.
	Names, Paths []string

	// above maps a place to its parent, which precedes it, or to -1.
	above []int32
	// below[place+1] lists the children of a place, and below[0] the places at the top.
	below [][]int32
	// of maps a node of the model's tree to its place.
	of    []int32
	joint bool
	p     []float64
	// top is the most probable class: its place, and its probability without the places below it.
	top   scoring.Scored
	inner []bool
	set   []scoring.Scored
	place map[string]int32
}

// NewSure returns a Sure for a model with probabilities.
func NewSure(m *model.Model) (*Sure, error) {
	if !m.HasProbabilities() {
		return nil, option.Errorf("%s gives no probabilities: train with ‹calibrate=temperature›, isotonic or levels, or "+
			"by a method with a logistic loss", m.Dir)
	}
	s := &Sure{of: make([]int32, m.Tree.Len()), joint: !m.Data.MultiLabel() && !m.Form.Sets()}
	place := map[string]int32{}
	s.place = place
	add := func(name string, above int32) int32 {
		at := int32(len(s.Names))
		s.Names, s.above, place[name] = append(s.Names, name), append(s.above, above), at
		return at
	}
	users := m.Structure != nil && !m.Structure.IsDAG()
	if users {
		children, top := childrenOf(m.Structure)
		for len(top) > 0 {
			n := top[len(top)-1]
			top = top[:len(top)-1]
			above := int32(-1)
			if n.above != "" {
				above = place[n.above]
			}
			add(n.name, above)
			top = append(top, children[n.name]...)
		}
	}
	for n, kind := range m.Tree.Kind {
		above := int32(-1)
		if p := m.Tree.Parent[n]; p >= 0 {
			above = s.of[p]
		}
		at, there := place[m.Tree.Name[n]]
		switch {
		case kind == taxonomy.Virtual:
			at = -1
		case kind == taxonomy.Spawned && above >= 0 && !users:
			at = above
		case !there && users:
			at = add(m.Tree.Name[n], -1)
		case !there:
			at = add(m.Tree.Name[n], above)
		}
		s.of[n] = at
	}
	s.p, s.inner = make([]float64, len(s.Names)), make([]bool, len(s.Names))
	s.below = make([][]int32, len(s.Names)+1)
	for at, above := range s.above {
		s.below[above+1] = append(s.below[above+1], int32(at))
	}
	paths := Paths(m)
	s.Paths = make([]string, len(s.Names))
	for at, above := range s.above {
		s.Paths[at] = s.Names[at]
		if separated := m.Data.Table != nil && m.Data.Table.PathSeparator != ""; above >= 0 && !separated {
			s.Paths[at] = s.Paths[above] + " > " + s.Names[at]
		}
	}
	for n, at := range s.of {
		if at >= 0 && m.Tree.Leaf[n] {
			s.Paths[at] = paths[n]
		}
	}
	return s, nil
}

// placed is a name with the one above it.
type placed struct{ name, above string }

// childrenOf returns the children of each class, and the classes at the top.
func childrenOf(t *taxonomy.Structure) (children map[string][]placed, top []placed) {
	children, below := map[string][]placed{}, map[uint32]bool{}
	for e, c := range t.Children {
		above := t.Names[t.Parents[e]]
		children[above], below[c] = append(children[above], placed{t.Names[c], above}), true
	}
	for n, name := range t.Names {
		if !below[uint32(n)] {
			top = append(top, placed{name: name})
		}
	}
	return children, top
}

// Take computes the probabilities of row i of a result. The predictor must have kept all classes.
func (s *Sure) Take(r *scoring.Result, i int) {
	clear(s.p)
	s.top = scoring.Scored{Node: -1}
	total := 0.0
	for _, c := range r.Best(i) {
		total += r.Shown(i, c)
	}
	join := func(at int32, p float64) {
		if s.joint {
			s.p[at] += p
		} else {
			s.p[at] += p - float64(s.p[at]*p)
		}
	}
	for _, c := range r.Best(i) {
		p := r.Shown(i, c)
		if s.joint && total > 0 {
			p /= total
		}
		if join(s.of[c.Node], p); s.top.Node < 0 || p > s.top.Score {
			s.top = scoring.Scored{Node: s.of[c.Node], Score: p}
		}
	}
	for at := len(s.p) - 1; at >= 0; at-- {
		if up := s.above[at]; up >= 0 {
			join(up, s.p[at])
		}
	}
}

// Of returns the deepest places with a probability of at least `least`, best first, with their
// probabilities. If each instance has one label, there is at most one: the place reached from the
// top by always following the most probable child. It is empty if no probability suffices. The
// slice is valid until the next call.
func (s *Sure) Of(least float64) []scoring.Scored {
	s.set = s.set[:0]
	least -= 1e-9 // sums that should be 1 may be short by rounding
	if s.joint {
		for at, deeper := int32(-1), true; deeper; {
			best := scoring.Scored{Node: -1}
			for _, n := range s.below[at+1] {
				if s.p[n] >= least && (best.Node < 0 || s.p[n] > s.p[best.Node]) {
					best = scoring.Scored{Node: n, Score: min(s.p[n], 1)}
				}
			}
			if deeper = best.Node >= 0; deeper {
				at, s.set = best.Node, append(s.set[:0], best)
			}
		}
		return s.set
	}
	clear(s.inner)
	for n := len(s.p) - 1; n >= 0; n-- {
		if s.p[n] < least {
			continue
		}
		if up := s.above[n]; up >= 0 {
			s.inner[up] = true
		}
		if !s.inner[n] {
			s.set = append(s.set, scoring.Scored{Node: int32(n), Score: min(s.p[n], 1)})
		}
	}
	slices.SortStableFunc(s.set, func(a, b scoring.Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Node, b.Node))
	})
	return s.set
}

// Class returns the place of the most probable class, with its probability without the places
// below.
func (s *Sure) Class() scoring.Scored { return s.top }

// Joint reports whether each instance has one label.
func (s *Sure) Joint() bool { return s.joint }

// Holds reports whether a place is the class of this name, or above it.
func (s *Sure) Holds(place int32, name string) bool {
	at, known := s.place[name]
	for known && at >= 0 && at != place {
		at = s.above[at]
	}
	return known && at == place
}
