package labelset

import (
	"cmp"
	"slices"
)

// fewPositives: a class with fewer held-out positives takes the global threshold. A
// threshold fitted on one or two instances is noise, and a low one costs many false
// positives (Yang 2001, the "FBR" variants of scut).
const fewPositives = 4

// fitClasses finds for each class the threshold with its best F1:
//
//	t_c = argmax F1 of class c over the rows whose profile it is in, predicted where its score > t
//
// half-way between two scores. A positive that is in no profile counts as missed.
func (c *Cutoffs) fitClasses(p *Profiles) {
	type scored struct {
		score, weight float64
		hit           bool
	}
	lists := make([][]scored, p.classes)
	for row := range p.Rows() {
		scores, hits := p.scores(row), p.hits(row)
		for k, class := range p.ranked(row) {
			if p.bears[class] >= fewPositives {
				lists[class] = append(lists[class], scored{scores[k], p.weight[row], hits[k]})
			}
		}
	}
	c.Class = make([]float64, p.classes)
	for class, list := range lists {
		c.Class[class] = c.Global
		slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
		right, taken, best := 0.0, 0.0, 0.0
		for i := 0; i < len(list); {
			j := i
			for ; j < len(list) && list[j].score == list[i].score; j++ {
				taken += list[j].weight
				if list[j].hit {
					right += list[j].weight
				}
			}
			if f := ratio(2*right, taken+p.count[class]); f > best {
				below := list[i].score - 1
				if j < len(list) {
					below = list[j].score
				}
				best, c.Class[class] = f, (list[i].score+below)/2
			}
			i = j
		}
	}
	c.HeldOut.Scut = judge(p, func(dst []int, row int) []int { return c.PerClass(dst, p.scores(row), p.ranked(row)) })
}
