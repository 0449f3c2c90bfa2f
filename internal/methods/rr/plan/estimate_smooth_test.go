package plan

import (
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/internal/jobspec"
)

// TestSmoothPlan checks the counts that a plan for dense vectors derives: a sender for each block
// and parent of its terminals, and the widest range. Ranges are narrower than sparse ones.
func TestSmoothPlan(t *testing.T) {
	spec := methodtest.WordNetLike(2000, 500) // four terminals under each internal
	sparse, err := estimateOf(spec)
	if err != nil {
		t.Fatal(err)
	}
	tree, _, err := jobspec.Tree(spec, false)
	if err != nil {
		t.Fatal(err)
	}
	sparseRanges := uint64(len(newPlan(tree, spec).RangeBegin) - 1)
	spec.Options.Set("loss", "logistic")
	plan := newPlan(tree, spec)
	s := smoothPlanOf(tree, spec, plan)
	parents := map[[2]int32]bool{}
	for b := range len(plan.BlockBegin) - 1 {
		for _, n := range plan.BlockTerminals[plan.BlockBegin[b]:plan.BlockBegin[b+1]] {
			parents[[2]int32{int32(b), tree.Parent[n]}] = true
		}
	}
	if s.senders != uint64(len(parents)) || s.most < 4 || s.most > blockTerminals || s.terminals != 2000 ||
		s.internals != uint64(len(tree.Internals())) {
		t.Errorf("%+v, blocks have %d parents", s, len(parents))
	}
	e := estimate(tree, spec, plan)
	ranges := uint64(len(plan.RangeBegin) - 1)
	if ranges <= sparseRanges || s.width*ranges < spec.Data.Features || s.width > 4*spec.Data.Features/ranges {
		t.Errorf("%d ranges, the widest of %d features; sparse: %d", ranges, s.width, sparseRanges)
	}
	if e.StoreLocal < e.StoreSweep || e.StoreJob < e.StoreLocal || e.WorkerSlot <= sparse.WorkerSlot {
		t.Errorf("%+v", e)
	}
	for b := range plan.RangeBegin[1:] {
		if plan.RangeBegin[b] >= plan.RangeBegin[b+1] {
			t.Fatalf("range %d is empty", b)
		}
	}
	spec.Structure = nil
	flat, err := estimateOf(spec)
	if err != nil || flat.StoreLocal >= e.StoreLocal || flat.WorkerShared >= e.WorkerShared ||
		flat.StoreSweep < 4*2000*spec.Data.Features {
		t.Errorf("flat: %+v, %v", flat, err)
	}
}
