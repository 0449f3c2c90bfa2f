package method

import taxonv1 "taxon/proto/taxon/v1"

// Estimate holds the memory and the time that a plan takes, in bytes and seconds. The figures are
// rough, and more often too large than too small. Package footprint computes from them how much
// memory processes need for the plan, and which jobs are refused. Package estimate computes how
// long the job takes.
type Estimate struct {
	// Data is the size of the instances, as each worker maps them (DataBytes).
	Data uint64
	// WorkerShared is what a worker holds for all slots together, without the data: the tree and
	// the internals.
	WorkerShared uint64
	// WorkerSlot is what each slot holds.
	WorkerSlot uint64
	// SlotTask is what each slot holds in addition for the time of a task. It counts where garbage is limited.
	SlotTask uint64
	// InPlace is the part of WorkerShared that a training in one process reads where its store in memory keeps it.
	InPlace uint64
	// WorkerKept is what all workers together keep decoded of what their tasks wrote last.
	WorkerKept uint64
	// Coordinator is the size of references, plan and specification.
	Coordinator uint64
	// StoreSweep is the size of the values that a sweep writes, in one copy.
	StoreSweep uint64
	// StoreJob is the size of the values kept at a time, in one copy: the values of a sweep and of
	// the previous one, and the values that are being written.
	StoreJob uint64
	// StoreLocal is StoreJob for a job in one process, which keeps less because it never recomputes
	// lost values.
	StoreLocal uint64
	// TrafficSweep is what workers and store exchange in a sweep.
	TrafficSweep uint64
	// Dense says that values are large vectors without pointers, which the garbage collector does
	// not scan. Frequent collections then cost little.
	Dense bool
	// Tight says that, in addition, little is allocated besides values that last for a sweep. The
	// limit on garbage may then be lower still.
	Tight bool
	// SlotHolds names what a slot's memory is for, in the refusal of a job that is too large.
	SlotHolds string
	// Less names an option that takes less memory, for that refusal. An empty Less means that there is none.
	Less string

	// Sweeps is the number of sweeps that reach a gap of 1e-2 at C = 1.
	Sweeps int
	// SecondsSweep has the seconds of one core for the tasks of each list of items in a sweep, by the lists' numbers.
	SecondsSweep []float64
}

// DataBytes returns the size of the mapped instances.
func DataBytes(d *taxonv1.Data) uint64 { return 8*d.GetNonzeros() + 24*d.GetInstances() }

// TreeBytes returns the size of a tree of this many nodes.
func TreeBytes(nodes int) uint64 { return 200 * uint64(nodes) }

// FirstSweeps is the size of the first sweep's values, as a multiple of later ones.
const FirstSweeps = 2
