package labelset

import (
	"math"
	"slices"
)

// Tree assigns the classes to groups, which are nodes of the hierarchy. A group has a larger number
// than the group above it. The zero value has no groups.
type Tree struct {
	// Above maps a group to the group above it, or to -1.
	Above []int32
	// Of maps a class to its group, or to -1.
	Of []int32
}

// shrinker holds the best thresholds of classes and groups for scut. A class's threshold is shrunk
// towards that of the group above it, and so on up to the threshold for all classes:
//
//	t_n = (m_n best_n + k t_above(n)) / (m_n + k),   m_n: held-out positives below n
//
// A class's t_above is lowered by slope ln((m_max+1) / (m_n+1)), more for fewer positives. best_n
// is the best threshold that all classes below n could share: the one with the largest sum of the
// classes' shares in the goal,
//
//	u_c(t) = a (2 right_c - F predicted_c) + b F1_c
//
// a and F linearise micro-F1 at the result of one threshold for all: a label is worth predicting if
// its probability of being right is above F/2. k and slope are chosen by cross-fitting. With k =
// +Inf classes have no threshold of their own.
type shrinker struct {
	tree Tree
	root float64
	// best holds the thresholds of the classes, and groups those of the groups.
	best, groups []float64
	// borne holds the held-out positives of the classes, and weight those of the groups.
	borne, weight []float64
}

// byFalling orders finite numbers, largest first.
func byFalling(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// entry is a class of some row.
type entry struct {
	score, weight float64
	class, part   int32
	hit           bool
}

// newShrinker finds the best thresholds on the rows that use selects. at is the one threshold for
// all classes. Its results on these rows linearise the goal.
func newShrinker(p *Profiles, tree Tree, goal Goal, at float64, use func(row int) bool) *shrinker {
	s := &shrinker{tree: tree, root: at, best: make([]float64, p.classes), groups: make([]float64, len(tree.Above)),
		borne: make([]float64, p.classes), weight: make([]float64, len(tree.Above))}
	borne := make([][]float64, len(p.count))
	for part := range borne {
		borne[part] = make([]float64, p.classes)
	}
	lists := make([][]entry, p.classes)
	floor := p.floor(p.score)
	right, predicted, total := 0.0, 0.0, 0.0
	for row := range p.Rows() {
		if !use(row) {
			continue
		}
		w := p.weight[row]
		for _, c := range p.truth[p.begin[row]:p.begin[row+1]] {
			s.borne[c] += w
			borne[p.part[row]][c] += w
			total += w
		}
		scores, hits := p.scores(row), p.hits(row)
		for k, class := range p.ranked(row) {
			if scores[k] < floor {
				break
			}
			lists[class] = append(lists[class], entry{scores[k], w, class, p.part[row], hits[k]})
			if k == 0 || scores[k] > at {
				predicted += w
				if hits[k] {
					right += w
				}
			}
		}
	}
	micro, macro := goal.weights()
	u := utility{a: ratio(micro, predicted+total), f: ratio(2*right, predicted+total),
		b: macro / float64(p.classes*len(p.count)), borne: borne, class: newScorer(p).class}
	byScore := func(a, b entry) int { return byFalling(a.score, b.score) }
	for c := range lists {
		slices.SortStableFunc(lists[c], byScore)
		s.best[c] = u.best(lists[c], at)
	}
	below := make([][]entry, len(tree.Above))
	for c, list := range lists {
		if len(tree.Of) > 0 && tree.Of[c] >= 0 {
			g := tree.Of[c]
			below[g] = append(below[g], list...)
			s.weight[g] += s.borne[c]
		}
	}
	for g := range slices.Backward(below) {
		slices.SortStableFunc(below[g], byScore)
		s.groups[g] = u.best(below[g], at)
		if up := tree.Above[g]; up >= 0 {
			below[up] = append(below[up], below[g]...)
			s.weight[up] += s.weight[g]
		}
		below[g] = nil
	}
	return s
}

// utility computes the contribution of predicted labels to a goal.
type utility struct {
	a, f, b float64
	// borne is indexed by part and class.
	borne [][]float64
	// class is zero between two calls.
	class [][]classCount
}

// best returns the threshold, halfway between two scores, with the highest utility. It returns
// standard if no threshold gains anything. list is in order of decreasing score.
func (u *utility) best(list []entry, standard float64) float64 {
	sum, best, at := 0.0, 0.0, standard
	for i := 0; i < len(list); {
		j := i
		for ; j < len(list) && list[j].score == list[i].score; j++ {
			e := list[j]
			k, borne := &u.class[e.part][e.class], u.borne[e.part][e.class]
			sum -= float64(u.b * k.f1(borne))
			k.predicted += e.weight
			sum -= float64(u.a * u.f * e.weight)
			if e.hit {
				k.right += e.weight
				sum += float64(2 * u.a * e.weight)
			}
			sum += float64(u.b * k.f1(borne))
		}
		if sum > best {
			best, at = sum, justBelow(list[i].score)
			if j < len(list) {
				at = (list[i].score + list[j].score) / 2
			}
		}
		i = j
	}
	for _, e := range list {
		u.class[e.part][e.class] = classCount{}
	}
	return at
}

// thresholds returns the thresholds of the classes, for a strength k and a slope.
func (s *shrinker) thresholds(k, slope float64) []float64 {
	most := slices.Max(s.borne)
	mix := func(best, m, above float64) float64 {
		if math.IsInf(k, 1) || m+k == 0 {
			return above
		}
		return (float64(m*best) + float64(k*above)) / (m + k)
	}
	groups := make([]float64, len(s.groups))
	for g, up := range s.tree.Above {
		above := s.root
		if up >= 0 {
			above = groups[up]
		}
		groups[g] = mix(s.groups[g], s.weight[g], above)
	}
	out := make([]float64, len(s.best))
	for c := range out {
		above := s.root
		if len(s.tree.Of) > 0 && s.tree.Of[c] >= 0 {
			above = groups[s.tree.Of[c]]
		}
		above -= float64(slope * math.Log((most+1)/(s.borne[c]+1)))
		out[c] = mix(s.best[c], s.borne[c], above)
	}
	return out
}
