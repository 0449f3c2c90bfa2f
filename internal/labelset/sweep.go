package labelset

import (
	"cmp"
	"slices"
)

// candidate is a place of a row that a falling threshold may admit.
type candidate struct {
	margin float64 // score minus the row's base
	row    int32
	place  int32
}

// bestShift finds the threshold d that reaches the best goal when every row keeps the
// places whose score minus the row's base is above d, and its first place anyway:
//
//	find   d = argmax goal({places with score - base[row] > d} and the first ones)
//
// by admitting candidates in falling order of their margin, equal ones together. d lies
// half-way between two margins. Cost: a sort of rows x depth candidates.
func bestShift(p *Profiles, base []float64) (float64, Quality) {
	s := newScorer(p)
	list := make([]candidate, 0, len(p.score))
	first := make([]float64, 0, p.Rows()) // margins of the first places: no threshold is needed to admit them
	for row := range p.Rows() {
		s.add(row, 0)
		scores := p.scores(row)
		first = append(first, scores[0]-base[row])
		for k := 1; k < p.depth; k++ {
			list = append(list, candidate{scores[k] - base[row], int32(row), int32(k)})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.margin, a.margin), cmp.Compare(a.row, b.row), cmp.Compare(a.place, b.place))
	})
	best, quality := highest(list, first), s.quality()
	for i := 0; i < len(list); {
		j := i
		for ; j < len(list) && list[j].margin == list[i].margin; j++ {
			s.add(int(list[j].row), int(list[j].place))
		}
		if q := s.quality(); q.goal() > quality.goal() {
			below := list[i].margin - 1
			if j < len(list) {
				below = list[j].margin
			}
			best, quality = (list[i].margin+below)/2, q
		}
		i = j
	}
	return best, quality
}

// highest is a threshold that admits first places only: the best margin of all others, or
// of any where there are no others.
func highest(list []candidate, first []float64) float64 {
	switch {
	case len(list) > 0:
		return list[0].margin
	case len(first) > 0:
		return slices.Max(first)
	}
	return 0
}
