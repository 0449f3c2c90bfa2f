package direct

import "taxon/reducer"

// Paths expands override vectors.
type Paths struct {
	f       *reducer.Forest
	x, prev *reducer.Vectors
	beta    float32
	d       int
	path    []int32
	vec     [][2][]float32
}

// NewPaths prepares vectors y = x + beta (x - prev).
func NewPaths(f *reducer.Forest, x, prev *reducer.Vectors, beta float32, d int) *Paths {
	return &Paths{f: f, x: x, prev: prev, beta: beta, d: d}
}

// Vector returns a fresh dense y of internal node n.
func (p *Paths) Vector(n int32) []float32 {
	var want []int32
	for q := n; q >= 0; q = p.f.Parent[q] {
		want = append(want, q)
	}
	k := 0
	for k < len(p.path) && k < len(want) && p.path[k] == want[len(want)-1-k] {
		k++
	}
	p.path, p.vec = p.path[:k], p.vec[:k]
	for ; k < len(want); k++ {
		q := want[len(want)-1-k]
		v := [2][]float32{make([]float32, p.d), make([]float32, p.d)}
		if k > 0 {
			copy(v[0], p.vec[k-1][0])
			copy(v[1], p.vec[k-1][1])
		}
		for i, src := range []*reducer.Vectors{p.x, p.prev} {
			for e := src.Begin[q]; e < src.Begin[q+1]; e++ {
				v[i][src.Feature[e]] = src.Value[e]
			}
		}
		p.path, p.vec = append(p.path, q), append(p.vec, v)
	}
	y := make([]float32, p.d)
	v := p.vec[len(p.vec)-1]
	for f := range y {
		y[f] = reducer.Extrapolate(v[0][f], v[1][f], p.beta)
	}
	return y
}
