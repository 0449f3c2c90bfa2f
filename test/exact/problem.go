package exact

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Row is an instance as a user writes it: indices count from 1, in any order; a value is
// what a float32 reader makes of it.
type Row struct {
	Labels []string
	Index  []int
	Value  []float32
}

// Edge of a structure file.
type Edge struct{ Parent, Child string }

// Problem is one training problem.
type Problem struct {
	Rows      []Row
	Edges     []Edge // nil: no structure
	KeepEmpty bool   // --x prune=none
	Squared   bool   // squared hinge
	Logistic  bool   // logistic loss
	C, Bias   float64

	IsGraph  bool    // the edges are those of a graph
	Directed bool    // ... given as a hierarchy
	Anchor   float64 // graphs
	Inner    float64 // --x internal-weight; 0: 1
	EdgesBy  string  // --x edge-weights, trees; "": even
	Apart    bool    // --x bias-pull=zero
	Degree   bool    // --x cost-by=degree, graphs
	Positive float64 // --positive-weight; 0: 1, below 0: balanced

	Weights []float64 // of the rows, above 0; nil: all are 1
	Ghosts  []Row     // rows of weight 0: one before each of the first rows
}

// weight of row i.
func (p *Problem) weight(i int) float64 {
	if p.Weights == nil {
		return 1
	}
	return p.Weights[i]
}

// Nodes are the trained nodes, of the tree or the graph.
func (p *Problem) Nodes() []Node {
	if p.IsGraph {
		nodes, _ := p.Graph()
		return nodes
	}
	return p.Tree()
}

func (p *Problem) inner() float64 {
	if p.Inner == 0 {
		return 1
	}
	return p.Inner
}

// costs are C_in of terminal n and instance i; y as signs gives it.
func (p *Problem) costs(y [][]float64) [][]float64 {
	c := make([][]float64, len(y))
	edges := p.laplacian()
	for n := range y {
		c[n] = make([]float64, len(y[n]))
		positives, all := 0.0, 0.0
		for i, s := range y[n] {
			all += p.weight(i)
			if s > 0 {
				positives += p.weight(i)
			}
		}
		weight := p.Positive
		switch {
		case weight == 0:
			weight = 1
		case weight < 0 && positives > 0:
			weight = math.Min(math.Max((all-positives)/positives, 1), 100)
		case weight < 0:
			weight = 1
		}
		for i, s := range y[n] {
			c[n][i] = p.C * p.weight(i)
			if s > 0 {
				c[n][i] *= weight
			}
			if p.Degree {
				c[n][i] *= edges[n][n]
			}
		}
	}
	return c
}

// each gives the instance file's rows with their weights.
func (p *Problem) each(f func(r Row, weight float64)) {
	for i, r := range p.Rows {
		if i < len(p.Ghosts) {
			f(p.Ghosts[i], 0)
		}
		f(r, p.weight(i))
	}
}

// InstanceWeights is the file of the instances' weights.
func (p *Problem) InstanceWeights() string {
	var b strings.Builder
	p.each(func(_ Row, w float64) { fmt.Fprintln(&b, w) })
	return b.String()
}

// Data is the instance file.
func (p *Problem) Data() string {
	var b strings.Builder
	p.each(func(r Row, _ float64) {
		b.WriteString(strings.Join(r.Labels, ","))
		for k, f := range r.Index {
			fmt.Fprintf(&b, " %d:%s", f, strconv.FormatFloat(float64(r.Value[k]), 'g', -1, 32))
		}
		b.WriteString(" \n") // an empty line would be no row
	})
	return b.String()
}

// Hierarchy is the structure file.
func (p *Problem) Hierarchy() string {
	var b strings.Builder
	for _, e := range p.Edges {
		fmt.Fprintf(&b, "%s %s\n", e.Parent, e.Child)
	}
	return b.String()
}

// Columns maps each feature index that holds anything but zeros to a dense column,
// ascending; the bias, if there is one, stands behind them.
func (p *Problem) Columns() map[int]int {
	var all []int
	for _, r := range p.Rows {
		for k, f := range r.Index {
			if r.Value[k] != 0 {
				all = append(all, f)
			}
		}
	}
	slices.Sort(all)
	columns := map[int]int{}
	for _, f := range slices.Compact(all) {
		columns[f] = len(columns)
	}
	return columns
}

// Width is the number of dense columns, the bias counted.
func (p *Problem) Width() int {
	n := len(p.Columns())
	if p.Bias > 0 {
		n++
	}
	return n
}

// Matrix has one dense row an instance.
func (p *Problem) Matrix() [][]float64 {
	columns, width := p.Columns(), p.Width()
	x := make([][]float64, len(p.Rows))
	for i, r := range p.Rows {
		x[i] = make([]float64, width)
		for k, f := range r.Index {
			if r.Value[k] != 0 {
				x[i][columns[f]] = float64(r.Value[k])
			}
		}
		if p.Bias > 0 {
			x[i][width-1] = p.Bias
		}
	}
	return x
}

// labels are the names in order of first appearance.
func (p *Problem) labels() []string {
	var names []string
	for _, r := range p.Rows {
		for _, l := range r.Labels {
			if !slices.Contains(names, l) {
				names = append(names, l)
			}
		}
	}
	return names
}
