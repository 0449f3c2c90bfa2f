package planinfo

import (
	"testing"

	"taxon/internal/generate"
	"taxon/internal/jobspec"
)

// TestMemoryIsWhatWasMeasured: workers of a cluster on one machine that trained generated data
// (lwiki at 0.003, 12 sweeps) were measured to be resident with so much at most; the plan is not
// below that, and not above twice as much.
func TestMemoryIsWhatWasMeasured(t *testing.T) {
	for _, m := range []struct {
		workers, slots, stores int
		worker, store          int64 // MiB
	}{{1, 1, 1, 465, 75}, {1, 2, 1, 541, 81}, {1, 4, 1, 745, 75}, {3, 1, 2, 396, 107}} {
		i := lwiki(t, 0.003, Cluster{Workers: m.workers, Slots: m.slots, Stores: m.stores})
		if mib := i.WorkerMemory >> 20; mib < m.worker || mib > 2*m.worker {
			t.Errorf("%+v: a worker of %d MiB is planned", m, mib)
		}
		if mib := i.StoreMemory >> 20; mib < m.store || mib > 5*m.store/2 {
			t.Errorf("%+v: a store of %d MiB is planned", m, mib)
		}
		if i.WorkerLeast >= i.WorkerMemory || i.WorkerLeast < i.WorkerMemory/2 {
			t.Errorf("%+v: %d bytes at least, %d at most", m, i.WorkerLeast, i.WorkerMemory)
		}
	}
}

// TestEstimateMemory: trainings of LWIKI-like data, 42 nonzeros and 3.2 labels an instance,
// were measured to hold so much at most, with one thread; the estimate is not below that,
// and not above 1.6 times it.
func TestEstimateMemory(t *testing.T) {
	for scale, peak := range map[float64]int64{0.001: 190e6, 0.003: 733e6, 0.01: 2441e6} {
		s, err := generate.Like("lwiki", scale)
		if err != nil {
			t.Fatal(err)
		}
		spec := Spec(s, 0)
		tree, _, err := jobspec.Tree(spec)
		if err != nil {
			t.Fatal(err)
		}
		m := EstimateMemory(spec.Data, tree, "hinge", 1)
		if m.Total < peak || m.Total > peak*8/5 {
			t.Errorf("scale %g: %d bytes are estimated, %d were taken", scale, m.Total, peak)
		}
		if m.Total != m.Data+m.State+m.Scratch+m.Process {
			t.Errorf("%+v does not add up", m)
		}
		if two := EstimateMemory(spec.Data, tree, "hinge", 2); two.Scratch != 2*m.Scratch || two.Total <= m.Total {
			t.Errorf("two threads: %+v, one: %+v", two, m)
		}
	}
}
