// Package footprint says how much memory processes take that run a job, given the method's estimate of it: workers,
// stores, and trainings in one process. It is the only place that knows of outboxes, of a Go heap's garbage and of
// pages that are given back late. docs/deploy.md compares its numbers with measurements.
//
// All sizes are in bytes. They are rough, and rather too large than too small.
package footprint

import (
	"fmt"
	"math"
	"sort"

	"taxon/coordinator/method"
	"taxon/internal/ui/format"
)

// These constants describe the memory of a process. Values wait in the outboxes of a slot's two
// batches (worker/agent_work.go), and once more as messages. A store may be writing one value of
// each slot to the disk, or fewer if slots are many. A Go heap grows to twice its live size.
const (
	programBytes = 64 << 20
	outboxBytes  = 8 << 20
	maxWriting   = 256 << 20
	slotOutbox   = 4 * outboxBytes
	// movedShare is the factor by which a worker keeps more than its share, because it also keeps
	// blocks that other workers have taken over.
	movedShare = 1.25
)

// Tasks returns what a worker with these slots holds for its tasks.
func Tasks(e method.Estimate, slots uint32) uint64 {
	return e.Data + e.WorkerShared + uint64(max(slots, 1))*e.WorkerSlot
}

// live returns the live memory of a worker's process with these slots. It does not count what the
// tasks keep between two tasks.
func live(e method.Estimate, slots uint32) uint64 {
	slots = max(slots, 1)
	return Tasks(e, slots) + uint64(slots)*min(slotOutbox, 2*method.FirstSweeps*e.StoreSweep)
}

// Worker returns the most resident memory of a worker's process with these slots of `all`, if no limit
// is given. Blocks, and so what is kept of them, are shared out by slots.
func Worker(e method.Estimate, slots, all uint32) uint64 {
	share := float64(max(slots, 1)) / float64(max(slots, all, 1))
	live := live(e, slots) + uint64(min(movedShare*share, 1)*float64(e.WorkerKept))
	return programBytes + 2*live + live/4 // pages are given back late
}

// Needs returns the memory that suffices as the limit of a worker with these slots. The process then collects
// its garbage in time to stay within it, and its tasks keep nothing that has no room.
func Needs(e method.Estimate, slots uint32) uint64 {
	live := live(e, slots) + uint64(max(slots, 1))*e.SlotTask
	return programBytes + live + live/4
}

// Fitting returns a hint for the user that says how to start workers with at least this memory for
// the job.
func Fitting(e method.Estimate, memory uint64) string {
	if one := Needs(e, 1); memory >= one {
		const most = 1 << 16
		slots := 1 + sort.Search(most, func(more int) bool { return Needs(e, uint32(more)+2) > memory })
		return fmt.Sprintf("‹slots=%d›, which fit the memory it has", slots)
	}
	return fmt.Sprintf("‹slots=1› ‹memory=%s› or more", format.BytesRounded(Needs(e, 1), math.Ceil))
}

// Store returns the resident memory of one of the stores if they keep a job's values in memory, while
// these slots write to them.
func Store(e method.Estimate, stores, slots uint32) uint64 {
	return programBytes + e.StoreJob/uint64(max(stores, 1)) + min(uint64(slots)*outboxBytes,
		method.FirstSweeps*e.StoreSweep, maxWriting)
}

// Memory is what trainings in one process hold, in bytes.
type Memory struct {
	Data    uint64 `json:"data_bytes"`    // mapped instances
	State   uint64 `json:"state_bytes"`   // values in the store, and those that are kept decoded
	Scratch uint64 `json:"scratch_bytes"` // working memory of all threads
	Process uint64 `json:"process_bytes"` // the program itself, and garbage not yet collected
	Total   uint64 `json:"total_bytes"`
	Least   uint64 `json:"least_bytes"` // total of the same trainings in the mode Spill
}

// Mode is how a training in one process deals with memory. Each takes less memory than the one
// before, and a little more time. The weights are the same.
type Mode int

// These are the modes.
const (
	Cached  Mode = iota // what tasks wrote is kept decoded, and garbage may grow
	Compact             // nothing is kept decoded, and garbage is collected often
	Spill               // as Compact, and the store's values are in files
)

// These bound the garbage of a training in one process. Normally there is as much garbage as live
// memory. With dense values, or where memory is short, it is limited to densePercent, and to
// tightPercent of an estimate that is Tight. The runtime returns some pages late, which is
// lateShare of it.
const (
	aloneBytes = 40 << 20
	// DenseFrom is the total, in bytes, below which garbage is not limited.
	DenseFrom    = 512 << 20
	densePercent = 20
	tightPercent = 10
	lateShare    = 0.5
	spillBytes   = 256 << 20 // memory of a store whose values are in files
)

// Garbage returns how much garbage a training may leave, as a percentage of its live memory. It is 0
// where garbage is not limited.
func Garbage(e method.Estimate, mode Mode) int {
	switch {
	case e.Tight:
		return tightPercent
	case e.Dense || mode >= Compact:
		return densePercent
	}
	return 0
}

// Alone returns the resident memory of equal trainings side by side in one process with these threads.
func Alone(e method.Estimate, threads, trainings uint32, mode Mode) Memory {
	shared, kept, stored := e.WorkerShared, e.WorkerKept, e.StoreLocal
	if mode >= Compact {
		kept = 0
	}
	if mode >= Spill {
		stored = min(stored, spillBytes)
	} else {
		shared -= e.InPlace
	}
	n := uint64(max(trainings, 1))
	slot := e.WorkerSlot
	if mode >= Compact {
		slot += e.SlotTask
	}
	m := Memory{Data: n * e.Data, State: n * (shared + kept + stored + e.Coordinator),
		Scratch: n * uint64(max(threads, 1)) * slot}
	live := m.Data + m.State + m.Scratch
	m.Total = aloneBytes + 2*live
	if percent := Garbage(e, mode); percent > 0 && m.Total > DenseFrom {
		m.Total = max(aloneBytes+live+uint64(float64(live)*float64(percent)*(1+lateShare)/100), DenseFrom)
	}
	m.Process, m.Least = m.Total-live, m.Total
	if mode < Spill {
		m.Least = min(m.Total, Alone(e, threads, trainings, mode+1).Least)
	}
	return m
}

// beyondHeap is what a worker holds besides the memory that Go's limit counts: pages of the
// program and of mapped data.
const beyondHeap = 40 << 20

// HeapLimit returns Go's memory limit for a process that must stay within this many bytes.
func HeapLimit(bytes int64) int64 { return max(bytes-beyondHeap, bytes/2, beyondHeap) }
