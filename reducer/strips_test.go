package reducer

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/coupling"
)

// TestStripsEqualColumns: ranges that are solved in strips get the bits that features one by one
// get. Edges that are listed, all of weight 1, keep a range out of strips.
func TestStripsEqualColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, nodes, width := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 14).Draw(t, "nodes"), rapid.IntRange(1, 40).Draw(t, "width")
		r := rand.New(rand.NewPCG(seed, 3))
		forest := randomForest(r, nodes)
		forest.Apart = uint32(r.IntN(width + 2))
		listed := *forest
		listed.Edge, listed.Below = make([]float64, nodes), make([]float64, nodes)
		for p, q := range forest.Parent {
			if listed.Edge[p] = 1; q >= 0 {
				listed.Below[q]++
			}
		}
		task := Task{Lo: 3, Hi: 3 + uint32(width), Certify: seed%2 == 0, Smooth: seed%3 > 0, Beta: float32(r.IntN(2)) * r.Float32(), Degrees: seed%5 > 0}
		x, prev := nearlyFull(r, forest, task.Lo, task.Hi), nearlyFull(r, forest, task.Lo, task.Hi)
		in := nearlyAll(r, task, nodes)
		for _, task.Rule = range []Rule{Support, Full, None, Emit} {
			task.Forest = forest
			if !task.inStrips(in, x) {
				t.Skip("too few values")
			}
			got, sums := task.Run(part(in, task.Lo, task.Hi), x, prev)
			task.Forest = &listed
			want, wanted := task.Run(part(in, task.Lo, task.Hi), x, prev)
			sums.Entries, wanted.Entries = 0, 0
			if sums != wanted {
				t.Fatalf("rule %d: sums %+v, by columns %+v", task.Rule, sums, wanted)
			}
			if task.Rule != None && (!equal(got.Begin, want.Begin) || !equal(got.Feature, want.Feature) || !equal(got.Value, want.Value)) {
				t.Fatalf("rule %d: vectors\n%v\nby columns\n%v", task.Rule, got, want)
			}
		}
	})
}

// nearlyFull draws vectors that differ from the parent's at most features.
func nearlyFull(r *rand.Rand, f *Forest, lo, hi uint32) *Vectors {
	x := make([][]float32, len(f.Parent))
	for p, q := range f.Parent {
		x[p] = make([]float32, hi)
		for k := lo; k < hi; k++ {
			if x[p][k] = float32(r.NormFloat64()); r.IntN(8) == 0 {
				if x[p][k] = 0; q >= 0 {
					x[p][k] = x[q][k]
				}
			}
		}
	}
	return overrides(f, x, int(lo), int(hi))
}

// nearlyAll draws contributions of several blocks to most features, with a smooth loss those of
// the gradient, too.
func nearlyAll(r *rand.Rand, t Task, nodes int) (in []coupling.Contribution) {
	parents := nodes
	if t.Smooth {
		parents *= 2
	}
	for range 2 {
		for p := range parents {
			c := coupling.Contribution{Parent: int32(p)}
			for k := t.Lo; k < t.Hi; k++ {
				if r.IntN(8) > 0 {
					c.Feature, c.Sum, c.Curvature = append(c.Feature, k), append(c.Sum, r.NormFloat64()), append(c.Curvature, uint8(r.IntN(256)))
				}
			}
			in = append(in, c)
		}
	}
	return in
}
