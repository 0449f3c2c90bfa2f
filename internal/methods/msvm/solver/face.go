package solver

import (
	"math"

	"taxon/internal/linalg/conjugate"
)

// Where C is large or labels are noisy, passes settle which duals are above zero long before they
// settle their values. Then a climb takes over: with the other duals fixed at zero D is a quadratic,
// and conjugate gradients find its maximum.
const (
	// climbFrom is the number of passes of a solve before the first climb, which most problems do
	// not need, and climbEvery the number between two climbs.
	climbFrom  = 60
	climbEvery = 15
	// climbSteps bounds the conjugate gradient steps, and climbEnds is the share of the residual's
	// squared norm at which they end.
	climbSteps = 300
	climbEnds  = 1e-14
	// A climb takes no longer than the passes before it. With vectors of up to smallWeights
	// numbers it may take smallVisits in any case.
	smallWeights = 1 << 20
	smallVisits  = 1 << 24
	// leastSteps is the number of steps that a climb must have time for.
	leastSteps = 10
)

// tight is the relative distance of a row's sum from C below which the row's duals cannot grow
// together. flat is the share of its entries' own curvature below which a direction has none.
const (
	tight = 1e-11
	flat  = 1e-13
)

// face is the set of duals above zero, row by row.
type face struct {
	rows []int32
	// begin holds the index of each row's first entry.
	begin []int
	// at is each entry's place in State.Value.
	at    []int
	class []uint32
	// worth is s e of each entry.
	worth []float64
	// slack says of each row whether its duals may grow together.
	slack []bool
}

// openFace returns the face of the present duals.
func (s *Solver) openFace() *face {
	f, st := &face{}, s.state
	for i := range s.p.Class {
		total, n := 0.0, len(f.at)
		for k := st.Begin[i]; k < st.Begin[i+1]; k++ {
			if b := st.Value[k]; b > 0 {
				total += b
				scale, e := 1.0, 1.0
				if s.t != nil {
					scale, e = s.t.scale(s.p.Class[i], int32(st.Class[k]))
				}
				f.at, f.class, f.worth = append(f.at, int(k)), append(f.class, st.Class[k]), append(f.worth, scale*e)
			}
		}
		if len(f.at) > n {
			f.rows, f.begin, f.slack = append(f.rows, int32(i)), append(f.begin, n),
				append(f.slack, total < s.p.Rows.RowC(i)*(1-tight))
		}
	}
	f.begin = append(f.begin, len(f.at))
	return f
}

// margins sets out to s m of the face's entries, at the current vectors.
func (s *Solver) margins(f *face, out []float64) {
	for r, i := range f.rows {
		from, to := f.begin[r], f.begin[r+1]
		own := s.costs(int(i), f.class[from:to], out[from:to])
		for k := from; k < to; k++ {
			if s.t == nil { // costs are 1 + w_m.x, and own is w_y.x
				out[k] -= own
			}
			out[k] = f.worth[k] - out[k]
		}
	}
}

// project subtracts the mean from the entries of rows whose duals cannot grow together.
func (f *face) project(x []float64) {
	for r, slack := range f.slack {
		if slack {
			continue
		}
		part, sum := x[f.begin[r]:f.begin[r+1]], 0.0
		for _, v := range part {
			sum += v
		}
		sum /= float64(len(part))
		for k := range part {
			part[k] -= sum
		}
	}
}

// scaled sets z to r divided by the rows' squared lengths, and returns r.z.
func (s *Solver) scaled(f *face, r, z []float64) (product float64) {
	for n, i := range f.rows {
		a := s.p.Rows.Norm(int(i))
		for k := f.begin[n]; k < f.begin[n+1]; k++ {
			z[k] = r[k] / a
			product += float64(r[k] * z[k])
		}
	}
	return product
}

// parts returns the sum, over the entries of d, of the curvature along that entry alone.
func (s *Solver) parts(f *face, d []float64) (sum float64) {
	for r, i := range f.rows {
		for k := f.begin[r]; k < f.begin[r+1]; k++ {
			sum += float64(s.p.Rows.Norm(int(i)) * d[k] * d[k])
		}
	}
	return sum
}

// at sets the duals of the face to b and computes their vectors.
func (s *Solver) at(f *face, b []float64) {
	for k, p := range f.at {
		s.state.Value[p] = b[k]
	}
	s.fill()
}

