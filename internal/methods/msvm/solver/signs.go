package solver

import (
	"math"

	"taxon/internal/linalg/conjugate"
)

// signShare is the share of a solve's target gap that the signs may leave.
const signShare = 0.3

// sign sets M to the matrix of the signs S.
func (t *nodes) sign(signs []float64) {
	for p, x := range signs {
		t.m.Entry[p] = float64(t.Alpha * x)
	}
}

// turn raises D in the signs at fixed duals b, recomputes w, and returns the gap that the signs
// leave:
//
//	sum over pairs of Alpha (|w_n.w_a| - S_na w_n.w_a)
//
// With Gram = v v' the nodes below one of level 1 have D(S) = -1/2 tr(Gram M(S)^-1). It is
// concave with the gradient Alpha W_na, where W = M^-1 Gram M^-1 holds the products of the w.
func (s *Solver) turn(aim float64, sums *Sums) (left float64) {
	s.sumUp()
	t := s.t
	n := s.p.Classes
	gram := make([][]float64, n)
	pairs := len(t.m.Entry)
	for k := 1; k < n; k = int(t.end[k]) {
		if t.end[k] > int32(k)+1 {
			gram[k] = make([]float64, t.below[k]*t.below[k])
		}
	}
	for f := range s.width {
		s.eachNode(f, func(v []float64) {
			for k, g := range gram {
				for a := 0; len(g) > 0 && a < t.below[k]; a++ {
					if x := v[k+a]; x != 0 {
						row := g[a*t.below[k]:][:a+1]
						for b := range row {
							row[b] += float64(x * v[k+b])
						}
					}
				}
			}
		}, false)
	}
	for k, g := range gram {
		if len(g) > 0 {
			size := t.below[k]
			for a := range size {
				for b := range a {
					g[b*size+a] = g[a*size+b]
				}
			}
			share := float64(t.m.Begin[t.end[k]]-t.m.Begin[k]) / float64(pairs)
			left += t.raise(int32(k), g, s.state.Sign, aim*share)
		}
	}
	t.invert()
	s.solveAll()
	sums.Visits += s.p.Rows.X.NNZ
	return left
}

// pair is a node and one of its ancestors, with the pair's index. Both are numbered within their
// subtree of level 1.
type pair struct{ n, a, at int }

// These constants bound the Newton steps in the signs of a part of the tree.
const (
	maxSignPasses = 60
	maxHalvings   = 40
	armijo        = 1e-4
)

// raise takes projected Newton steps in the signs below node k until they leave less than aim of
// the gap. It returns what they leave.
func (t *nodes) raise(k int32, gram, signs []float64, aim float64) (left float64) {
	size := t.below[k]
	var pairs []pair
	for n := k; n < t.end[k]; n++ {
		a := t.Parent[n]
		for at := t.m.Begin[n]; at < t.m.Begin[n+1]; at++ {
			pairs = append(pairs, pair{int(n - k), int(a - k), int(at)})
			a = t.Parent[a]
		}
	}
	w, half := make([]float64, size*size), make([]float64, size*size)
	// value is D, with M^-1 and, from it, M^-1 Gram.
	value := func() float64 {
		for _, p := range pairs {
			t.m.Entry[p.at] = float64(t.Alpha * signs[p.at])
		}
		t.invertBelow(int(k))
		trace := 0.0
		for j, x := range t.g[k] {
			trace += float64(x * gram[j])
		}
		return -trace / 2
	}
	d := value()
	gradient, step, before := make([]float64, len(pairs)), make([]float64, len(pairs)), make([]float64, len(pairs))
	free := make([]bool, len(pairs))
	for range maxSignPasses {
		multiply(half, t.g[k], gram, size)
		multiply(w, half, t.g[k], size)
		left = 0
		for j, p := range pairs {
			x := w[p.n*size+p.a]
			gradient[j] = float64(t.Alpha * x)
			left += float64(t.Alpha * (math.Abs(x) - float64(signs[p.at]*x)))
			before[j] = signs[p.at]
			free[j] = !(gradient[j] >= 0 && before[j] >= 1 || gradient[j] <= 0 && before[j] <= -1)
		}
		if left <= aim {
			return left
		}
		t.newton(k, pairs, w, gradient, step, free)
		accepted := false
		for length := 1.0; length > 1.0/(1<<maxHalvings); length /= 2 {
			predictedGain := 0.0
			for j, p := range pairs {
				signs[p.at] = max(-1, min(1, before[j]+float64(length*step[j])))
				predictedGain += float64(gradient[j] * (signs[p.at] - before[j]))
			}
			if now := value(); predictedGain > 0 && now >= d+float64(armijo*predictedGain) {
				accepted = now > d
				d = now
				break
			}
		}
		if !accepted {
			for j, p := range pairs {
				signs[p.at] = before[j]
			}
			value()
			return left
		}
	}
	return left
}

