package drift

import (
	"math"
	"slices"
)

const (
	// maxVisits bounds the entries that all searches for a combination visit together: about a second.
	maxVisits = 3e8
	// checkEvery: so many passes lie between two looks at the residual.
	checkEvery = 8
	// slack is how far from s_i u.x_i >= 0, all of unit length, a u may lie that is taken for one.
	slack = 1e-6
	// strict is the least s_i u.x_i that counts as above zero.
	strict = 1e-3
	// vanished: a residual of less than this share of the sum it began as is zero.
	vanished = 1e-6
)

func ascending(n []int32) []int32 {
	slices.Sort(n)
	return n
}

// combination looks for any u, by coordinate descent on
//
//	1/2 ||r||^2,  r = sum_pure (1 + l_i) s_i x_i + sum_mixed m_j x_j,  l >= 0,
//
// rows scaled to unit length, pure being those that bear all or none of the classes. At its
// least, r is zero or a u.
func (f *finder) combination() verdict {
	if len(f.touched) == f.Rows.Rows && !slices.ContainsFunc(f.touched, func(i uint32) bool { return f.bears[i] == f.classes }) {
		return held // every row is held to u.x_i = 0
	}
	s := f.start()
	begin := s.length()
	pass := f.Rows.NNZ + int64(f.Rows.Rows)
	for k := 0; ; k++ {
		if k%checkEvery == 0 {
			length := s.length()
			switch {
			case length <= vanished*begin:
				return held
			case s.witness(length):
				return drifts
			}
			f.visits -= pass
		}
		if f.visits -= pass; f.visits < 0 {
			return open
		}
		s.pass()
	}
}

// search is the state of combination.
type search struct {
	*finder
	r    []float64 // the residual
	load []float64 // l_i
}

// start has l = m = 0.
func (f *finder) start() *search {
	if f.norm == nil {
		f.norm = make([]float64, f.Rows.Rows)
		for i := range f.norm {
			sum := 0.0
			f.each(uint32(i), func(_ int, v float64) { sum += float64(v * v) })
			f.norm[i] = math.Sqrt(sum)
		}
	}
	s := &search{finder: f, r: make([]float64, f.Rows.Cols+1), load: make([]float64, f.Rows.Rows)}
	for i := range f.Rows.Rows {
		s.add(uint32(i), f.sign(uint32(i)))
	}
	return s
}

// add moves the residual along row i, scaled to unit length.
func (s *search) add(i uint32, by float64) {
	if by == 0 || s.norm[i] == 0 {
		return
	}
	by /= s.norm[i]
	s.each(i, func(c int, v float64) { s.r[c] += float64(by * v) })
}

// dot is r.x_i, the row scaled to unit length.
func (s *search) dot(i uint32) float64 {
	if s.norm[i] == 0 {
		return 0
	}
	sum := 0.0
	s.each(i, func(c int, v float64) { sum += float64(s.r[c] * v) })
	return sum / s.norm[i]
}

// pass makes r.x_i what it should be, row after row.
func (s *search) pass() {
	for i := range s.load {
		at, sign := s.dot(uint32(i)), s.sign(uint32(i))
		if sign == 0 {
			s.add(uint32(i), -at)
			continue
		}
		next := max(s.load[i]-float64(sign*at), 0)
		s.add(uint32(i), float64(sign*(next-s.load[i])))
		s.load[i] = next
	}
}

func (s *search) length() float64 {
	sum := 0.0
	for _, v := range s.r {
		sum += float64(v * v)
	}
	return math.Sqrt(sum)
}

// witness says whether r, of the given length, is a u.
func (s *search) witness(length float64) bool {
	most := 0.0
	for i := range s.load {
		at, sign := s.dot(uint32(i)), s.sign(uint32(i))
		if sign == 0 {
			at = -math.Abs(at)
		} else {
			at *= sign
		}
		if at < -slack*length {
			return false
		}
		most = max(most, at)
	}
	return most >= strict*length
}
