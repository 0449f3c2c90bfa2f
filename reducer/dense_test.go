package reducer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/internal/linalg/contribution"
)

// system is one random update with everything dense: the reference works feature by
// feature over all internals, by plain Gaussian elimination.
type system struct {
	forest    *Forest
	width     int
	beta      float32
	damping   float64
	follower  float64
	set       int32
	x, prev   [][]float32 // node, feature
	v         [][]float64
	curvature [][]float64
	in        []contribution.Contribution // one block after the other
}

// randomForest in preorder, with several roots and every shape between chain and star.
func randomForest(r *rand.Rand, nodes int) *Forest {
	f := &Forest{}
	var path []int32
	for p := range int32(nodes) {
		path = path[:r.IntN(len(path)+1)]
		if r.IntN(3) > 0 && p > 0 { // mostly deeper
			path = append(path[:0], ancestors(f, p-1)...)
		}
		parent := int32(-1)
		if len(path) > 0 {
			parent = path[len(path)-1]
			f.Children[parent]++
		}
		f.Parent, f.Children = append(f.Parent, parent), append(f.Children, 0)
		f.Terminals, f.Set = append(f.Terminals, int32(r.IntN(4))), append(f.Set, int32(len(path)%2))
		path = append(path, p)
	}
	return f
}

// ancestors is the path from the root to p.
func ancestors(f *Forest, p int32) (path []int32) {
	for ; p >= 0; p = f.Parent[p] {
		path = append(path, p)
	}
	slices.Reverse(path)
	return path
}

func randomSystem(seed uint64, nodes, width int) *system {
	r := rand.New(rand.NewPCG(seed, 2))
	s := &system{forest: randomForest(r, nodes), width: width, beta: float32(r.Float64()), damping: 0.5 + r.Float64()/2}
	if seed%3 == 1 {
		s.forest.Inner = 0.5 + 3*r.Float64()
	}
	if seed%3 == 2 {
		s.forest.Below = make([]float64, nodes)
		for p, q := range s.forest.Parent {
			s.forest.Edge = append(s.forest.Edge, 0.5+3*r.Float64())
			if q >= 0 {
				s.forest.Below[q] += s.forest.Edge[p]
			}
		}
	}
	s.x, s.prev = s.inherited(r), s.inherited(r)
	s.v, s.curvature = zeros(nodes, width), zeros(nodes, width)
	for range 3 { // blocks
		for p := range int32(nodes) {
			s.contribute(r, p)
		}
	}
	return s
}

// inherited draws vectors in which most features of a node have its parent's value.
func (s *system) inherited(r *rand.Rand) [][]float32 {
	x := make([][]float32, len(s.forest.Parent))
	for p := range x {
		x[p] = make([]float32, s.width)
		if q := s.forest.Parent[p]; q >= 0 {
			copy(x[p], x[q])
		}
		for f := range x[p] {
			if f%4 != 0 && r.IntN(4) == 0 { // every fourth feature nobody holds
				x[p][f] = float32(r.NormFloat64())
			}
		}
	}
	return x
}

// contribute adds a block's part for p, of one of p's terminals if it has any.
func (s *system) contribute(r *rand.Rand, p int32) {
	if s.forest.Terminals[p] == 0 || r.IntN(3) == 0 {
		return
	}
	c := contribution.Contribution{Parent: p}
	for f := range s.width {
		if f%8 == 0 || r.IntN(3) > 0 || s.curvature[p][f] >= float64(s.forest.Terminals[p]) {
			continue
		}
		sum := r.NormFloat64()
		c.Feature, c.Sum, c.Curvature = append(c.Feature, uint32(f)), append(c.Sum, sum), append(c.Curvature, 1)
		s.v[p][f] += sum
		s.curvature[p][f]++
	}
	if len(c.Feature) > 0 {
		s.in = append(s.in, c)
	}
}

func zeros(n, width int) [][]float64 {
	z := make([][]float64, n)
	for i := range z {
		z[i] = make([]float64, width)
	}
	return z
}