// climb raises D over the duals above zero. It moves towards the maximum, and stops where a dual
// becomes zero or a row's sum becomes C. Then it continues with the duals that are left. spent is
// the number of visits that it may take.
func (s *Solver) climb(sums *Sums, spent int64) {
	if len(s.w) <= smallWeights {
		spent = max(spent, smallVisits)
	}
	for end, more := sums.Visits+spent, true; more; {
		more = s.climbOnce(sums, end)
	}
}

// climbOnce makes one such move. more reports that it stopped early.
func (s *Solver) climbOnce(sums *Sums, end int64) (more bool) {
	f := s.openFace()
	n := len(f.at)
	each := int64(len(s.w)) / 2 // visits of a step
	for r, i := range f.rows {
		index, _ := s.p.Rows.X.Row(int(i))
		each += int64(len(index)+1) * int64(f.begin[r+1]-f.begin[r]+1) * 2
	}
	if n == 0 || sums.Visits+leastSteps*each > end {
		return false
	}
	b := make([]float64, n)
	c := &ascent{s: s, f: f, sums: sums, each: each, end: end}
	for _, v := range []*[]float64{&c.X, &c.R, &c.Z, &c.P, &c.Q} {
		*v = make([]float64, n)
	}
	for k, p := range f.at {
		b[k] = s.state.Value[p]
	}
	s.at(f, b)
	s.margins(f, c.Q)
	for k := range c.R {
		c.R[k] = f.worth[k] - c.Q[k]
	}
	f.project(c.R)
	c.Size[0], c.Running = s.scaled(f, c.R, c.Z), 1
	c.Enough[0] = max(climbEnds*c.Size[0], still*still)
	c.Solve(c, climbSteps)
	x := c.X
	f.project(x)
	length, hit := f.reach(s, b, x)
	if more = length < 1; !more {
		length = 1
	}
	for k := range b {
		b[k] = max(b[k]+float64(length*x[k]), 0)
	}
	if more && hit >= 0 {
		b[hit] = 0
	}
	for r, i := range f.rows {
		part, total, c := b[f.begin[r]:f.begin[r+1]], 0.0, s.p.Rows.RowC(int(i))
		for _, v := range part {
			total += v
		}
		for k := range part {
			if total > c { // possible by rounding
				part[k] *= c / total
			}
		}
		s.sum(int(i), part, c)
	}
	s.at(f, b)
	return more
}

// ascent is the linear system of a climb. Its preconditioner is the curvature of each dual by
// itself. Directions respect the bounds on the rows' sums. If D keeps rising along a direction,
// that direction is the last.
type ascent struct {
	conjugate.Gradients
	conjugate.Vectors
	s    *Solver
	f    *face
	sums *Sums
	// each is the number of visits of a step, and end the number at which no further step begins.
	each, end int64
	rises     bool
}

// Multiply implements conjugate.System.
func (c *ascent) Multiply(g *conjugate.Gradients) {
	if c.Turn(g, 1); g.Steps > 0 {
		c.f.project(c.P) // removes rounding errors
	}
	c.s.at(c.f, c.P)
	c.s.margins(c.f, c.Q)
	c.sums.Visits += c.each
	c.Bend(g, 1)
	level := float64(flat * c.s.parts(c.f, c.P))
	c.rises = !(g.Curvature[0] > level)
	g.Curvature[0] = max(g.Curvature[0], level)
	c.f.project(c.Q)
}

// Advance implements conjugate.System.
func (c *ascent) Advance(g *conjugate.Gradients) {
	if c.Vectors.Advance(g, 1); c.rises {
		return
	}
	if g.Next[0] = c.s.scaled(c.f, c.R, c.Z); c.sums.Visits >= c.end {
		g.Next[0] = 0
	}
}

// reach returns how far b may move along x within all bounds. It also returns the dual that is zero
// there, or -1 if a row's sum is C there.
func (f *face) reach(s *Solver, b, x []float64) (far float64, hit int) {
	far, hit = math.Inf(1), -1
	for r, i := range f.rows {
		total, grows := 0.0, 0.0
		for k := f.begin[r]; k < f.begin[r+1]; k++ {
			total += b[k]
			grows += x[k]
			if x[k] < 0 && -b[k]/x[k] < far {
				far, hit = -b[k]/x[k], k
			}
		}
		if c := s.p.Rows.RowC(int(i)); f.slack[r] && grows > 0 && (c-total)/grows < far {
			far, hit = max(c-total, 0)/grows, -1
		}
	}
	return far, hit
}
