package drift

import (
	"taxon/internal/sparse"
	"taxon/internal/taxonomy"
)

// Problem is a graph with its training data.
type Problem struct {
	Graph     *taxonomy.Tree // Adjacent is set
	Rows      *sparse.Matrix // without the bias feature
	Positives func(node int32) []uint32
	Bias      float64 // value of the feature that every row has; 0: none
}

// Component is a connected part of the graph that drifts.
type Component struct {
	Terminals []int32 // nodes, ascending
	Features  int     // that it drifts along, each for itself; 0: a combination
}

// Result is what Find found.
type Result struct {
	Components int         // that have edges and terminals
	Drifting   []Component // in the order of their smallest nodes
	Open       int         // not drifting along single features; the search for others was cut short
}

// Find examines each component. The first search costs a pass over the data and, for each
// component, over its own rows; the second is bounded (maxVisits).
func Find(p *Problem) *Result {
	f := newFinder(p)
	out := &Result{}
	for _, terminals := range components(p.Graph) {
		out.Components++
		f.divide(terminals)
		n := f.single()
		verdict := drifts
		if n == 0 {
			verdict = f.combination()
		}
		switch verdict {
		case drifts:
			out.Drifting = append(out.Drifting, Component{terminals, n})
		case open:
			out.Open++
		}
		f.forget()
	}
	return out
}

// verdict is what is known of a component.
type verdict uint8

const (
	held verdict = iota
	drifts
	open
)

// components lists the terminals of each component that has edges and terminals.
func components(g *taxonomy.Tree) (out [][]int32) {
	seen := make([]bool, g.Len())
	for n := range g.Len() {
		if seen[n] || len(g.Adjacent.Of(int32(n))) == 0 {
			continue
		}
		seen[n] = true
		var terminals []int32
		for at, stack := int32(0), []int32{int32(n)}; len(stack) > 0; {
			at, stack = stack[len(stack)-1], stack[:len(stack)-1]
			if g.Leaf[at] {
				terminals = append(terminals, at)
			}
			for _, m := range g.Adjacent.Of(at) {
				if !seen[m] {
					seen[m] = true
					stack = append(stack, m)
				}
			}
		}
		if len(terminals) > 0 {
			out = append(out, ascending(terminals))
		}
	}
	return out
}

// signs count a feature's values above and below zero.
type signs struct{ above, below int32 }

func (s *signs) add(v float64, n int32) {
	switch {
	case v > 0:
		s.above += n
	case v < 0:
		s.below += n
	}
}

// finder holds what the components' searches share. The bias is the last feature.
type finder struct {
	*Problem
	total   []signs // per feature, over all rows
	bears   []int32 // per row: how many of the component's classes it bears
	touched []uint32
	classes int32
	uniform int     // features whose values all have one sign
	none    []signs // scratch of single, valid where listed
	all     []signs
	blocked []bool
	listed  []bool
	list    []int
	visits  int64 // left of maxVisits
	norm    []float64
}

func newFinder(p *Problem) *finder {
	width := p.Rows.Cols + 1
	f := &finder{
		Problem: p, total: make([]signs, width), bears: make([]int32, p.Rows.Rows),
		none: make([]signs, width), all: make([]signs, width), blocked: make([]bool, width),
		listed: make([]bool, width), visits: maxVisits,
	}
	for i := range p.Rows.Rows {
		f.each(uint32(i), func(c int, v float64) { f.total[c].add(v, 1) })
	}
	for _, n := range f.total {
		if along(n, signs{}) {
			f.uniform++
		}
	}
	return f
}

// each visits a row's entries, the bias behind the others.
func (f *finder) each(i uint32, visit func(feature int, value float64)) {
	index, value := f.Rows.Row(int(i))
	for k, c := range index {
		visit(int(c), float64(value[k]))
	}
	if f.Bias != 0 {
		visit(f.Rows.Cols, f.Bias)
	}
}

// divide notes how many of a component's classes each row bears.
func (f *finder) divide(terminals []int32) {
	f.classes = int32(len(terminals))
	for _, n := range terminals {
		for _, i := range f.Positives(n) {
			if f.bears[i] == 0 {
				f.touched = append(f.touched, i)
			}
			f.bears[i]++
		}
	}
}

func (f *finder) forget() {
	for _, i := range f.touched {
		f.bears[i] = 0
	}
	f.touched = f.touched[:0]
}

// sign is s_i of the package's comment; 0: the row bears some of the classes.
func (f *finder) sign(i uint32) float64 {
	switch f.bears[i] {
	case 0:
		return -1
	case f.classes:
		return 1
	}
	return 0
}

// single counts the features along which the component drifts. Those that its rows do not
// hold are the same for all components: a pass over its rows is enough.
func (f *finder) single() int {
	for _, i := range f.touched {
		whole := f.bears[i] == f.classes
		f.each(i, func(c int, v float64) {
			if !f.listed[c] {
				f.listed[c], f.list = true, append(f.list, c)
				f.none[c], f.all[c], f.blocked[c] = f.total[c], signs{}, false
			}
			f.none[c].add(v, -1)
			if whole {
				f.all[c].add(v, 1)
			} else if v != 0 {
				f.blocked[c] = true
			}
		})
	}
	count := f.uniform
	for _, c := range f.list {
		if along(f.total[c], signs{}) {
			count--
		}
		if !f.blocked[c] && along(f.none[c], f.all[c]) {
			count++
		}
		f.listed[c] = false
	}
	f.list = f.list[:0]
	return count
}

// along says whether a feature that no row with some of the classes holds makes a u, of
// either sign, given its values in the rows with none and with all of them.
func along(none, all signs) bool {
	up := none.above == 0 && all.below == 0 && none.below+all.above > 0
	down := none.below == 0 && all.above == 0 && none.above+all.below > 0
	return up || down
}
