package method

import (
	"fmt"
	"math"
	"sort"

	"taxon/internal/human"
)

// Estimate is what a plan takes, in bytes: rough, and meant to err on the large side.
type Estimate struct {
	Terminals, Nodes int

	WorkerShared uint64  // of a worker, whatever its slots: the data, the tree, the internals
	WorkerSlot   uint64  // of each slot
	WorkerKept   uint64  // of all workers of a cluster together: what their blocks' tasks wrote last, decoded
	Coordinator  uint64  // references, plan and specification
	StoreSweep   uint64  // values that a sweep writes, one copy
	StoreJob     uint64  // values kept at a time, one copy: a sweep's, the one before and what is being written
	StoreLocal   uint64  // the same in a job of one process, which need not make lost values again
	TrafficSweep uint64  // bytes between workers and store in a sweep
	VisitsSweep  float64 // nonzeros visited in a sweep
	SecondsSweep float64 // of one core
	// SlotHolds says what a slot's memory is for, for the refusal of a job that is too large.
	SlotHolds string
}

// Worker is what a worker of so many slots holds for its tasks.
func (e Estimate) Worker(slots uint32) uint64 {
	return e.WorkerShared + uint64(max(slots, 1))*e.WorkerSlot
}

// FirstSweeps is how many times as much the first sweep's values take as those of later ones.
const FirstSweeps = 2

// Figures of a process. Values wait in the outboxes of a slot's two batches, 8 MiB each
// (worker/outbox.go), and once more as messages; a store may have one of each slot's on its
// way to the disk, few at a time of many. A Go heap grows to twice of what is live. Measured, in MiB, with 1, 2 and 4 slots
// of one worker, are 477, 541, 812 on WordNet's frequent classes, and 465, 541, 745 on
// generated data like LWIKI's (scale 0.003).
const (
	programBytes = 64 << 20
	outboxBytes  = 8 << 20
	mostWriting  = 256 << 20
	slotOnItsWay = 4 * outboxBytes
	strayed      = 1.25 // a worker's share of what is kept: blocks that went to others are, too
)

// live is what a worker's process of so many slots holds where the cluster has `all` slots
// (0: ever so many): blocks, and what is kept of them, are shared out by slots.
func (e Estimate) live(slots, all uint32) uint64 {
	slots = max(slots, 1)
	live := e.Worker(slots) + uint64(slots)*min(slotOnItsWay, 2*FirstSweeps*e.StoreSweep)
	if all > 0 {
		share := float64(slots) / float64(max(slots, all))
		live += uint64(min(strayed*share, 1) * float64(e.WorkerKept))
	}
	return live
}

// Process is the resident memory of a worker's process of so many of all slots, at most,
// where nobody has said how much it may be.
func (e Estimate) Process(slots, all uint32) uint64 {
	live := e.live(slots, all)
	return programBytes + 2*live + live/4 // pages are given back late
}

// Needs is the memory that suffices if it is said (--memory): the process collects its
// garbage in time to stay within it. With half of the memory that it took without a bound
// WordNet's frequent classes took 2 % more CPU time.
func (e Estimate) Needs(slots, all uint32) uint64 {
	live := e.live(slots, all)
	return programBytes + live + live/4
}

// Store is the resident memory of one of so many stores that keep a job's values in memory,
// while so many slots write to them.
func (e Estimate) Store(stores, slots uint32) uint64 {
	return programBytes + e.StoreJob/uint64(max(stores, 1)) + min(uint64(slots)*outboxBytes, FirstSweeps*e.StoreSweep, mostWriting)
}

// Fitting says how to start workers that have so much memory, or more, for the job on a
// cluster of so many slots.
func (e Estimate) Fitting(memory uint64, all uint32) string {
	if one := e.Needs(1, all); memory >= one {
		const most = 1 << 16
		slots := 1 + sort.Search(most, func(more int) bool { return e.Needs(uint32(more)+2, all) > memory })
		return fmt.Sprintf("--slots %d, which fit the memory it has", slots)
	}
	return fmt.Sprintf("--slots 1 --memory %s or more", human.BytesRounded(e.Needs(1, all), math.Ceil))
}
