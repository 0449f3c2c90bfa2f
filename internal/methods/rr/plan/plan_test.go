package plan

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/internal/data/taxonomy"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"

	"pgregory.net/rapid"
)

// drawSpec generates a job on a random forest with labels on any node.
func drawSpec(t *rapid.T) *taxonv1.JobSpec {
	nodes := rapid.IntRange(2, 300).Draw(t, "nodes")
	st := &taxonv1.Structure{}
	d := &taxonv1.Data{
		Instances: rapid.Uint64Range(1, 1e6).Draw(t, "instances"),
		Features:  rapid.Uint64Range(0, 50_000).Draw(t, "features"),
		Nonzeros:  rapid.Uint64Range(0, 5e6).Draw(t, "nonzeros"),
	}
	for n := range nodes {
		name := fmt.Sprintf("n%d", n)
		st.Names = append(st.Names, name)
		if n > 0 && rapid.IntRange(0, 19).Draw(t, "root") > 0 {
			st.Parents = append(st.Parents, uint32(rapid.IntRange(0, n-1).Draw(t, "parent")))
			st.Children = append(st.Children, uint32(n))
		}
		if rapid.Bool().Draw(t, "label") {
			d.Labels = append(d.Labels, name)
			d.LabelInstances = append(d.LabelInstances, uint32(rapid.IntRange(0, 3).Draw(t, "positives")))
		}
	}
	d.Labels, d.LabelInstances = append(d.Labels, "always"), append(d.LabelInstances, 1)
	sum := uint32(0)
	for range rapid.IntRange(0, 64).Draw(t, "buckets") {
		sum += rapid.Uint32Range(0, 100_000).Draw(t, "count")
		d.FeatureCountsLog = append(d.FeatureCountsLog, sum)
	}
	spec := &taxonv1.JobSpec{Data: d, Options: methodtest.Options("rr-svm",
		"bias", rapid.IntRange(0, 1).Draw(t, "bias"),
		"schedule", rapid.SampledFrom([]string{"twoblock", "parity", "colour", "jacobi"}).Draw(t, "schedule"),
		"prune", rapid.SampledFrom([]string{"empty", "none"}).Draw(t, "prune"))}
	if rapid.IntRange(0, 9).Draw(t, "flat") > 0 {
		spec.Structure = st
	}
	return spec
}

func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		tree, _, err := jobspec.Tree(spec, false)
		if err != nil {
			t.Skip(err)
		}
		p := newPlan(tree, spec)
		checkBlocks(t, tree, p, blockCosts(tree, spec.GetData(), p))
		checkSets(t, tree, spec, p)
		checkGroups(t, p)
		checkRanges(t, tree, spec, p)
		if again := newPlan(tree, spec); !reflect.DeepEqual(p, again) {
			t.Fatal("a second plan of the same job differs")
		}
	})
}

// checkBlocks checks that every terminal lies in exactly one block, and that no block is empty or
// too wide.
func checkBlocks(t *rapid.T, tree *taxonomy.Tree, p *Plan, cost []float64) {
	seen := make([]int, tree.Len())
	for _, n := range p.BlockTerminals {
		seen[n]++
	}
	for n, leaf := range tree.Leaf {
		if want := map[bool]int{true: 1}[leaf]; seen[n] != want {
			t.Fatalf("node %d (terminal: %v) lies in %d blocks", n, leaf, seen[n])
		}
	}
	blocks := len(p.BlockBegin) - 1
	if p.BlockBegin[0] != 0 || int(p.BlockBegin[blocks]) != len(p.BlockTerminals) || len(p.BlockSet) != blocks ||
		len(cost) != blocks {
		t.Fatalf("%d blocks, %d sets, %d costs, borders %v", blocks, len(p.BlockSet), len(cost), p.BlockBegin)
	}
	for b := range blocks {
		if n := int(p.BlockBegin[b+1]) - int(p.BlockBegin[b]); n < 1 || n > blockTerminals {
			t.Fatalf("block %d holds %d terminals", b, n)
		}
		if !(cost[b] >= 0) {
			t.Fatalf("block %d costs %g", b, cost[b])
		}
	}
}

