package estimate

import (
	"testing"

	"taxon/coordinator/footprint"
	"taxon/internal/data/generate"
)

// TestMemoryIsWhatWasMeasured: workers of a cluster on one machine that trained generated data
// (lwiki at 0.003, 12 sweeps) were measured to be resident with so much at most; the plan is not
// below that, and not above twice as much.
func TestMemoryIsWhatWasMeasured(t *testing.T) {
	for _, m := range []struct {
		workers, slots, stores int
		worker, store          int64 // MiB
	}{{1, 1, 1, 462, 75}, {1, 2, 1, 591, 81}, {1, 4, 1, 771, 75}, {3, 1, 2, 338, 107}} {
		i := lwiki(t, 0.003, Cluster{Workers: m.workers, Slots: m.slots, Stores: m.stores})
		if mib := i.WorkerMemory >> 20; mib < m.worker || mib > 2*m.worker {
			t.Errorf("%+v: a worker of %d MiB is planned", m, mib)
		}
		if mib := i.StoreMemory >> 20; mib < m.store || mib > 5*m.store/2 {
			t.Errorf("%+v: a store of %d MiB is planned", m, mib)
		}
		if i.WorkerLeast >= i.WorkerMemory || i.WorkerLeast < i.WorkerMemory/4 {
			t.Errorf("%+v: %d bytes at least, %d at most", m, i.WorkerLeast, i.WorkerMemory)
		}
	}
}

// TestAloneIsWhatWasMeasured: trainings of LWIKI-like data in one process, 42 nonzeros and 3.2
// labels an instance, were measured to hold so much at most, with one thread; the estimate is
// not below that, and not above 1.7 times it.
func TestAloneIsWhatWasMeasured(t *testing.T) {
	for scale, peak := range map[float64]uint64{0.001: 187e6, 0.003: 626e6, 0.01: 2046e6} {
		s, err := generate.Like("lwiki", scale)
		if err != nil {
			t.Fatal(err)
		}
		e := prepare(t, s).Estimate
		m, two := footprint.Alone(e, 1, 1, footprint.Cached), footprint.Alone(e, 2, 1, footprint.Cached)
		if m.Total < peak || m.Total > peak*17/10 {
			t.Errorf("scale %g: %d bytes are estimated, %d were taken", scale, m.Total, peak)
		}
		if m.Total != m.Data+m.State+m.Scratch+m.Process || two.Scratch != 2*m.Scratch || two.Total <= m.Total {
			t.Errorf("one thread: %+v, two: %+v", m, two)
		}
	}
}

// TestSecondsAreWhatWasMeasured: the same trainings took so many seconds of CPU to a gap of
// 1e-2; the estimate is within a factor of three from 20 s on, and not below for shorter ones.
func TestSecondsAreWhatWasMeasured(t *testing.T) {
	for scale, cpu := range map[float64]float64{0.001: 1.6, 0.003: 12.1, 0.01: 92.8} {
		s, err := generate.Like("lwiki", scale)
		if err != nil {
			t.Fatal(err)
		}
		j := prepare(t, s)
		if one := Seconds(j, 1); one < cpu/3 || one > max(3*cpu, 20) || Seconds(j, 8) >= one {
			t.Errorf("scale %g: %g s are estimated, %g were taken; on 8 threads %g", scale, one, cpu, Seconds(j, 8))
		}
	}
}
