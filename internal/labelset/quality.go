package labelset

// Quality is what a rule reached on the held-out instances, as fractions. Macro averages
// over the classes that they bear.
type Quality struct {
	MicroF1 float64 `json:"micro_f1"`
	MacroF1 float64 `json:"macro_f1"`
}

// goal is what the rules are chosen by. Micro-F1 alone is decided by the frequent
// classes, macro-F1 alone by the few rows of the rare ones.
func (q Quality) goal() float64 { return (q.MicroF1 + q.MacroF1) / 2 }

// scorer keeps the figures while labels are added one by one.
type scorer struct {
	p         *Profiles
	right     float64 // predicted labels that are true, each counted by its row's weight
	predicted float64
	class     []classCount
	sum       float64 // of the classes' F1
	borne     int     // classes with a positive
}

type classCount struct{ right, predicted float64 }

func newScorer(p *Profiles) *scorer {
	s := &scorer{p: p, class: make([]classCount, p.classes)}
	for _, n := range p.bears {
		if n > 0 {
			s.borne++
		}
	}
	return s
}

// f1 of class c; 0/0 counts as 0.
func (s *scorer) f1(c int32) float64 {
	k := s.class[c]
	return ratio(2*k.right, k.predicted+s.p.count[c])
}

// add predicts the class at a place of a row.
func (s *scorer) add(row, place int) {
	c, w := s.p.ranked(row)[place], s.p.weight[row]
	s.sum -= s.f1borne(c)
	s.predicted += w
	s.class[c].predicted += w
	if s.p.hits(row)[place] {
		s.right += w
		s.class[c].right += w
	}
	s.sum += s.f1borne(c)
}

func (s *scorer) f1borne(c int32) float64 {
	if s.p.bears[c] == 0 {
		return 0
	}
	return s.f1(c)
}

func (s *scorer) quality() Quality {
	q := Quality{MicroF1: ratio(2*s.right, s.predicted+s.p.total)}
	if s.borne > 0 {
		q.MacroF1 = s.sum / float64(s.borne)
	}
	return q
}

func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// judge measures a rule on the profiles. keep gives the places of a row that are kept.
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
