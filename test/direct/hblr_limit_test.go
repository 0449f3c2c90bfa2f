package direct

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	"taxon/internal/jobspec"
	"taxon/internal/linalg/sparse"
	hblr "taxon/internal/methods/hblr/solver"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
)

// TestHBLRLimits checks that with every precision held at 1 the means are those of rr-lr at C = 1.
// Without a structure, they are those on the tree with all classes below one root.
func TestHBLRLimits(t *testing.T) {
	for name, pairs := range map[string][]int{"tree": {0, 1, 0, 2, 1, 3, 1, 4, 2, 5}, "flat": nil} {
		t.Run(name, func(t *testing.T) {
			j := jobs.Awkward(3, 60, 6)
			j.Set.PosRows = slices.Clone(j.Set.PosRows)
			spec := j.Spec(hblrOptions("hblr-m1", func(*taxonv1.Options) {}))
			below := &jobs.Job{Set: j.Set, Structure: edges(100, 0, 100, 1, 100, 2, 100, 3, 100, 4, 100, 5)}
			if pairs != nil {
				below.Structure = edges(pairs...)
				spec = below.Spec(spec.GetOptions())
			}
			tree, _, err := jobspec.Tree(spec, true)
			if err != nil {
				t.Fatal(err)
			}
			rr := below.Spec(methodtest.Options("rr-lr", "loss", "logistic", "schedule", "twoblock", "c", 1, "bias", 1,
				"gap", 1e-11, "max_sweeps", 4000, "prune", "empty", "stiffness", "support", "momentum", "fista"))
			_, st, nodes := trained(t, below, rr, 2)
			same, _, err := jobspec.Tree(rr, false)
			if err != nil || !slices.Equal(tree.Parent, same.Parent) {
				t.Fatal(err, tree.Parent, same.Parent)
			}
			rows := hblr.Rows{X: j.Set.Matrix, Bias: 1}
			mean := fixedPrecisions(t, hblr.NewTree(tree.Parent, tree.Leaf), rows, func(n int) []uint32 {
				l := tree.Label[n]
				return j.Set.PosRows[j.Set.PosBegin[l]:j.Set.PosBegin[l+1]]
			})
			w := make([][]float64, tree.Len())
			for n := range w {
				w[n] = make([]float64, rows.Columns())
				if p := tree.Parent[n]; p >= 0 {
					copy(w[n], w[p])
				}
				for k, f := range nodes.Columns[n] {
					w[n][f] = float64(nodes.Values[n][k])
				}
				for f := range w[n] {
					if math.Abs(w[n][f]-mean[n][f]) > 1e-5 {
						t.Errorf("node %d, feature %d: %g, rr-lr's %g (stopped by %s, %v)", n, f, mean[n][f], w[n][f], st.GetStoppedBy(),
							st.GetCertificate())
					}
				}
			}
		})
	}
}

// TestHBLRPriorRefuses checks that priors which cannot be derived from the data give one clear
// line: before work begins or, if only the values show it, as the job fails.
func TestHBLRPriorRefuses(t *testing.T) {
	full := hblrOptions("hblr-m1", func(o *taxonv1.Options) { o.Set("prior_inverse", "full") })
	j := jobs.Awkward(3, 60, 6)
	for _, c := range []struct{ features, instances uint64 }{{3000, 4000}, {60, 60}} {
		spec := j.Spec(full)
		spec.Data.Features, spec.Data.Instances = c.features, c.instances
		if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(),
			"fewer than instances; leave it out") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d features and %d instances: %v", c.features, c.instances, err)
		}
	}
	index, value := make([][]uint32, 40), make([][]float32, 40)
	for i := range index { // the third feature is the sum of the others
		a, b := float32(i%5), float32(i%3)
		index[i], value[i] = []uint32{0, 1, 2}, []float32{a, b, a + b}
	}
	few := jobs.Awkward(3, 40, 4)
	few.Structure, few.Set.Matrix = nil, sparse.FromRows(3, index, value)
	if why := failed(t, few, few.Spec(full)); !strings.Contains(why, "a feature follows from others") {
		t.Errorf("a feature that follows from others: %q", why)
	}
}

