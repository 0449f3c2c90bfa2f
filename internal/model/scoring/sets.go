package scoring

import (
	"math"

	"taxon/internal/data/taxonomy"
)

// Predictors that give sets of labels themselves. A set is a union of partial paths from a root
// down. Its predicted labels are the nodes that have no child in it. A virtual root is no label. A
// spawned leaf has no vector and stands for the path that ends at its parent.
//
// Terminals are ranked by a score that is positive exactly where they are predicted.

// paths is the common part of the rankers that predict sets of paths.
type paths struct {
	t *taxonomy.Tree
	// spawned maps a node to the leaf spawned under it, or to -1.
	spawned []int32
}

// newPaths returns the common part for a tree.
func newPaths(t *taxonomy.Tree) *paths {
	p := &paths{t, make([]int32, t.Len())}
	for n := range p.spawned {
		p.spawned[n] = -1
	}
	for n, k := range t.Kind {
		if k == taxonomy.Spawned {
			p.spawned[t.Parent[n]] = int32(n)
		}
	}
	return p
}

// rank offers the terminals with their scores, and makes the row's own set of the lowest nodes in
// the union.
func (p *paths) rank(row *Row, s *pathScratch, in []bool, score []float64) {
	own, first := s.own[:0], int32(-1)
	for n := p.t.Len() - 1; n >= 0; n-- { // children follow their parents
		if p.t.Leaf[n] && (first < 0 || score[n] >= score[first]) {
			first = int32(n)
		}
		if !in[n] || p.t.Kind[n] == taxonomy.Spawned {
			continue
		}
		if up := p.t.Parent[n]; up >= 0 {
			s.inner[up] = true
		}
		if s.inner[n] {
			s.inner[n] = false
			continue
		}
		if p.t.Kind[n] == taxonomy.Virtual {
			continue
		}
		at := int32(n)
		if l := p.spawned[n]; l >= 0 {
			at = l
		}
		own = append(own, Scored{at, score[at]})
	}
	sortScored(own)
	s.own = own
	row.SetOwn(own)
	row.First(Scored{first, score[first]})
	for n, leaf := range p.t.Leaf {
		if leaf && int32(n) != first {
			row.Offer(Scored{int32(n), score[n]})
		}
	}
}

// pathScratch is the working memory of one of these rankers. It has an entry for each node.
type pathScratch struct {
	// own is the row's set.
	own                        []Scored
	in, inner                  []bool
	most, below, with, without []float64
}

// size makes room for a number of nodes.
func (s *pathScratch) size(nodes int) {
	if len(s.in) < nodes {
		s.in, s.inner = make([]bool, nodes), make([]bool, nodes)
		s.most, s.below, s.with, s.without = make([]float64, nodes), make([]float64, nodes), make([]float64, nodes),
			make([]float64, nodes)
	}
	for n := range s.most {
		s.most[n], s.below[n] = math.Inf(-1), 0
	}
}

// newNested returns the ranker that predicts a node if its parent is predicted and its own x.w is
// above 0, in one pass from the roots down. A node's score is the smallest x.w on its path. A
// spawned leaf's is the smaller of its parent's score and minus the greatest x.w among the parent's
// children.
func newNested(t *taxonomy.Tree) (Ranker, error) {
	p := newPaths(t)
	s := &pathScratch{}
	return func(row *Row, score []float64) {
		s.size(t.Len())
		most := s.most // greatest x.w of a child
		for n, up := range t.Parent {
			way := math.Inf(1)
			if up >= 0 {
				way = score[up]
				if t.Kind[n] == taxonomy.Node {
					most[up] = max(most[up], score[n])
				}
			}
			if t.Kind[n] != taxonomy.Node {
				score[n] = way
			} else {
				score[n] = min(way, score[n])
			}
			s.in[n] = score[n] > 0
		}
		for n, l := range p.spawned {
			if l >= 0 {
				score[l] = min(score[n], -most[n])
			}
		}
		p.rank(row, s, s.in, score)
	}, nil
}

// newBestPaths returns the ranker that predicts the union y of partial paths with the greatest sum
// of x.w over its nodes, which may be empty ([JMLR] 3.4, restricted to labelings that are such
// unions).
//
// In the pass up, S_n is the best sum of a part at and below n that contains n. The root is in the
// union if its S is above 0, and so is a child of a node that is in. In the pass down, A_n and B_n
// are the best sums of all y with and without n. A node's score is A_n - B_n. A spawned leaf's
// compares the y in which its parent is lowest with all others.
func newBestPaths(t *taxonomy.Tree) (Ranker, error) {
	p := newPaths(t)
	s := &pathScratch{}
	return func(row *Row, score []float64) {
		s.size(t.Len())
		below, most := s.below, s.most // sum over children of max(0, S), and their greatest S
		for n := t.Len() - 1; n >= 0; n-- {
			if t.Kind[n] == taxonomy.Spawned {
				continue
			}
			score[n] += below[n]
			if up := t.Parent[n]; up >= 0 {
				below[up] += max(0, score[n])
			}
		}
		with, without := s.with, s.without
		for n, up := range t.Parent {
			if t.Kind[n] == taxonomy.Spawned {
				continue
			}
			sum := score[n]
			if up < 0 {
				s.in[n], with[n], without[n] = sum > 0, sum, 0
				continue
			}
			most[up] = max(most[up], sum)
			s.in[n] = s.in[up] && sum > 0
			rest := with[up] - max(0, sum)
			with[n], without[n] = rest+sum, max(rest, without[up])
		}
		for n := range score {
			if t.Kind[n] != taxonomy.Spawned {
				score[n] = with[n] - without[n]
			}
		}
		for n, l := range p.spawned {
			if l >= 0 {
				lowest, other := with[n]-below[n], without[n]
				score[l] = lowest - max(other, with[n]+min(most[n], 0)) // with one child, even if that lowers the sum
			}
		}
		p.rank(row, s, s.in, score)
	}, nil
}