// overrides is dense vectors in the sparse form of Vectors, over [lo, hi).
func overrides(f *Forest, x [][]float32, lo, hi int) *Vectors {
	keep := make([][]bool, len(x))
	for p := len(x) - 1; p >= 0; p-- {
		if keep[p] == nil {
			keep[p] = make([]bool, hi)
		}
		for i := lo; i < hi; i++ {
			up := float32(0)
			if q := f.Parent[p]; q >= 0 {
				up = x[q][i]
			}
			if keep[p][i] || !same(x[p][i], up) {
				keep[p][i] = true
				if q := f.Parent[p]; q >= 0 {
					if keep[q] == nil {
						keep[q] = make([]bool, hi)
					}
					keep[q][i] = true
				}
			}
		}
	}
	v := Zero(len(x))
	for p := range x {
		for i := lo; i < hi; i++ {
			if keep[p][i] {
				v.Feature, v.Value = append(v.Feature, uint32(i)), append(v.Value, x[p][i])
			}
		}
		v.Begin[p+1] = int64(len(v.Feature))
	}
	return v
}

// expand is the inverse of overrides.
func expand(f *Forest, v *Vectors, width int) [][]float32 {
	x := make([][]float32, len(f.Parent))
	for p := range x {
		x[p] = make([]float32, width)
		if q := f.Parent[p]; q >= 0 {
			copy(x[p], x[q])
		}
		for e := v.Begin[p]; e < v.Begin[p+1]; e++ {
			x[p][v.Feature[e]] = v.Value[e]
		}
	}
	return x
}

// part cuts the contributions down to a range.
func part(in []contribution.Contribution, lo, hi uint32) (out []contribution.Contribution) {
	for _, c := range in {
		d := contribution.Contribution{Parent: c.Parent}
		for e, f := range c.Feature {
			if f >= lo && f < hi {
				d.Feature, d.Sum, d.Curvature = append(d.Feature, f), append(d.Sum, c.Sum[e]), append(d.Curvature, c.Curvature[e])
			}
		}
		out = append(out, d)
	}
	return out
}

// run updates one range by the package.
func (s *system) run(rule Rule, lo, hi int, certify bool) (*Vectors, Sums) {
	return s.runIn(new(Scratch), rule, lo, hi, certify)
}

func (s *system) runIn(memory *Scratch, rule Rule, lo, hi int, certify bool) (*Vectors, Sums) {
	t := Task{Forest: s.forest, Lo: uint32(lo), Hi: uint32(hi), Rule: rule, Set: s.set, Damping: s.damping,
		Follower: s.follower, Certify: certify, Beta: s.beta}
	return memory.Run(t, part(s.in, t.Lo, t.Hi), overrides(s.forest, s.x, lo, hi), overrides(s.forest, s.prev, lo, hi))
}

// y is the extrapolated point.
func (s *system) y() [][]float32 {
	y := make([][]float32, len(s.x))
	for p := range y {
		y[p] = make([]float32, s.width)
		for f := range y[p] {
			y[p][f] = s.x[p][f]
			if s.beta != 0 {
				y[p][f] += float32(s.beta * float32(s.x[p][f]-s.prev[p][f]))
			}
		}
	}
	return y
}

// touched says which nodes the sparse system of feature f has: those where x or x_prev
// differs from the parent's or something is contributed, and their ancestors.
func (s *system) touched(f int) []bool {
	t := make([]bool, len(s.x))
	for p := len(t) - 1; p >= 0; p-- {
		x, prev := float32(0), float32(0)
		q := s.forest.Parent[p]
		if q >= 0 {
			x, prev = s.x[q][f], s.prev[q][f]
		}
		t[p] = t[p] || s.x[p][f] != x || s.prev[p][f] != prev || s.curvature[p][f] > 0
		if t[p] && q >= 0 {
			t[q] = true
		}
	}
	return t
}

// weight of the edge above p: the forest's between internal nodes, 1 to zero.
func (s *system) weight(p int) float64 {
	if s.forest.Edge != nil {
		return s.forest.Edge[p]
	}
	if s.forest.Parent[p] >= 0 && s.forest.Inner != 0 {
		return s.forest.Inner
	}
	return 1
}

// edges is the matrix of the internals' edges: deg_p on the diagonal, -1 at neighbours.
func (s *system) edges() [][]float64 {
	m := zeros(len(s.x), len(s.x))
	for p, q := range s.forest.Parent {
		e := s.weight(p)
		m[p][p] += e // its parent's edge, the zero parent's too
		if q >= 0 {
			m[q][q] += e
			m[p][q], m[q][p] = m[p][q]-e, m[q][p]-e
		}
	}
	return m
}

