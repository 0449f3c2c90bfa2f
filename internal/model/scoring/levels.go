package scoring

import (
	"cmp"
	"math"
	"slices"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model"
	"taxon/internal/model/form"
)

// Term is the contribution of one feature of an instance to a score at one node.
type Term struct {
	Column uint32
	// Value is the instance's x.
	Value float32
	// Gain is x (w_n - w_parent(n)) at this column.
	Gain float64
}

// Level is one node on the path from a root to a terminal, with its contribution to the score.
type Level struct {
	Node int32
	// Score is x.w_n, the sum of the gains down to this node.
	Score float64
	// Gain is x.(w_n - w_parent(n)), including the bias.
	Gain float64
	// Bias is the part of the gain that is due to the bias.
	Bias float64
	// Terms are the nonzero rest, largest absolute value first.
	Terms []Term
}

// Explain splits the score of terminal n for an instance by levels of the tree and by features. w_n
// is the sum of the differences on the path from the root, so
//
//	x.w_n = sum over nodes p on the path of  sum over columns c of x_c (w_p[c] - w_parent(p)[c])
//
// exactly, up to the rounding of float64 sums. Columns must ascend; those unknown to the model are
// ignored.
//
// The meaning of a level depends on the model's form:
//
//   - Differences from the parent: a node on the path.
//   - Whole weights: the terminal is the only level, unless internal nodes have means of their own.
//   - Descent: an edge. Its gain is its margin, its score the smallest margin so far. An only child
//     has neither.
//   - Sets of paths: a node with its own x.w. Its score is the smallest x.w so far if nodes are
//     nested, and otherwise the sum so far.
func Explain(m *model.Model, n int32, columns []uint32, values []float32) []Level {
	edges, sums, means := m.Form.ByPath(), m.Form.Predictor == form.Paths || m.Form.Predictor == form.Sums,
		m.Form.Precision != form.NoPrecision
	var up []int32
	for n >= 0 {
		up = append(up, n)
		if edges || means {
			n = m.Tree.Parent[n]
		} else {
			n = m.Above(n)
		}
	}
	slices.Reverse(up)
	features := uint32(len(m.Feature))
	row := map[uint32]float64{features: float64(float32(m.Options.Bias))}
	for i, c := range columns {
		if c < features {
			row[c] += float64(values[i])
		}
	}
	weight := map[uint32]float64{} // of the parent, where nonzero
	levels := make([]Level, len(up))
	children := childCounts(m.Tree)
	score, way := 0.0, math.Inf(1)
	for k, node := range up {
		if edges {
			clear(weight)
		}
		l := &levels[k]
		l.Node = node
		cs, vs := m.Overrides(int(node))
		if means {
			cs, vs = withZeros(cs, vs, weight)
		}
		for i, c := range cs {
			x, ok := row[c]
			if !ok {
				continue
			}
			gain := float64(x * (float64(vs[i]) - weight[c]))
			weight[c] = float64(vs[i])
			switch {
			case c == features:
				l.Bias = gain
			case gain != 0:
				l.Terms = append(l.Terms, Term{c, float32(x), gain})
			}
			l.Gain += gain
		}
		if score += l.Gain; edges && !sums {
			if score = 0; m.Form.Sets() && m.Tree.Kind[node] == taxonomy.Node || !m.Form.Sets() &&
				children[m.Tree.Parent[node]+1] > 1 {
				way = min(way, l.Gain)
			}
			if !math.IsInf(way, 1) {
				score = way
			}
		}
		l.Score = score
		slices.SortStableFunc(l.Terms, func(a, b Term) int { return cmp.Compare(math.Abs(b.Gain), math.Abs(a.Gain)) })
	}
	return levels
}

// withZeros adds to whole weights a 0 at each column where the parent's weight is not 0 and they
// have no entry.
func withZeros(columns []uint32, values []float32, parent map[uint32]float64) ([]uint32, []float32) {
	var gone []uint32
	for c, w := range parent {
		if _, ok := slices.BinarySearch(columns, c); !ok && w != 0 {
			gone = append(gone, c)
		}
	}
	slices.Sort(gone)
	return slices.Concat(columns, gone), slices.Concat(values, make([]float32, len(gone)))
}
