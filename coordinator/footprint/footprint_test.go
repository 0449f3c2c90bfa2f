package footprint_test

import (
	"fmt"
	"strings"
	"testing"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method"
)

// large is an estimate with each figure, in the proportions of a job on WordNet.
func large() method.Estimate {
	return method.Estimate{Data: 500 << 20, WorkerShared: 300 << 20, WorkerSlot: 40 << 20, SlotTask: 8 << 20,
		InPlace: 100 << 20, WorkerKept: 200 << 20, Coordinator: 20 << 20, StoreSweep: 400 << 20, StoreJob: 1000 << 20,
		StoreLocal: 900 << 20}
}

// TestWorker: what is kept of blocks is shared out over the slots, and is not kept where memory is
// short; slots that fit a limit are told from it.
func TestWorker(t *testing.T) {
	e := large()
	without := e
	without.WorkerKept = 0
	one := footprint.Worker(e, 1, 1) - footprint.Worker(without, 1, 1)
	two := footprint.Worker(e, 2, 8) - footprint.Worker(without, 2, 8)
	if one < 2*e.WorkerKept || two > e.WorkerKept || footprint.Needs(without, 1) != footprint.Needs(e, 1) {
		t.Errorf("kept %d, of one slot %d, of two of eight %d", e.WorkerKept, one, two)
	}
	for slots := uint32(1); slots < 9; slots++ {
		most, least := footprint.Worker(e, slots, 8), footprint.Needs(e, slots)
		if footprint.Worker(e, slots+1, 8) <= most || least >= most || least <= footprint.Tasks(e, slots) ||
			footprint.Tasks(e, slots+1)-footprint.Tasks(e, slots) != e.WorkerSlot {
			t.Errorf("%d slots: %d, needs %d of %d", slots, most, least, footprint.Tasks(e, slots))
		}
		if fit := footprint.Fitting(e, least); fit != fmt.Sprintf("‹slots=%d›, which fit the memory it has", slots) {
			t.Errorf("%d slots: %s", slots, fit)
		}
	}
	if fit := footprint.Fitting(e, footprint.Needs(e, 1)-1); !strings.HasPrefix(fit, "‹slots=1› ‹memory=") {
		t.Errorf("too little for one slot: %s", fit)
	}
}

// TestAlone: each mode takes less than the one before, parts add up, and the least is the last one's.
func TestAlone(t *testing.T) {
	e := large()
	for _, e.Dense = range []bool{false, true} {
		last := footprint.Memory{Total: 1 << 60}
		for mode := footprint.Cached; mode <= footprint.Spill; mode++ {
			m := footprint.Alone(e, 4, 1, mode)
			if m.Total >= last.Total || m.Total != m.Data+m.State+m.Scratch+m.Process || m.Least > m.Total {
				t.Errorf("mode %d: %+v after %+v", mode, m, last)
			}
			last = m
		}
		if all := footprint.Alone(e, 4, 1, footprint.Cached); all.Least != last.Total {
			t.Errorf("at least %d, and %d in files", all.Least, last.Total)
		}
	}
	if one, two := footprint.Alone(e, 1, 1, 0), footprint.Alone(e, 1, 2, 0); two.Data != 2*one.Data ||
		two.Scratch != 2*one.Scratch {
		t.Errorf("one training %+v, two %+v", one, two)
	}
	if e.Tight = true; footprint.Garbage(e, footprint.Cached) >= footprint.Garbage(large(), footprint.Compact) {
		t.Error("a tight estimate has no less garbage")
	}
	if footprint.Garbage(large(), footprint.Cached) != 0 {
		t.Error("garbage is limited where there is room")
	}
}

// TestStore checks that stores divide a job's values among them, and that each also has memory for the
// values that are being written.
func TestStore(t *testing.T) {
	e := large()
	if one, four := footprint.Store(e, 1, 8), footprint.Store(e, 4, 8); one-four != e.StoreJob-e.StoreJob/4 {
		t.Errorf("one store holds %d, each of four %d", one, four)
	}
	if footprint.Store(e, 1, 1000) != footprint.Store(e, 1, 2000) || footprint.Store(e, 1, 8) >= footprint.Store(e, 1, 9) {
		t.Error("what is being written has no bound, or grows with no slots")
	}
}
