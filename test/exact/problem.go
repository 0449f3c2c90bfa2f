package exact

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Row is an instance as a user writes it: indices count from 1, in any order, and a value is
// rounded to float32 by its reader.
type Row struct {
	Labels []string
	Index  []int
	Value  []float32
}

// Edge is an edge of a structure file.
type Edge struct{ Parent, Child string }

// Problem is one training problem.
type Problem struct {
	Rows      []Row
	Edges     []Edge // nil if there is no structure
	KeepEmpty bool   // --prune none
	Squared   bool   // squared hinge
	Logistic  bool   // logistic loss
	C, Bias   float64

	IsGraph  bool    // the edges are those of a graph
	Directed bool    // the edges are given as a hierarchy
	Anchor   float64 // anchor of graphs
	Inner    float64 // --internal-weight; 0 stands for 1
	EdgesBy  string  // --edge-weights of trees; empty stands for even
	Apart    bool    // --bias-pull zero
	Degree   bool    // --cost-by degree of graphs
	// Positive is --positive-weight. 0 stands for 1, and a negative value for balanced.
	Positive float64

	Weights []float64 // weights of the rows, above 0; nil stands for 1 everywhere
	Ghosts  []Row     // rows of weight 0: one before each of the first rows
}

// weight returns the weight of row i.
func (p *Problem) weight(i int) float64 {
	if p.Weights == nil {
		return 1
	}
	return p.Weights[i]
}

// Nodes returns the trained nodes of the tree or graph.
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

// costs returns C_in of terminal n and instance i. y is the result of signs.
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

// each calls f for each row of the instance file, with its weight.
func (p *Problem) each(f func(r Row, weight float64)) {
	for i, r := range p.Rows {
		if i < len(p.Ghosts) {
			f(p.Ghosts[i], 0)
		}
		f(r, p.weight(i))
	}
}

// InstanceWeights returns the content of the file of the instances' weights.
func (p *Problem) InstanceWeights() string {
	var b strings.Builder
	p.each(func(_ Row, w float64) { fmt.Fprintln(&b, w) })
	return b.String()
}

// Data returns the content of the instance file.
func (p *Problem) Data() string {
	var b strings.Builder
	p.each(func(r Row, _ float64) {
		b.WriteString(strings.Join(r.Labels, ","))
		for k, f := range r.Index {
			fmt.Fprintf(&b, " %d:%s", f, strconv.FormatFloat(float64(r.Value[k]), 'g', -1, 32))
		}
		b.WriteString(" \n") // an empty line would not be a row
	})
	return b.String()
}

// Hierarchy returns the content of the structure file.
func (p *Problem) Hierarchy() string {
	var b strings.Builder
	for _, e := range p.Edges {
		fmt.Fprintf(&b, "%s %s\n", e.Parent, e.Child)
	}
	return b.String()
}

// Columns maps each feature index with a nonzero value to a dense column, ascending. The bias, if
// there is one, follows.
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

// Width returns the number of dense columns, including the bias.
func (p *Problem) Width() int {
	n := len(p.Columns())
	if p.Bias > 0 {
		n++
	}
	return n
}

// Matrix returns one dense row per instance.
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

// labels returns the names in order of first appearance.
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
