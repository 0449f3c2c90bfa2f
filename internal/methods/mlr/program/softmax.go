package program

import (
	"context"
	"math"
	"sort"

	"taxon/internal/linalg/sparse"
)

// problem is min 1/2 ||W||^2 + sum_i C_i -log softmax_{class_i}(W x_i), C_i = C s_i. Vectors over
// classes and columns are stored column by column: all classes of a column are adjacent.
type problem struct {
	x       *sparse.Matrix
	class   []int32 // class of each row
	classes int

	// parent holds, for a tree whose leaves are the classes, the parent of each node, which
	// precedes the node. It is nil without a tree.
	parent []int32
	leaf   []bool
	weight []float64 // s_i by row; nil stands for 1 everywhere
	c      float64
	bias   float64 // value of an additional last column; 0 if there is none
}

// rowC returns C_i of row i.
func (p *problem) rowC(i int) float64 {
	if p.weight != nil {
		return p.weight[i] * p.c
	}
	return p.c
}

// columns returns the length of a row of W.
func (p *problem) columns() int {
	if p.bias > 0 {
		return p.x.Cols + 1
	}
	return p.x.Cols
}

// shards divides the rows into n runs with about equal numbers of nonzeros, where each instance
// counts as one more.
func (p *problem) shards(n int) []int {
	total := float64(p.x.NNZ) + float64(p.x.Rows)
	before := make([]int64, len(p.x.Shards)+1)
	for k, s := range p.x.Shards {
		before[k+1] = before[k] + int64(len(s.Index))
	}
	cut := make([]int, n+1)
	for k := 1; k < n; k++ {
		want := total * float64(k) / float64(n)
		cut[k] = sort.Search(p.x.Rows, func(i int) bool {
			s := i >> sparse.RowShift
			at := before[s] + int64(p.x.Shards[s].Begin[i&(1<<sparse.RowShift-1)])
			return float64(at+int64(i)) >= want
		})
	}
	cut[n] = p.x.Rows
	return cut
}

// gradient holds sum_i C_i (e_{class_i} - p_i) x_i' over some rows, at the columns that occur in
// them.
type gradient struct {
	columns []uint32  // columns with a sum, ascending
	sums    []float64 // len(columns) x classes
	loss    float64   // sum_i C_i -log p_{i,class_i}
	visits  int64     // nonzeros
}

// score computes the losses of rows [lo, hi) and their part of the gradient. column(f) returns the
// classes' weights of column f, which must not be changed. Rows are processed in order, in float64.
// It takes the memory of that part of the gradient, and the time of two passes over the rows for
// each class.
func (p *problem) score(ctx context.Context, lo, hi int, column func(f uint32) []float64) (*gradient, error) {
	g := &gradient{}
	place := p.occurring(lo, hi, &g.columns)
	g.sums = make([]float64, len(g.columns)*p.classes)
	scores := make([]float64, p.classes)
	bias := uint32(p.x.Cols)
	for i := lo; i < hi; i++ {
		if (i-lo)%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		index, value := p.x.Row(i)
		clear(scores)
		for n, f := range index {
			axpy(scores, float64(value[n]), column(f))
		}
		if p.bias > 0 {
			axpy(scores, p.bias, column(bias))
		}
		p.down(scores)
		c := p.rowC(i)
		g.loss += float64(c * softmax(scores, int(p.class[i])))
		for k := range scores { // C (e_y - p)
			scores[k] *= -c
		}
		scores[p.class[i]] += c
		for k := len(p.parent) - 1; k > 0; k-- { // an internal node has the sum over the nodes below it
			scores[p.parent[k]] += scores[k]
		}
		for n, f := range index {
			axpy(g.at(place[f], p.classes), float64(value[n]), scores)
		}
		if p.bias > 0 {
			axpy(g.at(place[bias], p.classes), p.bias, scores)
		}
		g.visits += int64(len(index))
	}
	return g, nil
}

// down turns the products of all nodes into the scores of the leaves, which are sums over their
// paths. Internal nodes are not classes.
func (p *problem) down(scores []float64) {
	for k, a := range p.parent {
		if a >= 0 {
			scores[k] += scores[a]
		}
	}
	for k, leaf := range p.leaf {
		if !leaf {
			scores[k] = math.Inf(-1)
		}
	}
}

// at returns the sums of the column at a place.
func (g *gradient) at(place int32, classes int) []float64 {
	return g.sums[int(place)*classes:][:classes]
}

// occurring lists the columns of rows [lo, hi), including the bias, and returns their places by
// column.
func (p *problem) occurring(lo, hi int, columns *[]uint32) (place []int32) {
	place = make([]int32, p.x.Cols+1)
	for i := lo; i < hi; i++ {
		index, _ := p.x.Row(i)
		for _, f := range index {
			place[f] = 1
		}
	}
	if p.bias > 0 && lo < hi {
		place[p.x.Cols] = 1
	}
	for f, there := range place {
		if there > 0 {
			place[f] = int32(len(*columns))
			*columns = append(*columns, uint32(f))
		}
	}
	return place
}

// softmax replaces scores by probabilities. It returns -log of the probability of class y.
func softmax(s []float64, y int) (loss float64) {
	most := s[0]
	for _, x := range s {
		most = max(most, x)
	}
	own := s[y] - most
	sum := 0.0
	for k, x := range s {
		s[k] = math.Exp(x - most)
		sum += s[k]
	}
	for k := range s {
		s[k] /= sum
	}
	return math.Log(sum) - own
}

// metric returns the inverse of the Hessian's diagonal at W = 0, by column. There all probabilities
// are q = 1/classes, and the diagonal is h_f = 1 + q (1-q) sum_i C_i x_if^2 for every class. L-BFGS
// scales gradients by it, which changes its path but not its result.
func (p *problem) metric() []float64 {
	h := make([]float64, p.columns())
	total := float64(p.x.Rows)
	if p.weight != nil {
		total = 0
	}
	for i := range p.x.Rows {
		index, value := p.x.Row(i)
		s := 1.0
		if p.weight != nil {
			s = p.weight[i]
			total += s
		}
		for n, f := range index {
			h[f] += float64(float64(s*float64(value[n])) * float64(value[n]))
		}
	}
	if p.bias > 0 {
		h[p.x.Cols] = p.bias * p.bias * total
	}
	q := 1 / float64(p.classes)
	for f, squares := range h {
		h[f] = 1 / (1 + float64(p.c*q*(1-q)*squares))
	}
	return h
}

// axpy computes y += a x. It rounds the products before it adds them, so that every CPU gives the
// same bits.
func axpy(y []float64, a float64, x []float64) {
	x = x[:len(y)]
	for len(y) >= 4 {
		y[0] += float64(a * x[0])
		y[1] += float64(a * x[1])
		y[2] += float64(a * x[2])
		y[3] += float64(a * x[3])
		y, x = y[4:], x[4:]
	}
	for k := range y {
		y[k] += float64(a * x[k])
	}
}
