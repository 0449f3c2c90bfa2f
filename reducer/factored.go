package reducer

// factored is a numeric LDL' factorisation: the columns of L in the factor's order, and D.
type factored struct {
	*factor
	row   []int32
	value []float64
	diag  []float64
}

// numbers is the scratch of a factorisation.
type numbers struct {
	y                []float64
	used             []int64
	pattern, flagged []int32
}

func newFactored(f *factor) *factored {
	return &factored{factor: f, row: make([]int32, f.fill()), value: make([]float64, f.fill()), diag: make([]float64, len(f.order))}
}

func newNumbers(unknowns int) *numbers {
	return &numbers{y: make([]float64, unknowns), used: make([]int64, unknowns), pattern: make([]int32, unknowns), flagged: make([]int32, unknowns)}
}

// entries calls visit for unknown i's off-diagonal entries and returns its diagonal one.
func (g *Graph) entries(curvature []float64, i int32, visit func(j int32, v float64)) (diagonal float64) {
	n := int32(len(g.degree))
	if i >= n {
		group := i - n
		m := g.follow(curvature, group)
		for _, p := range g.LeafGroups[group].Nodes {
			visit(p, -m)
		}
		if m == 0 {
			return 1 // nobody asks for this mean
		}
		return m * g.LeafGroups[group].Pull
	}
	for _, q := range g.near[i] {
		visit(q, -g.Weight)
	}
	for _, group := range g.at[i] {
		visit(n+group, -g.follow(curvature, group))
	}
	return g.degree[i] + g.diagonalShift(i)
}

// factorise computes L and D row by row, each row by a sparse triangular solve over its
// pattern in the elimination tree (Davis 2005, ldl_numeric).
func (l *factored) factorise(g *Graph, curvature []float64, s *numbers) {
	for k := range s.flagged {
		s.flagged[k] = -1
		s.used[k] = 0
	}
	for k, i := range l.order {
		top := len(s.pattern)
		s.y[k] = 0
		s.flagged[k] = int32(k)
		d := g.entries(curvature, i, func(m int32, v float64) {
			j := l.place[m]
			if int(j) >= k {
				return
			}
			s.y[j] += v
			depth := 0
			for ; s.flagged[j] != int32(k); j = l.parent[j] {
				s.pattern[depth] = j
				depth++
				s.flagged[j] = int32(k)
			}
			for depth > 0 {
				depth--
				top--
				s.pattern[top] = s.pattern[depth]
			}
		})
		for ; top < len(s.pattern); top++ {
			j := s.pattern[top]
			yj := s.y[j]
			s.y[j] = 0
			lo := l.begin[j]
			for e := lo; e < lo+s.used[j]; e++ {
				s.y[l.row[e]] -= float64(l.value[e] * yj)
			}
			v := yj / l.diag[j]
			d -= float64(v * yj)
			l.row[lo+s.used[j]], l.value[lo+s.used[j]] = int32(k), v
			s.used[j]++
		}
		l.diag[k] = d
	}
}

// substitute solves L D L' w = right over the first n unknowns; the right-hand sides of the
// others, the means, are zero. x is scratch.
func (l *factored) substitute(n int, right, w, x []float64) {
	for k, i := range l.order {
		x[k] = 0
		if int(i) < n {
			x[k] = right[i]
		}
	}
	for j := range x {
		xj := x[j]
		if xj == 0 {
			continue
		}
		lo, hi := l.begin[j], l.begin[j+1]
		value := l.value[lo:hi]
		for e, r := range l.row[lo:hi] {
			x[r] -= float64(value[e] * xj)
		}
	}
	for j := len(x) - 1; j >= 0; j-- {
		sum := x[j] / l.diag[j]
		lo, hi := l.begin[j], l.begin[j+1]
		value := l.value[lo:hi]
		for e, r := range l.row[lo:hi] {
			sum -= float64(value[e] * x[r])
		}
		x[j] = sum
	}
	for k, i := range l.order {
		if int(i) < n {
			w[i] = x[k]
		}
	}
}
