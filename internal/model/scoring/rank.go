package scoring

import (
	"fmt"
	"math"
	"slices"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model/calibration"
	"taxon/internal/model/form"
)

// Ranker ranks the terminals for a row. score holds x.w_n of every node n in node order, and may be
// overwritten. A Ranker calls First once and Offer for every other terminal. It is used by one
// goroutine.
type Ranker func(row *Row, score []float64)

// Register adds a predictor, under the name that model forms use for it. sets reports whether it
// gives sets of labels itself, and so calls SetOwn for each row. newRanker is called once per
// goroutine. Register is for init functions: a duplicate name panics.
func Register(name string, sets bool, newRanker func(*taxonomy.Tree) (Ranker, error)) {
	form.Register(name, sets)
	rankers[name] = newRanker
}

// rankers holds the constructor of each predictor's ranker. The linear predictor needs none: a
// terminal's score is offered as it is computed.
var rankers = map[string]func(*taxonomy.Tree) (Ranker, error){
	form.Linear:  func(*taxonomy.Tree) (Ranker, error) { return nil, nil },
	form.Descent: newDescent,
	form.Nested:  newNested,
	form.Paths:   newBestPaths,
	form.Greedy:  newDescent,
	form.Sums:    newSums,
}

// newSums returns the ranker by the sum of x.w over the nodes from the root to a terminal.
func newSums(t *taxonomy.Tree) (Ranker, error) {
	return func(row *Row, score []float64) {
		best := Scored{-1, 0}
		for n, p := range t.Parent { // parents come before their children
			if p >= 0 {
				score[n] += score[p]
			}
			if c := (Scored{int32(n), score[n]}); t.Leaf[n] && (best.Node < 0 || c.before(best)) {
				best = c
			}
		}
		row.First(best)
		for n, leaf := range t.Leaf {
			if leaf && int32(n) != best.Node {
				row.Offer(Scored{int32(n), score[n]})
			}
		}
	}, nil
}

// newDescent returns the ranker by margins: x.w_c of a node c is the margin of the edge above it.
//
//	first      the leaf reached from the root by always taking the child with the greatest margin;
//	           of equal ones the first in node order
//	then       all others by their score, the smallest margin on the way from the root
//
// An only child has no margin and is not counted. A leaf without a margin on its path has score 0.
// Roots count as children of one common root.
func newDescent(t *taxonomy.Tree) (Ranker, error) {
	children := childCounts(t)
	for n, leaf := range t.Leaf {
		if !leaf && children[n+1] == 0 {
			return nil, fmt.Errorf("predict: node %d is no terminal and has no children: no descent can end there", n)
		}
	}
	best := make([]int32, t.Len()+1)       // node+1 -> its best child, 0 -> the best root
	greatest := make([]float64, t.Len()+1) // the margin of that child
	return func(row *Row, score []float64) {
		for p := range greatest {
			greatest[p] = math.Inf(-1)
		}
		for n, p := range t.Parent { // parents come before their children
			margin, way := score[n], math.Inf(1)
			if p >= 0 {
				way = score[p]
			}
			if children[p+1] == 1 {
				margin = math.Inf(1)
			}
			if margin > greatest[p+1] {
				greatest[p+1], best[p+1] = margin, int32(n)
			}
			score[n] = min(way, margin)
		}
		leaf := best[0]
		for !t.Leaf[leaf] {
			leaf = best[leaf+1]
		}
		for n, isLeaf := range t.Leaf {
			if !isLeaf {
				continue
			}
			if math.IsInf(score[n], 1) {
				score[n] = 0
			}
			if int32(n) == leaf {
				row.First(Scored{leaf, score[n]})
			} else {
				row.Offer(Scored{int32(n), score[n]})
			}
		}
	}, nil
}

// childCounts returns the numbers of children. Entry n+1 is for node n, and entry 0 is the number
// of roots.
func childCounts(t *taxonomy.Tree) []int32 {
	children := make([]int32, t.Len()+1)
	for _, p := range t.Parent {
		children[p+1]++
	}
	return children
}

// Row receives the ranking of one row from a Ranker.
type Row struct {
	s *Scorer
	i int
}

// First sets the first terminal of the ranking. It is kept whatever its score.
func (r *Row) First(c Scored) { r.s.lead[r.i] = c }

// Offer adds another terminal to the ranking.
func (r *Row) Offer(c Scored) { r.s.offerOne(r.i, c) }

