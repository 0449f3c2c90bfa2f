package method

import (
	"fmt"
	"math"
	"sort"

	"taxon/internal/ui/format"
	taxonv1 "taxon/proto/taxon/v1"
)

// Estimate is what a plan takes, in bytes and seconds. It is rough, and rather too large than too
// small. Every figure and refusal that is about memory or time follows from it, here and in
// package estimate.
type Estimate struct {
	Data uint64 // the instances, as each worker maps them (DataBytes)
	// of a worker, whatever its slots, without the data: the tree, the internals
	WorkerShared uint64
	WorkerSlot   uint64 // of each slot
	// more of each slot for the time of a task; it counts where garbage is limited
	SlotTask uint64
	// of WorkerShared, what a training in one process reads where its store in memory keeps it
	InPlace uint64
	// of all workers together: what their tasks wrote last, decoded
	WorkerKept  uint64
	Coordinator uint64 // references, plan and specification
	StoreSweep  uint64 // values that a sweep writes, one copy
	// values kept at a time, one copy: a sweep's, the one before and what is being written
	StoreJob uint64
	// the same at its most in a job of one process, which need not make lost values again
	StoreLocal   uint64
	TrafficSweep uint64 // bytes between workers and store in a sweep
	// Dense: values are large vectors without pointers, which the garbage collector does not
	// scan. So frequent collections cost little.
	Dense bool
	// Tight: and little is allocated beside values that last for a sweep, so garbage may be less still.
	Tight bool
	// SlotHolds names what a slot's memory is for, in the refusal of a job that is too large.
	SlotHolds string
	// Less names an option that takes less memory, for that refusal. "": there is none.
	Less string

	Sweeps int // to a gap of 1e-2 at C = 1
	// of one core: of the tasks of each list of items, by their numbers, in a sweep
	SecondsSweep []float64
}

// DataBytes is the size of the mapped instances, and TreeBytes that of a tree of this many nodes.
func DataBytes(d *taxonv1.Data) uint64 { return 8*d.GetNonzeros() + 24*d.GetInstances() }

// TreeBytes is described with DataBytes.
func TreeBytes(nodes int) uint64 { return 200 * uint64(nodes) }

// Worker is what a worker with these slots holds for its tasks.
func (e Estimate) Worker(slots uint32) uint64 {
	return e.Data + e.WorkerShared + uint64(max(slots, 1))*e.WorkerSlot
}

// FirstSweeps is the size of the first sweep's values, as a multiple of later ones.
const FirstSweeps = 2

// Figures of a process. Values wait in the outboxes of a slot's two batches
// (worker/agent_work.go), and once more as messages. A store may be writing one value of each
// slot to the disk, or fewer if slots are many. A Go heap grows to twice its live size.
// docs/deploy.md compares the estimates with measurements.
const (
	programBytes = 64 << 20
	outboxBytes  = 8 << 20
	maxWriting   = 256 << 20
	slotOutbox   = 4 * outboxBytes
	// a worker's share of what is kept: blocks that went to others are, too
	movedShare = 1.25
)

// live is the live memory of a worker's process with these slots, without what its tasks keep.
func (e Estimate) live(slots uint32) uint64 {
	slots = max(slots, 1)
	return e.Worker(slots) + uint64(slots)*min(slotOutbox, 2*FirstSweeps*e.StoreSweep)
}

// Process is the most resident memory of a worker's process with these slots of `all`, if no limit
// is given. Blocks, and so what is kept of them, are shared out by slots.
func (e Estimate) Process(slots, all uint32) uint64 {
	share := float64(max(slots, 1)) / float64(max(slots, all, 1))
	live := e.live(slots) + uint64(min(movedShare*share, 1)*float64(e.WorkerKept))
	return programBytes + 2*live + live/4 // pages are given back late
}

// Needs is the memory that suffices as a limit (--memory). The process then collects its garbage
// in time to stay within it, and its tasks keep nothing that has no room.
func (e Estimate) Needs(slots uint32) uint64 {
	live := e.live(slots) + uint64(max(slots, 1))*e.SlotTask
	return programBytes + live + live/4
}

