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
	right     int // predicted labels that are true
	predicted int
	class     []classCount
	sum       float64 // of the classes' F1
	borne     int     // classes with a positive
}

type classCount struct{ right, predicted int }

func newScorer(p *Profiles) *scorer {
	s := &scorer{p: p, class: make([]classCount, p.classes)}
	for _, n := range p.count {
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

// add predicts class c for an instance that bears it (hit) or not.
func (s *scorer) add(c int32, hit bool) {
	s.sum -= s.f1borne(c)
	s.predicted++
	s.class[c].predicted++
	if hit {
		s.right++
		s.class[c].right++
	}
	s.sum += s.f1borne(c)
}

func (s *scorer) f1borne(c int32) float64 {
	if s.p.count[c] == 0 {
		return 0
	}
	return s.f1(c)
}

func (s *scorer) quality() Quality {
	q := Quality{MicroF1: ratio(2*s.right, s.predicted+len(s.p.truth))}
	if s.borne > 0 {
		q.MacroF1 = s.sum / float64(s.borne)
	}
	return q
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// judge measures a rule on the profiles. keep gives the places of a row that are kept.
func judge(p *Profiles, keep func(dst []int, row int) []int) Quality {
	s := newScorer(p)
	var at []int
	for row := range p.Rows() {
		at = keep(at[:0], row)
		for _, k := range at {
			s.add(p.ranked(row)[k], p.hits(row)[k])
		}
	}
	return s.quality()
}
