package program

import (
	"slices"
	"testing"

	"taxon/coordinator/machine"
	"taxon/coordinator/method"
	"taxon/internal/jobspec"
	params "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
	"taxon/test/jobs"
	"taxon/worker/program"
)

// opened returns a small job as a worker opens it. change may modify its plan first.
func opened(t *testing.T, small *jobs.Job, schedule string, change func(*params.Plan)) *job {
	t.Helper()
	o := jobs.Defaults()
	o.Set("schedule", schedule)
	spec := small.Spec(o)
	plan, err := machine.NewPlan(spec)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		detail, err := params.Detail(plan.Detail)
		if err != nil {
			t.Fatal(err)
		}
		change(detail)
		plan.Detail = method.Encode(detail)
	}
	tree, _, err := jobspec.Tree(spec, false)
	if err != nil {
		t.Fatal(err)
	}
	j, err := open(&program.Job{ID: "j", Spec: spec, Plan: plan, Tree: tree, Set: small.Set})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestJobNumbers checks that internals are numbered in preorder without gaps, and that their
// parents, children, terminals and sets are those of the tree.
func TestJobNumbers(t *testing.T) {
	small := jobs.Small(3, 200, 60)
	j := opened(t, small, "parity", nil)
	sets, _ := params.NodeSets(j.tree, &params.Settings{Schedule: "parity"})
	internals := j.tree.Internals()
	if len(internals) != len(j.forest.Parent) || len(internals) < 10 {
		t.Fatalf("%d internals, %d numbered", len(internals), len(j.forest.Parent))
	}
	terminals, children := make([]int32, len(internals)), make([]int32, len(internals))
	for n := range j.tree.Len() {
		if p := j.tree.Parent[n]; p >= 0 && j.tree.Leaf[n] {
			terminals[j.internal[p]]++
		} else if p >= 0 {
			children[j.internal[p]]++
		}
		if j.tree.Leaf[n] != (j.internal[n] < 0) {
			t.Errorf("node %d: leaf %v, internal number %d", n, j.tree.Leaf[n], j.internal[n])
		}
	}
	for p, n := range internals {
		if j.internal[n] != int32(p) {
			t.Errorf("internal %d is numbered %d", p, j.internal[n])
		}
		want := int32(-1)
		if q := j.tree.Parent[n]; q >= 0 {
			want = j.internal[q]
		}
		if j.forest.Parent[p] != want || j.forest.Parent[p] >= int32(p) {
			t.Errorf("internal %d: parent %d, want %d", p, j.forest.Parent[p], want)
		}
		if j.forest.Set[p] != int32(sets[n]) {
			t.Errorf("internal %d: set %d, want %d", p, j.forest.Set[p], sets[n])
		}
	}
	if !slices.Equal(terminals, j.forest.Terminals) || !slices.Equal(children, j.forest.Children) {
		t.Errorf("terminals %v, want %v; children %v, want %v", j.forest.Terminals, terminals, j.forest.Children, children)
	}
}

// TestJobGroups checks that each group contains exactly the parents of its blocks' terminals and
// all their ancestors.
func TestJobGroups(t *testing.T) {
	small := jobs.Small(4, 200, 90)
	blocks := uint32(0)
	j := opened(t, small, "twoblock", func(p *params.Plan) {
		blocks = uint32(len(p.BlockBegin) - 1)
		p.GroupBegin = []uint32{0, 1, blocks} // uneven, and more than in the plan
	})
	if len(j.groups) != 2 || j.groupOf[0] != 0 || j.groupOf[blocks-1] != 1 {
		t.Fatalf("%d groups, blocks' groups %v", len(j.groups), j.groupOf)
	}
	for g, nodes := range j.groups {
		want := map[int32]bool{}
		for b := range blocks {
			if j.groupOf[b] == g {
				for _, n := range j.terminals(b) {
					for p := j.parent(n); p >= 0; p = j.forest.Parent[p] {
						want[p] = true
					}
				}
			}
		}
		if len(want) != len(nodes) || !slices.IsSorted(nodes) {
			t.Errorf("group %d: %v, want %d nodes, ascending", g, nodes, len(want))
		}
		for _, p := range nodes {
			if !want[p] {
				t.Errorf("group %d holds %d for nothing", g, p)
			}
		}
	}
}

// TestBlocksForgetWhatIsStale checks that a worker drops its output for a block when a later one of
// another worker is requested, but not when an earlier one is, which a repeated step reads.
func TestBlocksForgetWhatIsStale(t *testing.T) {
	var kept blocks
	kept.retain(7, solvedBlock{at: taxonv1.Place{Step: 5, Task: 1, Attempt: 1}})
	for _, c := range []struct {
		step uint32
		ok   bool
		left int
	}{{4, false, 1}, {5, true, 1}, {6, false, 0}, {5, false, 0}} {
		if _, ok := kept.get(7, taxonv1.Place{Step: c.step, Task: 1, Attempt: 1}); ok != c.ok || len(kept.of) != c.left {
			t.Errorf("asked for step %d: found %v, %d blocks left, want %v and %d", c.step, ok, len(kept.of), c.ok, c.left)
		}
	}
}

// TestGroupOfUnneeded checks that the internals that no block needs are added in linear time: a
// graph may have a million of them.
func TestGroupOfUnneeded(t *testing.T) {
	const internals = 2_000_000
	j := &job{plan: &params.Plan{BlockTerminals: []uint32{0}, BlockBegin: []uint32{0, 1}, GroupBegin: []uint32{0, 1}},
		forest: &reducer.Forest{Parent: make([]int32, internals)},
		graph: &graph{leafGroupOf: []int32{0},
			Graph: &reducer.Graph{LeafGroups: []reducer.LeafGroup{{Nodes: []int32{5, internals - 1}}}}}}
	j.group()
	if len(j.groups) != 1 || len(j.groups[0]) != internals {
		t.Fatalf("%d groups", len(j.groups))
	}
	for i, n := range j.groups[0] {
		if int(n) != i {
			t.Fatalf("place %d holds %d", i, n)
		}
	}
}