// Memory is what trainings in one process hold, in bytes.
type Memory struct {
	Data    uint64 `json:"data_bytes"`    // mapped instances
	State   uint64 `json:"state_bytes"`   // values in the store, and those that are kept decoded
	Scratch uint64 `json:"scratch_bytes"` // of all threads
	Process uint64 `json:"process_bytes"` // the program itself, and garbage not yet collected
	Total   uint64 `json:"total_bytes"`
	Least   uint64 `json:"least_bytes"` // total of the same trainings at their thriftiest
}

// Thrift is how a training in one process deals with memory. Each degree takes less memory than
// the one before, and a little more time. The weights are the same.
type Thrift int

// The degrees.
const (
	Roomy  Thrift = iota // what tasks wrote is kept decoded, and garbage may grow
	Frugal               // nothing is kept decoded, and garbage is collected often
	OnDisk               // and the store's values lie in files
)

// Garbage of a training in one process. Normally there is as much garbage as live memory. With
// dense values, or where memory is short, it is limited to densePercent, and to tightPercent of
// an estimate that is Tight. The runtime returns some pages late, which is lateShare of it.
const (
	aloneBytes   = 40 << 20
	DenseFrom    = 512 << 20
	densePercent = 20
	tightPercent = 10
	lateShare    = 0.5
	onDiskBytes  = 256 << 20 // of a store whose values lie in files
)

// Garbage is how much garbage a training may leave, as a percentage of its live memory; 0: it is
// not limited.
func (e Estimate) Garbage(thrift Thrift) int {
	switch {
	case e.Tight:
		return tightPercent
	case e.Dense || thrift >= Frugal:
		return densePercent
	}
	return 0
}

// Alone is the resident memory of equal trainings side by side in one process with these threads.
func (e Estimate) Alone(threads, trainings uint32, thrift Thrift) Memory {
	shared, kept, stored := e.WorkerShared, e.WorkerKept, e.StoreLocal
	if thrift >= Frugal {
		kept = 0
	}
	if thrift >= OnDisk {
		stored = min(stored, onDiskBytes)
	} else {
		shared -= e.InPlace
	}
	n := uint64(max(trainings, 1))
	slot := e.WorkerSlot
	if thrift >= Frugal {
		slot += e.SlotTask
	}
	m := Memory{Data: n * e.Data, State: n * (shared + kept + stored + e.Coordinator),
		Scratch: n * uint64(max(threads, 1)) * slot}
	live := m.Data + m.State + m.Scratch
	m.Total = aloneBytes + 2*live
	if percent := e.Garbage(thrift); percent > 0 && m.Total > DenseFrom {
		m.Total = max(aloneBytes+live+uint64(float64(live)*float64(percent)*(1+lateShare)/100), DenseFrom)
	}
	m.Process, m.Least = m.Total-live, m.Total
	if thrift < OnDisk {
		m.Least = min(m.Total, e.Alone(threads, trainings, thrift+1).Least)
	}
	return m
}

// beyondHeap is what a worker holds besides the memory that Go's limit counts: pages of the
// program and of mapped data.
const beyondHeap = 40 << 20

// HeapLimit is Go's memory limit for a process that must stay within this many bytes.
func HeapLimit(bytes int64) int64 { return max(bytes-beyondHeap, bytes/2, beyondHeap) }

// Store is the resident memory of one of the stores if they keep a job's values in memory, while
// these slots write to them.
func (e Estimate) Store(stores, slots uint32) uint64 {
	return programBytes + e.StoreJob/uint64(max(stores, 1)) + min(uint64(slots)*outboxBytes, FirstSweeps*e.StoreSweep,
		maxWriting)
}

// Fitting says how to start workers with at least this memory for the job.
func (e Estimate) Fitting(memory uint64) string {
	if one := e.Needs(1); memory >= one {
		const most = 1 << 16
		slots := 1 + sort.Search(most, func(more int) bool { return e.Needs(uint32(more)+2) > memory })
		return fmt.Sprintf("‹slots=%d›, which fit the memory it has", slots)
	}
	return fmt.Sprintf("‹slots=1› ‹memory=%s› or more", format.BytesRounded(e.Needs(1), math.Ceil))
}
