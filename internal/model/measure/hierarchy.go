package measure

import "taxon/internal/data/taxonomy"

// treeSums adds up the hierarchical measures.
type treeSums struct {
	c      *taxonomy.Closure
	walker *taxonomy.Walker
	// sibl and subtree are the weights c_j of [JMLR 2.1] by node.
	sibl    []float64
	subtree []float64
	// root is -1 if there are several roots.
	root int32
	// node counts the decisions on each microlabel.
	node []tally
	// distance is twice the tree loss, summed over rows.
	distance int64
	symDiff  int64
	// lossUnif is l_H with unit weights, summed over rows.
	lossUnif              int64
	lossSibl, lossSubtree float64

	// truth and predicted are the closures of the row.
	truth, predicted      marks
	truthNodes, predNodes []int32
	// labelNodes and firstNodes are scratch memory.
	labelNodes, firstNodes []int32
}

func newTreeSums(c *taxonomy.Closure) *treeSums {
	s := &treeSums{
		c: c, walker: c.NewWalker(), root: -1,
		node: make([]tally, c.Len()), sibl: make([]float64, c.Len()), subtree: make([]float64, c.Len()),
	}
	for _, n := range c.Order() {
		if p := c.First(n); p >= 0 {
			s.sibl[n] = s.sibl[p] / float64(c.Children(p))
		} else {
			s.sibl[n] = 1 / float64(c.Roots())
			if c.Roots() == 1 {
				s.root = n
			}
		}
		s.subtree[n] = float64(c.SubtreeSize(n)) / float64(c.Len())
	}
	return s
}

// add adds a row. nodeOf maps label ids to nodes, or to -1 outside the structure.
func (s *treeSums) add(nodeOf, truth, predicted []int32) {
	s.truthNodes = s.close(s.truthNodes, nodeOf, truth, &s.truth)
	s.predNodes = s.close(s.predNodes, nodeOf, predicted, &s.predicted)
	apart := 0
	for _, n := range s.predNodes {
		if s.truth.has(n) {
			s.node[n].truePos++
			continue
		}
		s.node[n].falsePos++
		apart++
		s.loss(n)
	}
	for _, n := range s.truthNodes {
		if !s.predicted.has(n) {
			s.node[n].falseNeg++
			apart++
			s.loss(n)
		}
	}
	s.symDiff += int64(apart)
	if s.c.IsDAG() {
		apart = s.firstApart(nodeOf, truth, predicted)
	}
	s.distance += int64(apart)
}

// close appends the microlabels of some labels to dst, and leaves them in set.
func (s *treeSums) close(dst, nodeOf, ids []int32, set *marks) []int32 {
	s.labelNodes = inside(s.labelNodes[:0], nodeOf, ids)
	dst = s.walker.Ancestors(dst[:0], s.labelNodes)
	set.reset(s.c.Len())
	for _, n := range dst {
		set.put(n)
	}
	return dst
}

// inside appends the nodes of the labels that the structure has.
func inside(dst, nodeOf, ids []int32) []int32 {
	for _, id := range ids {
		if n := nodeOf[id]; n >= 0 {
			dst = append(dst, n)
		}
	}
	return dst
}

// loss adds the weights of a microlabel that one closure has and the other lacks, if all its
// parents agree. The closure with the microlabel also has its parents, so they agree if the other
// closure has them. Then the other closure has all their ancestors, too, and l_H equals l_H~.
func (s *treeSums) loss(n int32) {
	for _, p := range s.c.Parents(n) {
		if !s.truth.has(p) || !s.predicted.has(p) {
			return
		}
	}
	s.lossUnif++
	s.lossSibl += s.sibl[n]
	s.lossSubtree += s.subtree[n]
}

// firstApart counts the nodes that are on the first-parent root paths of exactly one side.
func (s *treeSums) firstApart(nodeOf, truth, predicted []int32) int {
	s.labelNodes = inside(s.labelNodes[:0], nodeOf, truth)
	s.firstNodes = s.walker.FirstAncestors(s.firstNodes[:0], s.labelNodes)
	ofTruth := len(s.firstNodes)
	s.truth.reset(s.c.Len())
	for _, n := range s.firstNodes {
		s.truth.put(n)
	}
	s.labelNodes = inside(s.labelNodes[:0], nodeOf, predicted)
	s.firstNodes = s.walker.FirstAncestors(s.firstNodes[:0], s.labelNodes)
	shared := 0
	for _, n := range s.firstNodes {
		if s.truth.has(n) {
			shared++
		}
	}
	return ofTruth + len(s.firstNodes) - 2*shared
}

func (s *treeSums) result(instances int) *Hierarchy {
	var total tally
	for n, t := range s.node {
		if int32(n) != s.root {
			total.add(t)
		}
	}
	h := &Hierarchy{
		TreeLoss:  mean(float64(s.distance)/2, instances),
		SymDiff:   mean(float64(s.symDiff), instances),
		HUnif:     mean(float64(s.lossUnif), instances),
		HSibl:     mean(s.lossSibl, instances),
		HSubtree:  mean(s.lossSubtree, instances),
		Precision: total.precision(), Recall: total.recall(), F1: total.f1(),
	}
	h.HtildeUnif, h.HtildeSibl, h.HtildeSubtree = h.HUnif, h.HSibl, h.HSubtree
	return h
}

// byLevel returns the table by level, without levels that have no class and no row.
func (s *treeSums) byLevel(l *labels) []Level {
	var classes []int32
	for id, used := range l.used {
		if used && l.node[id] >= 0 {
			classes = append(classes, l.node[id])
		}
	}
	var table []Level
	var totals []tally
	var sums []float64
	at := func(n int32) int {
		d := int(s.c.Depth(n))
		for len(table) <= d {
			table = append(table, Level{Level: len(table) + 1})
			totals, sums = append(totals, tally{}), append(sums, 0)
		}
		return d
	}
	known := &marks{}
	known.reset(s.c.Len())
	for _, n := range s.walker.Ancestors(nil, classes) {
		known.put(n)
	}
	for n, t := range s.node {
		if known.has(int32(n)) {
			d := at(int32(n))
			table[d].Classes++
			sums[d] += t.f1()
		}
		if t != (tally{}) {
			totals[at(int32(n))].add(t)
		}
	}
	rows := []Level{}
	for d, row := range table {
		row.MacroF1 = mean(sums[d], row.Classes)
		row.Precision, row.Recall, row.F1 = totals[d].precision(), totals[d].recall(), totals[d].f1()
		if row.Classes > 0 || totals[d] != (tally{}) {
			rows = append(rows, row)
		}
	}
	return rows
}
