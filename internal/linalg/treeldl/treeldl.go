// Package treeldl stores and factors symmetric matrices over the nodes of a tree in which
// off-diagonal entries exist only between a node and its ancestors. They are factored as L D L'
// from the leaves up, without fill-in, because the ancestors of a node are ancestors of each other.
//
// Node 0 is the root and has no row. Parents come before their children.
package treeldl

import "math"

// Shape says where entries are stored: the entry of node n and its k-th ancestor has the index
// Begin[n]+k. The parent is the 0th ancestor, and the root is not counted.
type Shape struct {
	Parent []int32
	// Begin has one element more than there are nodes.
	Begin []int32
}

// NewShape returns the shape of the tree whose nodes have these parents.
func NewShape(parent []int32) *Shape {
	s := &Shape{Parent: parent, Begin: make([]int32, len(parent)+1)}
	for n, p := range parent {
		s.Begin[n+1] = s.Begin[n]
		if p > 0 {
			s.Begin[n+1] += s.Begin[p+1] - s.Begin[p] + 1
		}
	}
	return s
}

// Matrix is a symmetric matrix of a shape, or its factors L and D. Solve needs the factors.
type Matrix struct {
	*Shape
	Diagonal []float64
	Entry    []float64
}

// New returns a matrix of zeros.
func (s *Shape) New() *Matrix {
	return &Matrix{s, make([]float64, len(s.Parent)), make([]float64, s.Begin[len(s.Parent)])}
}

// Factor sets f to the factors of m - shift I over the nodes from, .., to-1, which must be one or
// several complete subtrees. It returns the number of pivots that are not above zero, which is the
// number of eigenvalues of m that are at most shift.
func (m *Matrix) Factor(f *Matrix, shift float64, from, to int) (low int) {
	for n := from; n < to; n++ {
		f.Diagonal[n] = m.Diagonal[n] - shift
	}
	copy(f.Entry[f.Begin[from]:f.Begin[to]], m.Entry[m.Begin[from]:m.Begin[to]])
	for n := to - 1; n >= from; n-- {
		d := f.Diagonal[n]
		if !(d > 0) {
			low++
		}
		row := f.Entry[f.Begin[n]:f.Begin[n+1]]
		a := f.Parent[n]
		for k, x := range row {
			if x != 0 {
				l := x / d
				f.Diagonal[a] -= float64(l * x)
				up := f.Entry[f.Begin[a]:f.Begin[a+1]]
				for j, y := range row[k+1:] {
					up[j] -= float64(l * y)
				}
				row[k] = l
			}
			a = f.Parent[a]
		}
	}
	return low
}

// Solve replaces v, which holds the nodes from, .., to-1, by the solution of the factored system.
func (f *Matrix) Solve(v []float64, from, to int) {
	for n := to - 1; n >= from; n-- {
		x := v[n-from]
		if x == 0 {
			continue
		}
		a := f.Parent[n]
		for _, l := range f.Entry[f.Begin[n]:f.Begin[n+1]] {
			v[int(a)-from] -= float64(l * x)
			a = f.Parent[a]
		}
	}
	for n := from; n < to; n++ {
		x, a := v[n-from]/f.Diagonal[n], f.Parent[n]
		for _, l := range f.Entry[f.Begin[n]:f.Begin[n+1]] {
			x -= float64(l * v[int(a)-from])
			a = f.Parent[a]
		}
		v[n-from] = x
	}
}

// Least returns the smallest eigenvalue, up to rounding, by bisection.
func (m *Matrix) Least() float64 {
	f, n := m.New(), len(m.Parent)
	low, high := math.Inf(1), math.Inf(1) // Gershgorin's lower bound, and a diagonal entry
	sum := make([]float64, n)
	for i := range n {
		a := m.Parent[i]
		for _, x := range m.Entry[m.Begin[i]:m.Begin[i+1]] {
			sum[i] += math.Abs(x)
			sum[a] += math.Abs(x)
			a = m.Parent[a]
		}
	}
	for i := 1; i < n; i++ {
		low, high = min(low, m.Diagonal[i]-sum[i]), min(high, m.Diagonal[i])
	}
	for {
		mid := low + (high-low)/2
		if !(mid > low && mid < high) {
			return low
		}
		if m.Factor(f, mid, 1, n) > 0 {
			high = mid
		} else {
			low = mid
		}
	}
}
