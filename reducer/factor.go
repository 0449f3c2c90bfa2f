package reducer

import (
	"container/heap"
	"slices"
)

// factor is the symbolic LDL' factorisation of a symmetric positive definite matrix: a
// fill-reducing order (minimum degree) and the pattern of L, found once (T. Davis, LDL, ACM TOMS
// 31(4), 2005). factored holds numbers.
type factor struct {
	// order has the unknown at each position, and place the position of each unknown.
	order []int32
	place []int32
	// parent is the elimination tree, by position. A root has -1.
	parent []int32
	// begin has the beginnings of the columns of L, by position.
	begin []int64
	// work is the number of multiplications of one numeric factorisation.
	work float64
	// dense says that the fill is too large, so that conjugate gradients replace the factorisation.
	dense bool
}

// maxFill bounds the entries of L. Beyond it a feature's factorisation costs more than dozens of
// products with the matrix.
const maxFill = 4_000_000

// newFactor orders and analyses the pattern: adjacent[i] lists i's neighbours, ascending. unwanted
// is the argument of Prepare.
func newFactor(adjacent [][]int32, unwanted func() bool) *factor {
	f := &factor{}
	var ok bool
	if f.order, ok = minimumDegree(adjacent, unwanted); !ok {
		f.dense = true
		return f
	}
	n := len(adjacent)
	f.place, f.parent, f.begin = make([]int32, n), make([]int32, n), make([]int64, n+1)
	for k, i := range f.order {
		f.place[i] = int32(k)
	}
	seen := make([]int32, n)
	for k, i := range f.order {
		f.parent[k], seen[k] = -1, int32(k)
		for _, m := range adjacent[i] {
			for j := f.place[m]; j < int32(k) && seen[j] != int32(k); j = f.parent[j] {
				if f.parent[j] < 0 {
					f.parent[j] = int32(k)
				}
				f.begin[j+1]++
				seen[j] = int32(k)
			}
		}
	}
	for k := range n {
		f.work += float64(f.begin[k+1]) * float64(f.begin[k+1])
		f.begin[k+1] += f.begin[k]
	}
	return f
}

// fill returns the number of entries of L below its diagonal.
func (f *factor) fill() int64 { return f.begin[len(f.begin)-1] }

// degrees is a heap of (degree, unknown). Its entries may be stale.
type degrees [][2]int32

func (d degrees) Len() int           { return len(d) }
func (d degrees) Less(a, b int) bool { return slices.Compare(d[a][:], d[b][:]) < 0 }
func (d degrees) Swap(a, b int)      { d[a], d[b] = d[b], d[a] }
func (d *degrees) Push(x any)        { *d = append(*d, x.([2]int32)) }
func (d *degrees) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// minimumDegree eliminates unknowns by least degree, ties by number, and connects the neighbours of
// each. ok is false when the fill exceeds maxFill, or when unwanted returns true.
func minimumDegree(adjacent [][]int32, unwanted func() bool) (order []int32, ok bool) {
	n := len(adjacent)
	near := make([]map[int32]struct{}, n)
	var h degrees
	for i, list := range adjacent {
		near[i] = make(map[int32]struct{}, len(list))
		for _, m := range list {
			near[i][m] = struct{}{}
		}
		h = append(h, [2]int32{int32(len(near[i])), int32(i)})
	}
	heap.Init(&h)
	gone := make([]bool, n)
	fill := 0
	for len(order) < n {
		if unwanted != nil && unwanted() {
			return nil, false
		}
		top := heap.Pop(&h).([2]int32)
		i := top[1]
		if gone[i] || int(top[0]) != len(near[i]) {
			continue
		}
		if fill += len(near[i]); fill > maxFill {
			return nil, false
		}
		gone[i] = true
		order = append(order, i)
		list := make([]int32, 0, len(near[i]))
		for m := range near[i] {
			list = append(list, m)
		}
		slices.Sort(list)
		for _, a := range list {
			delete(near[a], i)
			for _, b := range list {
				if a != b {
					near[a][b] = struct{}{}
				}
			}
		}
		for _, a := range list {
			heap.Push(&h, [2]int32{int32(len(near[a])), a})
		}
		near[i] = nil
	}
	return order, true
}

// factored is a numeric LDL' factorisation: the columns of L in the factor's order, and D.
type factored struct {
	*factor
	row   []int32
	value []float64
	diag  []float64
}

// numbers is the scratch of a numeric factorisation.
type numbers struct {
	y                []float64
	used             []int64
	pattern, flagged []int32
}

// newFactored returns memory for a numeric factorisation.
func newFactored(f *factor) *factored {
	return &factored{factor: f, row: make([]int32, f.fill()), value: make([]float64, f.fill()),
		diag: make([]float64, len(f.order))}
}

func newNumbers(unknowns int) *numbers {
	return &numbers{y: make([]float64, unknowns), used: make([]int64, unknowns), pattern: make([]int32, unknowns),
		flagged: make([]int32, unknowns)}
}

// entries calls visit for the off-diagonal entries of unknown i's row, and returns its diagonal
// entry.
func (g *Graph) entries(curvature []float64, i int32, visit func(j int32, v float64)) (diagonal float64) {
	n := int32(len(g.degree))
	if i >= n {
		group := i - n
		m := g.follow(curvature, group)
		for _, p := range g.LeafGroups[group].Nodes {
			visit(p, -m)
		}
		if m == 0 {
			return 1 // this mean is never read
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

// factorise computes L and D row by row, each row by a sparse triangular solve over its pattern in
// the elimination tree (Davis 2005, ldl_numeric).
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

// substitute sets w to the solution of L D L' w = right over the first n unknowns. The right-hand
// sides of the others, the means, are zero. x is scratch.
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