// TestHBLRLimitBLR checks that with every precision held at 1 and the root's mean at 0, the leaves
// below it are those of blr at C = 1. With the root's own prior N(0, I) they are not.
func TestHBLRLimitBLR(t *testing.T) {
	j := jobs.Awkward(3, 60, 6)
	j.Structure = nil
	blr := j.Spec(methodtest.Options("blr", "loss", "logistic", "schedule", "twoblock", "c", 1, "bias", 1,
		"gap", 1e-11, "max_sweeps", 4000, "prune", "empty"))
	_, _, nodes := trained(t, j, blr, 2)
	flat, _, err := jobspec.Tree(blr, false)
	if err != nil {
		t.Fatal(err)
	}
	rows := hblr.Rows{X: j.Set.Matrix, Bias: 1}
	positive := func(label int32) []uint32 {
		return j.Set.PosRows[j.Set.PosBegin[label]:j.Set.PosBegin[label+1]]
	}
	parent, leaf := []int32{-1}, []bool{false} // the same classes, below a root
	for range flat.Len() {
		parent, leaf = append(parent, 0), append(leaf, true)
	}
	free := fixedPrecisions(t, hblr.NewTree(parent, leaf), rows, func(n int) []uint32 { return positive(flat.Label[n-1]) })
	apart := 0.0
	for n := range flat.Len() {
		w := make([]float64, rows.Columns())
		var s hblr.Scratch
		s.Open(rows, &hblr.Block{Positive: [][]uint32{positive(flat.Label[n])}, Above: [][]float64{nil},
			Precision: []hblr.Precision{hblr.Unit}})
		if _, err := s.Solve(context.Background(), rows, w, 1e-12); err != nil {
			t.Fatal(err)
		}
		want := make([]float64, len(w))
		for k, f := range nodes.Columns[n] {
			want[f] = float64(nodes.Values[n][k])
		}
		for f, x := range w {
			if math.Abs(x-want[f]) > 1e-5 {
				t.Errorf("class %d, feature %d: %g, blr's %g", n, f, x, want[f])
			}
			apart = max(apart, math.Abs(free[n+1][f]-want[f]))
		}
	}
	if apart < 1e-2 {
		t.Errorf("below a free root the means are blr's, too: %g apart", apart)
	}
}

// fixedPrecisions runs only the updates of the means, with all precisions 1.
func fixedPrecisions(t *testing.T, tree *hblr.Tree, rows hblr.Rows, positive func(n int) []uint32) [][]float64 {
	t.Helper()
	columns, mean := rows.Columns(), make([][]float64, len(tree.Parent))
	alpha := make(hblr.Alpha, len(mean))
	for n := range mean {
		mean[n], alpha[n] = make([]float64, columns), 1
	}
	for range 3000 {
		contribution := hblr.NewContribution(hblr.M1, len(tree.Nodes)*columns)
		m, moved := make([]float64, len(tree.Nodes)*columns), 0.0
		for i, n := range tree.Nodes {
			copy(m[i*columns:], mean[n])
		}
		for n, leaf := range tree.Leaf {
			if !leaf {
				continue
			}
			up := int(tree.Parent[n])
			b := &hblr.Block{Positive: [][]uint32{positive(n)}, Above: [][]float64{mean[up]},
				Precision: []hblr.Precision{hblr.Unit}}
			var s hblr.Scratch
			s.Open(rows, b)
			if _, err := s.Solve(context.Background(), rows, mean[n], 1e-12); err != nil {
				t.Fatal(err)
			}
			bound := make([]float64, columns)
			s.Curvature(rows, bound)
			for f, h := range bound {
				contribution.Add(int(tree.Internal[up])*columns+f, 1, mean[n][f]-mean[up][f], h, 0)
			}
		}
		g := tree.Solve(hblr.M1, alpha, m, contribution, 1, columns)
		for i, n := range tree.Nodes {
			for f := range columns {
				moved = max(moved, math.Abs(g[i*columns+f]-m[i*columns+f]))
			}
			copy(mean[n], g[i*columns:])
		}
		if moved < 1e-11 {
			return mean
		}
	}
	t.Fatal("the means do not settle")
	return nil
}
