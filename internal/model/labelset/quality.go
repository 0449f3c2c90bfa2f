package labelset

// Goal is the measure that cut-offs maximise.
type Goal string

// These are the goals. Micro-F1 is dominated by the frequent classes, macro-F1 by the few rows of
// the rare ones.
const (
	MicroF1 Goal = "micro_f1"
	MacroF1 Goal = "macro_f1"
	// MeanF1 is the mean of both.
	MeanF1 Goal = "mean_f1"
)

// weights returns the weights of the two measures in the goal.
func (g Goal) weights() (micro, macro float64) {
	switch g {
	case MicroF1:
		return 1, 0
	case MacroF1:
		return 0, 1
	}
	return 0.5, 0.5
}

// Quality is the performance of a rule on held-out instances, as fractions. Macro averages over all
// classes, and over the parts.
type Quality struct {
	MicroF1 float64 `json:"micro_f1"`
	MacroF1 float64 `json:"macro_f1"`
}

// Of returns the value of a goal.
func (q Quality) Of(g Goal) float64 {
	micro, macro := g.weights()
	return float64(micro*q.MicroF1) + float64(macro*q.MacroF1)
}

// scorer keeps the measures up to date while labels are added and removed one by one.
type scorer struct {
	p *Profiles
	// right is the total weight of correctly predicted labels.
	right     float64
	predicted float64
	// class is by part and class.
	class [][]classCount
	// sum is the sum of the classes' F1.
	sum float64
}

type classCount struct{ right, predicted float64 }

func newScorer(p *Profiles) *scorer {
	s := &scorer{p: p}
	for range p.count {
		s.class = append(s.class, make([]classCount, p.classes))
	}
	return s
}

// f1 returns the F1 of a class that borne instances have. 0/0 counts as 0.
func (k classCount) f1(borne float64) float64 { return ratio(2*k.right, k.predicted+borne) }

// add predicts class number place of a row.
func (s *scorer) add(row, place int) { s.change(row, place, s.p.weight[row]) }

// remove undoes add.
func (s *scorer) remove(row, place int) { s.change(row, place, -s.p.weight[row]) }

// change changes the weight of a predicted class by w.
func (s *scorer) change(row, place int, w float64) {
	c, part := s.p.ranked(row)[place], s.p.part[row]
	k, borne := &s.class[part][c], s.p.count[part][c]
	s.sum -= k.f1(borne)
	s.predicted += w
	k.predicted += w
	if s.p.hits(row)[place] {
		s.right += w
		k.right += w
	}
	s.sum += k.f1(borne)
}

func (s *scorer) quality() Quality {
	return Quality{MicroF1: ratio(2*s.right, s.predicted+s.p.total), MacroF1: s.sum / float64(s.p.classes*len(s.p.count))}
}

// ratio returns part / whole, where 0/0 is 0.
func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// judge measures a rule on the profiles. keep appends the indices of the classes that a row keeps.
func judge(p *Profiles, keep func(dst []int, row int) []int) Quality {
	s := newScorer(p)
	var at []int
	for row := range p.Rows() {
		at = keep(at[:0], row)
		for _, k := range at {
			s.add(row, k)
		}
	}
	return s.quality()
}
