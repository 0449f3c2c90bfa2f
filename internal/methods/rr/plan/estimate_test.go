package plan

import (
	"testing"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
)

// estimateOf plans a job and estimates its needs.
func estimateOf(spec *taxonv1.JobSpec) (method.Estimate, error) {
	tree, _, err := jobspec.Tree(spec, false)
	if err != nil {
		return method.Estimate{}, err
	}
	return estimate(tree, spec, newPlan(tree, spec)), nil
}

// TestPlanMemory checks that the estimate grows with its inputs, and describes the parts of a plan.
func TestPlanMemory(t *testing.T) {
	small, err := estimateOf(methodtest.WordNetLike(200, 50))
	if err != nil {
		t.Fatal(err)
	}
	large, err := estimateOf(methodtest.WordNetLike(2000, 500))
	if err != nil {
		t.Fatal(err)
	}
	if small.WorkerSlot == 0 {
		t.Errorf("%+v", small)
	}
	if large.StoreSweep <= small.StoreSweep || large.Coordinator <= small.Coordinator ||
		large.SecondsSweep[Blocks] <= small.SecondsSweep[Blocks] ||
		large.SecondsSweep[Ranges] <= small.SecondsSweep[Ranges] ||
		large.WorkerShared <= small.WorkerShared || large.StoreJob < large.StoreSweep {
		t.Errorf("ten times the classes: %+v, then %+v", small, large)
	}
	squared := methodtest.WordNetLike(200, 50)
	squared.Options.Set("loss", "squared-hinge")
	if e, err := estimateOf(squared); err != nil || e.WorkerSlot != small.WorkerSlot+64*(squared.Data.Features+1) {
		t.Errorf("squared hinge: %+v, hinge %+v, %v", e, small, err)
	}
	wide := methodtest.WordNetLike(200, 50)
	wide.Data.Features *= 10
	if e, err := estimateOf(wide); err != nil || e.WorkerSlot < 3*small.WorkerSlot ||
		footprint.Tasks(e, 3)-footprint.Tasks(e, 1) != 2*e.WorkerSlot {
		t.Errorf("ten times the features: %+v, then %+v, %v", small, e, err)
	}
	if _, err := estimateOf(&taxonv1.JobSpec{Structure: &taxonv1.Structure{Names: []string{"a"}, Parents: []uint32{0},
		Children: []uint32{0}}}); err == nil {
		t.Error("a cycle was planned")
	}
}

// TestPlanLines checks that the tiles of a block have lines for the features of its listed rows, or
// for all features.
func TestPlanLines(t *testing.T) {
	spec := methodtest.WordNetLike(200, 50)
	d := spec.GetData()
	if n := lines(settings(spec).Loss, d); n != d.Features+1 {
		t.Errorf("the rows have most of %d features: %d lines", d.Features, n)
	}
	d.Instances *= 100 // with the same total of nonzeros
	n := lines(settings(spec).Loss, d)
	if n > d.Features/3 || n < d.Features/100 {
		t.Errorf("few rows of many are listed: %d lines for %d features", n, d.Features)
	}
	spec.Options.Set("loss", "logistic")
	if n := lines(settings(spec).Loss, d); n != d.Features+1 {
		t.Errorf("logistic loss: %d lines for %d features", n, d.Features)
	}
}

// TestInternalEntries checks that internals low in the hierarchy, which see few rows, have far
// fewer entries than features, and that dense vectors have one entry per feature.
func TestInternalEntries(t *testing.T) {
	spec := methodtest.WordNetLike(2000, 500)
	tree, _, err := jobspec.Tree(spec, false)
	if err != nil {
		t.Fatal(err)
	}
	d := spec.GetData()
	n, kept := groupEntries(tree, d, newPlan(tree, spec))
	all := uint64(len(tree.Internals())) * d.Features
	nonzeros := uint64(4*tree.MaxDepth()+1)*d.Nonzeros + all/d.Features
	if n < all/d.Features || n > nonzeros || n > all/4 {
		t.Errorf("%d entries of internals, at most %d nonzeros are below them, dense were %d", n, nonzeros, all)
	}
	if kept != n {
		t.Errorf("of one group of %d entries %d are kept", n, kept)
	}
	v := newVocabulary(d)
	for rows, last := 0.0, 0.0; rows < 3*float64(d.Instances); rows = 1.5*rows + 1 {
		f := v.distinct(rows)
		if f < last || f > float64(d.Features)+1 {
			t.Errorf("%g rows hold %g features, fewer held %g", rows, f, last)
		}
		last = f
	}
	sparse, err := estimateOf(spec)
	if err != nil {
		t.Fatal(err)
	}
	spec.Options.Set("loss", "logistic")
	dense, err := estimateOf(spec)
	if err != nil || dense.WorkerShared < 8*all || dense.StoreSweep <= sparse.StoreSweep {
		t.Errorf("logistic: %+v after %+v, %v", dense, sparse, err)
	}
}

// TestDenseRowsAreCounted checks that the memory of a slot includes half-full rows of few columns,
// which the hinge stores lane by lane.
func TestDenseRowsAreCounted(t *testing.T) {
	slot := func(loss string, nonzeros uint64) uint64 {
		spec := methodtest.WordNetLike(200, 50)
		spec.Options.Set("loss", loss)
		spec.Data.Instances, spec.Data.Features, spec.Data.Nonzeros = 10000, 80, nonzeros
		e, err := estimateOf(spec)
		if err != nil {
			t.Fatal(err)
		}
		return e.WorkerSlot
	}
	if more := slot("hinge", 400000) - slot("hinge", 399999); more != 10000*4*(64*6+64) {
		t.Errorf("half-full rows take %d bytes more", more)
	}
	if more := slot("squared-hinge", 400000) - slot("squared-hinge", 399999); more != 0 {
		t.Errorf("of the squared hinge %d bytes", more)
	}
}