// SetOwn sets the row's set of labels, best first. The slice is copied.
func (r *Row) SetOwn(set []Scored) { r.s.own[r.i] = append(r.s.own[r.i][:0], set...) }

// offerOne offers a terminal to a row's lists.
func (s *Scorer) offerOne(row int, c Scored) {
	s.heaps[row].offer(c)
	if s.p.scale > 0 {
		s.mass[row].add(s.p.scale * c.Score)
	}
	if s.p.o.Rule == Threshold && c.Score > s.p.o.Cutoff {
		s.positive[row] = append(s.positive[row], c)
	}
}

// scored receives the scores of node n during the walk.
func (s *Scorer) scored(n int32, scores []float64) {
	switch {
	case s.rank != nil:
		copy(s.table[int(n)*len(scores):], scores)
	case s.p.m.Tree.Leaf[n] && s.p.jointly():
		s.keepTerminal(n, scores)
	case s.p.m.Tree.Leaf[n]:
		if s.p.predictive != nil {
			s.widen(n, scores)
		}
		s.offer(n, scores)
	}
}

// rankRows ranks from the table of all nodes' scores.
func (s *Scorer) rankRows(rows int) {
	if len(s.joint) > 0 {
		s.offerJoint(rows)
	}
	if s.rank == nil {
		return
	}
	s.sums = slices.Grow(s.sums[:0], s.p.m.Tree.Len())[:s.p.m.Tree.Len()]
	for row := range rows {
		for n := range s.sums {
			s.sums[n] = s.table[n*rows+row]
		}
		s.rank(&Row{s, row}, s.sums)
	}
}

// lead inserts the first of a ranking before a list that lacks it.
func lead(first Scored, list []Scored) []Scored { return slices.Insert(list, 0, first) }

// mass is a running sum of exponentials. Its logarithm is log(sum) + most.
type mass struct{ most, sum float64 }

// add adds exp(x) to the sum.
func (m *mass) add(x float64) {
	if x <= m.most {
		m.sum += math.Exp(x - m.most)
		return
	}
	m.most, m.sum = x, float64(m.sum*math.Exp(m.most-x))+1
}

// log returns the logarithm of the sum.
func (m *mass) log() float64 { return m.most + math.Log(m.sum) }

// Shown returns the number that is shown for a label of row i: its score, or the probability that
// the model's calibration or link computes from it.
func (r *Result) Shown(i int, label Scored) float64 {
	score := label.Score
	if c := r.calibration; c != nil {
		if c.Kind == calibration.Levels {
			return r.down[i*r.nodes+int(label.Node)]
		}
		norm, total := 0.0, 1.0
		if c.Joint {
			norm = r.norm[i]
		}
		if c.Sums() {
			total = r.total[i]
		}
		return c.Raw(score, norm) / total
	}
	switch r.link {
	case form.Logistic:
		return 1 / (1 + math.Exp(-score))
	case form.Softmax:
		return math.Exp(score - r.norm[i])
	}
	return score
}

// Scored is a terminal with its score x.w.
type Scored struct {
	Node  int32
	Score float64
}

// before orders by decreasing score, and equal scores in node order.
func (a Scored) before(b Scored) bool {
	return a.Score > b.Score || a.Score == b.Score && a.Node < b.Node
}

// topK keeps the k best of the terminals offered to it, in a binary heap with the worst on top.
// Offers must be in node order; an equal score never displaces an earlier one.
type topK struct {
	// heap has capacity k.
	heap []Scored
}

// offer adds s. A full heap rejects most offers, so callers compare with the top first.
func (t *topK) offer(s Scored) {
	h := t.heap
	if len(h) < cap(h) {
		h = append(h, s)
		for i := len(h) - 1; i > 0; {
			up := (i - 1) / 2
			if h[i].before(h[up]) {
				break
			}
			h[i], h[up] = h[up], h[i]
			i = up
		}
		t.heap = h
		return
	}
	if len(h) == 0 || !s.before(h[0]) {
		return
	}
	h[0] = s
	for i := 0; ; {
		worst := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[worst].before(h[c]) {
				worst = c
			}
		}
		if worst == i {
			return
		}
		h[i], h[worst] = h[worst], h[i]
		i = worst
	}
}

func sortScored(s []Scored) {
	slices.SortFunc(s, func(a, b Scored) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
}
