package reducer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/linalg/contribution"
)

// TestStripsEqualColumns: ranges that are solved in strips get the bits that features one by one
// get. Edges that are listed, all of weight 1, keep a range out of strips.
func TestStripsEqualColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, nodes, width := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 14).Draw(t, "nodes"),
			rapid.IntRange(1, 40).Draw(t, "width")
		r := rand.New(rand.NewPCG(seed, 3))
		forest := randomForest(r, nodes)
		forest.Apart = uint32(r.IntN(width + 2))
		edged := *forest
		edged.Edge, edged.Below = make([]float64, nodes), make([]float64, nodes)
		for p, q := range forest.Parent {
			if edged.Edge[p] = 1; q >= 0 {
				edged.Below[q]++
			}
		}
		task := Task{Lo: 3, Hi: 3 + uint32(width), Certify: seed%2 == 0, Smooth: seed%3 > 0,
			Beta: float32(r.IntN(2)) * r.Float32(), Degrees: seed%5 > 0}
		x, prev := nearlyFull(r, forest, task.Lo, task.Hi).Grid(forest.Parent, task.Lo, task.Hi),
			nearlyFull(r, forest, task.Lo, task.Hi).Grid(forest.Parent, task.Lo, task.Hi)
		if at := int(forest.Apart) - 1 - int(task.Lo); at >= 0 && at < width {
			for p := range nodes {
				x.Row(p)[at], prev.Row(p)[at] = 0, 0
			}
		}
		in := nearlyAll(r, task, nodes)
		for _, task.Rule = range []Rule{Support, Full, None} {
			task.Forest = forest
			if !task.inStrips() {
				t.Fatalf("rule %d is not for strips", task.Rule)
			}
			task.Forest = &edged
			want, wanted := new(Scratch).RunDense(task, slices.Clone(in), x, prev)
			task.Forest = forest
			for _, plain := range []bool{false, true} {
				got, sums := (&Scratch{Plain: plain}).RunDense(task, slices.Clone(in), x, prev)
				sums.Entries, wanted.Entries = 0, 0
				if sums != wanted {
					t.Fatalf("rule %d, plain %t: sums %+v, by columns %+v", task.Rule, plain, sums, wanted)
				}
				if task.Rule != None && !equal(got.Value, want.Value) {
					t.Fatalf("rule %d, plain %t: vectors\n%v\nby columns\n%v", task.Rule, plain, got, want)
				}
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

// nearlyAll draws contributions of several blocks, with a smooth loss those of the gradient, too.
func nearlyAll(r *rand.Rand, t Task, nodes int) (in []contribution.Dense) {
	parents := nodes
	if t.Smooth {
		parents *= 2
	}
	for range 2 {
		for p := range parents {
			c := contribution.Dense{Parent: int32(p), Sum: make([]float32, t.Hi-t.Lo)}
			if p < nodes {
				c.Curvature = make([]uint8, t.Hi-t.Lo)
			}
			for k := range c.Sum {
				if r.IntN(8) == 0 {
					continue
				}
				if c.Sum[k] = float32(r.NormFloat64()); p < nodes {
					c.Curvature[k] = uint8(r.IntN(256))
				}
			}
			in = append(in, c)
		}
	}
	return in
}
