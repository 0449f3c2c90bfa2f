package reducer

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// randomVectors draws override lists over [lo, hi).
func randomVectors(r *rand.Rand, nodes int, lo, hi uint32) *Vectors {
	v := Zero(nodes)
	for p := range nodes {
		for f := lo; f < hi; f++ {
			if r.IntN(3) == 0 {
				v.Feature, v.Value = append(v.Feature, f), append(v.Value, float32(r.NormFloat64()))
			}
		}
		v.Begin[p+1] = int64(len(v.Feature))
	}
	return v
}

// whole is vectors of all nodes.
func whole(v *Vectors) *Internals {
	nodes := make([]int32, len(v.Begin)-1)
	for p := range nodes {
		nodes[p] = int32(p)
	}
	return &Internals{Nodes: nodes, Parts: cut(v)}
}

// cut makes two ranges' parts of one; features below 5 are in the first.
func cut(v *Vectors) []*Vectors {
	n := len(v.Begin) - 1
	parts := []*Vectors{Zero(n), Zero(n)}
	for p := range n {
		for e := v.Begin[p]; e < v.Begin[p+1]; e++ {
			part := parts[min(v.Feature[e]/5, 1)]
			part.Feature, part.Value = append(part.Feature, v.Feature[e]), append(part.Value, v.Value[e])
		}
		for _, part := range parts {
			part.Begin[p+1] = int64(len(part.Feature))
		}
	}
	return parts
}

// laidOut is the vector of node p: its ancestors' overrides from the root on.
func laidOut(f *Forest, v *Internals, p int32, width uint32) []float32 {
	x := make([]float32, width)
	if q := f.Parent[p]; q >= 0 {
		x = laidOut(f, v, q, width)
	}
	at, ok := v.Place(p)
	for _, part := range v.Parts {
		if !ok {
			break
		}
		features, values := part.list(at)
		for k, i := range features {
			x[i] = values[k]
		}
	}
	return x
}

// TestWalk walks anywhere in any order, over several pairs of vectors, and always stands
// at the vector that naive expansion gives.
func TestWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		n, width := 1+r.IntN(20), uint32(1+r.IntN(12))
		f := randomForest(r, n)
		var pairs [3][2]*Internals
		for k := range pairs {
			pairs[k] = [2]*Internals{whole(randomVectors(r, n, 0, width)), whole(randomVectors(r, n, 0, width))}
		}
		w := &Walk{}
		for range 60 {
			x := pairs[r.IntN(len(pairs))]
			beta := float32(r.IntN(3)) / 3
			w.Reset(x[0], x[1], beta, width)
			p := int32(r.IntN(n))
			w.Move(f, p)
			got := make([]float32, width+1)
			got[width] = 99
			w.CopyTo(got)
			now, before := laidOut(f, x[0], p, width), laidOut(f, x[1], p, width)
			for i := range now {
				if want := Extrapolate(now[i], before[i], beta); got[i] != want {
					t.Fatalf("node %d feature %d: %g, want %g", p, i, got[i], want)
				}
			}
			if got[width] != 0 {
				t.Fatalf("beyond the vector: %g", got[width])
			}
		}
	})
}

// TestPlace finds the nodes of a group that leaves some internals out.
func TestPlace(t *testing.T) {
	v := &Internals{Nodes: []int32{0, 2, 3, 7}}
	for p, want := range map[int32]int{0: 0, 2: 1, 3: 2, 7: 3, 1: -1, 5: -1, 9: -1} {
		if at, ok := v.Place(p); ok != (want >= 0) || ok && at != want {
			t.Errorf("node %d: %d, %t", p, at, ok)
		}
	}
}