// curvatures of every node under a rule, for feature f.
func (s *system) curvatures(rule Rule, f int) []float64 {
	k := make([]float64, len(s.x))
	touched := s.touched(f)
	for p := range k {
		switch {
		case rule == Support:
			k[p] = s.curvature[p][f]
		case rule == Full || rule == Family && touched[p]:
			k[p] = float64(s.forest.Terminals[p])
		}
	}
	if rule == Support {
		s.follow(k, f)
	}
	return k
}

// follow takes the terminals without support one by one up to where something below has support.
func (s *system) follow(k []float64, f int) {
	holds := make([]bool, len(k))
	for p := range s.forest.Parent {
		for q := int32(p); s.curvature[p][f] > 0 && q >= 0; q = s.forest.Parent[q] {
			holds[q] = true
		}
	}
	for p, n := range s.forest.Terminals {
		for range n - int32(s.curvature[p][f]) {
			q := int32(p)
			for q >= 0 && !holds[q] {
				q = s.forest.Parent[q]
			}
			if q >= 0 {
				k[q] += s.follower
			}
		}
	}
}

// reference is x+ of a rule, float64.
func (s *system) reference(rule Rule) [][]float64 {
	y := s.y()
	next := zeros(len(s.x), s.width)
	for f := range s.width {
		for p, w := range s.referenceColumn(rule, f, y) {
			next[p][f] = w
		}
	}
	return next
}

func (s *system) referenceColumn(rule Rule, f int, y [][]float32) []float64 {
	w := make([]float64, len(s.x))
	switch rule {
	case Support, Family, Full:
		m, k := s.edges(), s.curvatures(rule, f)
		for p := range w {
			m[p][p] += k[p]
			w[p] = k[p]*float64(y[p][f]) + s.v[p][f]
		}
		return eliminate(m, w)
	case Mean, Jacobi:
		for p := range w {
			mean := s.meanOf(rule, p, f)
			w[p] = float64(s.x[p][f])
			if rule == Jacobi {
				w[p] += s.damping * (mean - w[p])
			} else if s.forest.Set[p] == s.set {
				w[p] = mean
			}
		}
	case Emit:
		for p := range w {
			w[p] = float64(y[p][f])
		}
	}
	return w
}

// meanOf is the mean of p's neighbours ([TKDD] eq. 11), its terminals at solved + v.
func (s *system) meanOf(rule Rule, p, f int) float64 {
	solved := s.x
	if rule == Jacobi {
		solved = s.prev
	}
	k := float64(s.forest.Terminals[p])
	sum, n := k*float64(solved[p][f])+s.v[p][f], k+s.weight(p)
	for q, parent := range s.forest.Parent {
		if parent == int32(p) {
			sum, n = sum+s.weight(q)*float64(s.x[q][f]), n+s.weight(q)
		}
	}
	if q := s.forest.Parent[p]; q >= 0 {
		sum += s.weight(p) * float64(s.x[q][f])
	}
	return sum / n
}

// eliminate solves m w = b with partial pivoting, in place.
func eliminate(m [][]float64, b []float64) []float64 {
	n := len(b)
	for c := range n {
		best := c
		for r := c + 1; r < n; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[best][c]) {
				best = r
			}
		}
		m[c], m[best], b[c], b[best] = m[best], m[c], b[best], b[c]
		for r := c + 1; r < n; r++ {
			k := m[r][c] / m[c][c]
			for j := c; j < n; j++ {
				m[r][j] -= k * m[c][j]
			}
			b[r] -= k * b[c]
		}
	}
	for c := n - 1; c >= 0; c-- {
		for j := c + 1; j < n; j++ {
			b[c] -= m[c][j] * b[j]
		}
		b[c] /= m[c][c]
	}
	return b
}

func TestEliminate(t *testing.T) {
	got := eliminate([][]float64{{0, 2, 1}, {1, 1, 0}, {3, 0, 4}}, []float64{7, 3, 15})
	for i, want := range []float64{1, 2, 3} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Fatalf("%v", got)
		}
	}
}
