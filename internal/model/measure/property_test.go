package measure

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/data/taxonomy"
)

// TestLossesByDefinition computes l_H, l_H~, the symmetric difference and the tree loss
// as the papers write them, over indicator vectors y and u of all microlabels.
func TestLossesByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "nodes")
		most := rapid.IntRange(1, 3).Draw(t, "parents")
		s := &taxonomy.Structure{}
		parents := make([][]int, n)
		for v := range n {
			s.Names = append(s.Names, fmt.Sprint("n", v))
			for range rapid.IntRange(0, most).Draw(t, "count") {
				if v == 0 {
					continue
				}
				p := rapid.IntRange(0, v-1).Draw(t, "parent")
				if slices.Contains(parents[v], p) {
					continue
				}
				parents[v] = append(parents[v], p)
				s.Parents, s.Children = append(s.Parents, uint32(p)), append(s.Children, uint32(v))
			}
		}
		c, err := taxonomy.NewClosure(s)
		if err != nil {
			t.Fatal(err)
		}
		labels := rapid.SliceOfN(rapid.IntRange(0, n), 0, 4) // n: outside
		if rapid.Bool().Draw(t, "single") {
			labels = rapid.SliceOfN(rapid.IntRange(0, n-1), 1, 1)
		}
		truth, predicted := labels.Draw(t, "truth"), labels.Draw(t, "predicted")

		a, err := NewAccumulator(Options{Structure: c})
		if err != nil {
			t.Fatal(err)
		}
		name := func(ids []int) (names []string) {
			for _, v := range ids {
				names = append(names, fmt.Sprint("n", v))
			}
			return names
		}
		a.AddNames(name(truth), name(predicted), nil)
		got := a.Result()

		y, u := indicator(parents, truth), indicator(parents, predicted)
		sibl, subtree := weights(parents)
		var sym, unif, hSibl, hSub, tilde float64
		for j := range n {
			if y[j] == u[j] {
				continue
			}
			sym++
			above := indicator(parents, parents[j])
			all, direct := true, true
			for h := range n {
				if above[h] && y[h] != u[h] {
					all = false
				}
				if slices.Contains(parents[j], h) && y[h] != u[h] {
					direct = false
				}
			}
			if all {
				unif, hSibl, hSub = unif+1, hSibl+sibl[j], hSub+subtree[j]
			}
			if direct {
				tilde++
			}
		}
		for _, f := range []figure{
			{"sym_diff", got.SymDiff, sym}, {"l_H_unif", got.HUnif, unif}, {"l_H_sibl", got.HSibl, hSibl},
			{"l_H_subtree", got.HSubtree, hSub}, {"l_Htilde_unif", got.HtildeUnif, tilde},
		} {
			if !same(f.got, f.want) {
				t.Fatalf("%s is %g, want %g", f.name, f.got, f.want)
			}
		}
		if len(truth) == 1 && len(predicted) == 1 && truth[0] < n && predicted[0] < n {
			if want := float64(c.Distance(int32(truth[0]), int32(predicted[0]))) / 2; got.TreeLoss != want {
				t.Fatalf("tree loss %g, want %g", got.TreeLoss, want)
			}
		}
	})
}

// indicator marks the nodes given and all above them; parents come before children.
func indicator(parents [][]int, nodes []int) []bool {
	in := make([]bool, len(parents))
	for _, v := range nodes {
		if v < len(in) {
			in[v] = true
		}
	}
	for v := len(in) - 1; v >= 0; v-- {
		for _, p := range parents[v] {
			in[p] = in[p] || in[v]
		}
	}
	return in
}

// weights computes c_j in the first-parent tree.
func weights(parents [][]int) (sibl, subtree []float64) {
	n := len(parents)
	first := func(v int) int {
		if len(parents[v]) == 0 {
			return -1
		}
		return parents[v][0]
	}
	for v := range n {
		siblings, below := 0, 0
		for w := range n {
			if first(w) == first(v) {
				siblings++
			}
			for x := w; x >= 0; x = first(x) {
				if x == v {
					below++
				}
			}
		}
		up := 1.0
		if p := first(v); p >= 0 {
			up = sibl[p]
		}
		sibl = append(sibl, up/float64(siblings))
		subtree = append(subtree, float64(below)/float64(n))
	}
	return sibl, subtree
}

// TestPerfect: right predictions score 1 everywhere and lose nothing.
func TestPerfect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "x"}), 1, 4), 1, 5).Draw(t, "rows")
		c, err := taxonomy.NewClosure(&taxonomy.Structure{Names: []string{"r", "a", "b", "c"}, Parents: []uint32{0, 0, 2},
			Children: []uint32{1, 2, 3}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := NewAccumulator(Options{Structure: c, Ranked: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			a.AddNames(r, r, r)
		}
		r := a.Result()
		if r.MicroF1 != 1 || r.MacroF1 != 1 || r.ZeroOne != 0 || r.P1 != 1 || !same(r.NDCG5, 1) || r.TreeLoss != 0 ||
			r.HUnif != 0 || r.SymDiff != 0 {
			t.Fatalf("%+v %+v %+v", r, r.Ranking, r.Hierarchy)
		}
	})
}

// TestMarksWrapAround: marks of four thousand million rounds ago must not count.
func TestMarksWrapAround(t *testing.T) {
	var m marks
	m.reset(2)
	m.put(1)
	m.round = ^uint32(0)
	m.reset(3)
	if m.has(1) || !m.put(2) || m.put(2) {
		t.Error("an old mark counts")
	}
}