// checkSets checks that each block lies in one set, that the blocks are in the order of the sets,
// that siblings are adjacent, and that no edge joins two nodes of a set.
func checkSets(t *rapid.T, tree *taxonomy.Tree, spec *taxonv1.JobSpec, p *Plan) {
	o := settings(spec)
	setOf, sets := NodeSets(tree, &o)
	if sets != p.Sets || !slices.IsSorted(p.BlockSet) {
		t.Fatalf("%d sets, plan has %d; blocks' sets %v", sets, p.Sets, p.BlockSet)
	}
	for b, set := range p.BlockSet {
		for _, n := range p.BlockTerminals[p.BlockBegin[b]:p.BlockBegin[b+1]] {
			if setOf[n] != set {
				t.Fatalf("terminal %d of set %d lies in a block of set %d", n, setOf[n], set)
			}
		}
	}
	type family struct {
		parent int32
		set    uint32
	}
	last := map[family]int{}
	for i, n := range p.BlockTerminals {
		f := family{tree.Parent[n], setOf[n]}
		if at, ok := last[f]; ok && at != i-1 {
			t.Fatalf("siblings at places %d and %d", at, i)
		}
		last[f] = i
	}
	if o.Schedule != "parity" && o.Schedule != "colour" {
		return
	}
	for n, parent := range tree.Parent {
		if parent >= 0 && setOf[n] == setOf[parent] {
			t.Fatalf("edge %d-%d lies within set %d", parent, n, setOf[n])
		}
	}
}

func checkGroups(t *rapid.T, p *Plan) {
	g := p.GroupBegin
	if g[0] != 0 || int(g[len(g)-1]) != len(p.BlockSet) {
		t.Fatalf("groups %v do not cover %d blocks", g, len(p.BlockSet))
	}
	for i := 1; i < len(g); i++ {
		if g[i] <= g[i-1] {
			t.Fatalf("groups %v", g)
		}
	}
}

// checkRanges checks that the ranges cover every feature and the bias, and that none is empty.
func checkRanges(t *rapid.T, tree *taxonomy.Tree, spec *taxonv1.JobSpec, p *Plan) {
	end := uint32(spec.Data.Features)
	if settings(spec).Bias > 0 {
		end++
	}
	r := p.RangeBegin
	if r[0] != 0 || r[len(r)-1] != end || len(r)-1 > maxRanges {
		t.Fatalf("ranges %v do not cover %d features", r, end)
	}
	for i := 1; i < len(r); i++ {
		if r[i] <= r[i-1] && end > 0 {
			t.Fatalf("ranges %v", r)
		}
	}
	if len(tree.Internals()) == 0 && len(r) != 2 {
		t.Fatalf("flat problem with ranges %v", r)
	}
}

// TestRangesFollowTheWork checks that the number of ranges grows with the work, and that the work
// is divided evenly.
func TestRangesFollowTheWork(t *testing.T) {
	spec := methodtest.WordNetLike(3383, 1768)
	tree, _, err := jobspec.Tree(spec, false)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlan(tree, spec)
	if n := len(p.RangeBegin) - 1; n < 8 || n > 16 {
		t.Errorf("wordnet-freq: %d ranges, want 8 to 16", n)
	}
	var work []float64
	for r := 1; r < len(p.RangeBegin); r++ {
		sum := 0.0
		for _, b := range workBuckets(spec.Data, 3383) {
			lo, hi := max(b.begin, p.RangeBegin[r-1]), min(b.end, p.RangeBegin[r])
			sum += b.work * float64(max(int(hi)-int(lo), 0))
		}
		work = append(work, sum)
	}
	if slices.Max(work) > 1.1*slices.Min(work) {
		t.Errorf("work of the ranges %.0f", work)
	}
	small := methodtest.WordNetLike(20, 8)
	small.Data.Features, small.Data.Nonzeros, small.Data.FeatureCountsLog = 80, 80_000, []uint32{80_000}
	if tree, _, err = jobspec.Tree(small, false); err != nil {
		t.Fatal(err)
	}
	if r := newPlan(tree, small).RangeBegin; len(r) != 2 {
		t.Errorf("a small problem has ranges %v", r)
	}
	big := methodtest.WordNetLike(3383, 1768)
	big.Data.Nonzeros, big.Data.FeatureCountsLog, big.Data.Features = 1e8, nil, 1_600_000
	if tree, _, err = jobspec.Tree(big, false); err != nil {
		t.Fatal(err)
	}
	if n := len(newPlan(tree, big).RangeBegin) - 1; n != maxRanges {
		t.Errorf("a big problem has %d ranges, want %d", n, maxRanges)
	}
}