// newton sets step to the solution of H step = gradient over the free pairs, H being the Hessian
// of -D, by conjugate gradients with the diagonal as preconditioner. The entry of H of two pairs
// (i, a) and (j, b) is
//
//	Alpha^2 (W_ij G_ab + W_ib G_aj + W_aj G_ib + W_ab G_ij),   G = M^-1
func (t *nodes) newton(k int32, pairs []pair, w, gradient, step []float64, free []bool) {
	h := &hessian{pairs: pairs, w: w, g: t.g[k], size: t.below[k], square: t.Alpha * t.Alpha}
	n := len(pairs)
	h.scale, h.left, h.right = make([]float64, n), make([]float64, h.size*h.size), make([]float64, h.size*h.size)
	for _, v := range []*[]float64{&h.R, &h.Z, &h.P, &h.Q} {
		*v = make([]float64, n)
	}
	clear(step)
	h.X = step
	for j, e := range pairs {
		nn, aa, na := e.n*h.size+e.n, e.a*h.size+e.a, e.n*h.size+e.a
		d := float64(h.square * (float64(w[nn]*h.g[aa]) + float64(w[aa]*h.g[nn]) + float64(2*w[na]*h.g[na])))
		if free[j] && d > 0 {
			h.scale[j] = 1 / d
			h.R[j] = gradient[j]
		}
	}
	h.Size[0], h.Running = h.divide(), 1
	h.Enough[0] = 1e-20 * h.Size[0]
	h.Solve(h, min(2*n+10, 400))
}

// hessian is the system of a step of newton.
type hessian struct {
	conjugate.Gradients
	conjugate.Vectors
	pairs       []pair
	w, g        []float64
	size        int
	square      float64
	scale       []float64 // the inverse of the diagonal, 0 of pairs that are not free
	left, right []float64
}

// Multiply is conjugate.System's: with E = sum p (e_n e_a' + e_a e_n'), q = G E W at the pairs, and
// its transpose.
func (h *hessian) Multiply(of *conjugate.Gradients) {
	h.Turn(of, 1)
	clear(h.left)
	for j, e := range h.pairs {
		if p := h.P[j]; p != 0 {
			for c := range h.size {
				h.left[e.n*h.size+c] += float64(p * h.w[e.a*h.size+c])
				h.left[e.a*h.size+c] += float64(p * h.w[e.n*h.size+c])
			}
		}
	}
	multiply(h.right, h.g, h.left, h.size)
	for j, e := range h.pairs {
		if h.Q[j] = 0; h.scale[j] > 0 {
			h.Q[j] = float64(h.square * (h.right[e.n*h.size+e.a] + h.right[e.a*h.size+e.n]))
		}
	}
	h.Bend(of, 1)
}

// Advance implements conjugate.System.
func (h *hessian) Advance(of *conjugate.Gradients) {
	h.Vectors.Advance(of, 1)
	of.Next[0] = h.divide()
}

// divide sets z to r divided by the diagonal, and returns r.z.
func (h *hessian) divide() (product float64) {
	for j, r := range h.R {
		h.Z[j] = r * h.scale[j]
		product += float64(r * h.Z[j])
	}
	return product
}

// multiply sets out to the product a b of two square matrices.
func multiply(out, a, b []float64, n int) {
	clear(out)
	for i := range n {
		row := out[i*n:][:n]
		for k, x := range a[i*n:][:n] {
			if x != 0 {
				for j, y := range b[k*n:][:n] {
					row[j] += float64(x * y)
				}
			}
		}
	}
}
