package coordinator

import (
	"errors"
	"fmt"
	"sort"

	"taxon/internal/jobspec"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// ErrTooLarge is wrapped by the refusal of a job that does not fit the memory given.
var ErrTooLarge = errors.New("the job does not fit")

// Estimate is what a plan takes, in bytes: rough, and meant to err on the large side.
type Estimate struct {
	Terminals, Nodes, Blocks, Ranges, Groups int

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
}

// Figures of the estimate. Bytes a feature of a slot: the mapper's tiles (196, and 128 in
// float64 for the last sweeps), sixteen parents (64) and the walk to them (16). Support
// vectors a class: a few for each positive and some dozens of neighbours, as on WordNet
// and LSHTC. A v_n touches most features of its support's rows; an entry of it takes some
// 3 bytes coded, a dual 6. Measured on WordNet's 3,383 frequent classes, C = 1, in the third
// sweep: 4.3 MB of duals, 12 of v_n, 14 of internals; the first sweep writes twice that.
const (
	slotBytesPerFeature  = 196 + 128 + 64 + 16
	curveBytesPerFeature = 64       // squared hinge below internals: the tile of curvatures
	slotBytesPerRow      = 2 + 64/4 // signs, and tiles of the quarter of the rows that is visited
	slotBytesFixed       = 8 << 20
	denseBelow           = 1024 // columns: half-full rows of fewer are laid out lane by lane (mapper/dense.go),
	denseLanes           = 4    // so many lanes of each at most, in lines of 16 features
	denseLane            = 32   // its dual, bound, place and number
	dataBytesPerNonzero  = 8
	dataBytesPerRow      = 24
	treeBytesPerNode     = 200
	supportPerPositive   = 4
	supportPerClass      = 32
	bytesPerDual         = 6
	bytesPerEntry        = 3
	keptPerEntry         = 16 // of a v_n: feature, float64 sum, stiffness, and the room they grew in
	keptPerDual          = 16 // row and lanes of few duals each, float64
	firstSweeps          = 2  // times as much is kept as later on
	visitSeconds         = 0.6e-9
	visitsPerNonzero     = 1.5 // pricing passes, spread over the sweeps, and passes over working sets
)

// PlanMemory estimates what a plan of a tree takes. It is pure.
func PlanMemory(tree *taxonomy.Tree, spec *taxonv1.JobSpec, plan *taxonv1.Plan) Estimate {
	d, rows, nonzeros := spec.GetData().GetFeatures()+1, spec.GetData().GetInstances(), spec.GetData().GetNonzeros()
	terminals := uint64(len(plan.GetBlockTerminals()))
	nodes := uint64(tree.Len())
	e := Estimate{
		Terminals: int(terminals), Nodes: int(nodes), Blocks: len(plan.GetBlockSet()),
		Ranges: max(len(plan.GetRangeBegin())-1, 0), Groups: max(len(plan.GetGroupBegin())-1, 0),
	}
	row := float64(nonzeros) / float64(max(rows, 1))
	positives := uint64(0)
	for _, n := range spec.GetData().GetLabelInstances() {
		positives += uint64(n)
	}
	support := supportPerPositive*positives + supportPerClass*terminals
	entries := min(float64(support)*row, float64(terminals)*float64(d))
	overrides := internalEntries(tree, spec.GetData())
	logistic := spec.GetOptions().GetLoss() == "logistic"
	if tree.IsGraph() { // dense vectors
		overrides = uint64(len(tree.Internals())) * d
	}
	if logistic { // counted apart
		entries, overrides, support = 0, 0, 0
	}

	e.WorkerShared = dataBytesPerNonzero*nonzeros + dataBytesPerRow*rows + treeBytesPerNode*nodes + 8*overrides*versions(plan)
	e.WorkerKept = firstSweeps * (keptPerDual*support + uint64(keptPerEntry*entries))
	e.WorkerSlot = slotBytesPerFeature*d + slotBytesPerRow*rows + slotBytesFixed
	if spec.GetOptions().GetLoss() == "squared-hinge" && len(tree.Internals()) > 0 {
		e.WorkerSlot += curveBytesPerFeature * d
	}
	if !logistic && spec.GetOptions().GetLoss() != "squared-hinge" {
		e.WorkerSlot += DenseRows(rows, d-1, nonzeros)
	}
	e.Coordinator = 64*uint64(e.Blocks+e.Ranges) + treeBytesPerNode*nodes
	e.StoreSweep = bytesPerDual*support + uint64(bytesPerEntry*entries) + bytesPerEntry*overrides
	e.StoreJob = 3 * e.StoreSweep
	e.StoreLocal = e.StoreJob
	e.TrafficSweep = 2*e.StoreSweep + bytesPerDual*support // written once; duals read by maps, v by reduces, x by maps
	if logistic {
		e.WorkerSlot += smoothRows * rows
		smoothPlanOf(tree, spec, plan).estimate(&e)
	}
	e.VisitsSweep = visitsPerNonzero * float64(nonzeros) * float64(terminals)
	e.SecondsSweep = visitSeconds * e.VisitsSweep
	return e
}

// EstimateJob plans a job and estimates what it takes.
func EstimateJob(spec *taxonv1.JobSpec) (Estimate, error) {
	tree, _, err := jobspec.Tree(spec)
	if err != nil {
		return Estimate{}, err
	}
	return PlanMemory(tree, spec, NewPlan(tree, spec)), nil
}

// Worker is what a worker of so many slots holds for its tasks.
func (e Estimate) Worker(slots uint32) uint64 {
	return e.WorkerShared + uint64(max(slots, 1))*e.WorkerSlot
}

// DenseRows is what a slot of a hinge job takes to lay rows out lane by lane, at most; 0
// where it does not, as they are sparse or wide.
func DenseRows(rows, features, nonzeros uint64) uint64 {
	if features >= denseBelow || 2*nonzeros < rows*features {
		return 0
	}
	return denseLanes * rows * (64*((features+16)/16) + denseLane)
}

// versions is how many versions of the internals a worker holds decoded: x, the one before,
// and, where all blocks see the same, the one that a guard step may go back to.
func versions(plan *taxonv1.Plan) uint64 {
	if len(plan.GetGroupBegin()) <= 2 {
		return 3
	}
	return 2
}

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
	live := e.Worker(slots) + uint64(slots)*min(slotOnItsWay, 2*firstSweeps*e.StoreSweep)
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
	return programBytes + e.StoreJob/uint64(max(stores, 1)) + min(uint64(slots)*outboxBytes, firstSweeps*e.StoreSweep, mostWriting)
}

// fits says whether a worker has the memory for a task of a job; one that did not tell its
// memory always has. What it would keep of blocks counts when the job is submitted, not
// here: where workers leave, the others go on.
func (m *Machine) fits(j *job, w *workerState) bool {
	return w.memory == 0 || j.estimate.Needs(w.slots, 0) <= w.memory
}

// warnOfMemory notes in the logs of jobs that a worker which joins gets none of their tasks.
func (m *Machine) warnOfMemory(w *workerState) {
	for _, j := range m.jobs {
		if !j.ended() && !m.fits(j, w) {
			m.decide(Record{Kind: recordNote, Job: j.ID, Reason: fmt.Sprintf("worker %s gets no tasks of this job: its %d slots need %s, it has %s",
				w.name, w.slots, size(j.estimate.Needs(w.slots, 0)), size(w.memory))})
		}
	}
}

// tooLarge refuses a job that no registered worker, or not the stores together, can hold,
// with the numbers that would do. Who has not told its memory, or has not joined yet, may.
func (m *Machine) tooLarge(p *prepared, replicas uint32) error {
	best, all := uint64(0), uint32(m.slots())
	for _, w := range m.workers {
		if w.memory == 0 || p.estimate.Needs(w.slots, all) <= w.memory {
			best = 0
			break
		}
		best = max(best, w.memory)
	}
	if best > 0 {
		each := p.estimate.Needs(2, all) - p.estimate.Needs(1, all)
		return fmt.Errorf("%w the workers: a worker needs %s and %s for each slot (a block of 16 classes over %d features, and what is kept of those before), garbage included; the largest has %s: "+
			"start workers with %s", ErrTooLarge, size(p.estimate.Needs(1, all)-each), size(each),
			p.spec.GetData().GetFeatures(), size(best), p.estimate.fitting(best, all))
	}
	need, have := p.estimate.StoreJob*uint64(max(replicas, 1)), uint64(0)
	for _, s := range m.shards {
		if !s.up {
			continue
		}
		if s.heard.Capacity == 0 {
			return nil
		}
		have += s.heard.Capacity - min(s.heard.Bytes, s.heard.Capacity)
	}
	if have > 0 && need > have {
		return fmt.Errorf("%w the store: it needs about %s, the shards that are up have %s left: start more shards, or ask for fewer replicas",
			ErrTooLarge, size(need), size(have))
	}
	return nil
}

// fitting says how to start workers that have so much memory, or more, for the job on a
// cluster of so many slots.
func (e Estimate) fitting(memory uint64, all uint32) string {
	if one := e.Needs(1, all); memory >= one {
		const most = 1 << 16
		slots := 1 + sort.Search(most, func(more int) bool { return e.Needs(uint32(more)+2, all) > memory })
		return fmt.Sprintf("--slots %d, which fit the memory it has", slots)
	}
	return fmt.Sprintf("--slots 1 --memory %s or more", size(e.Needs(1, all)))
}

// size writes bytes as users read them.
func size(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", (n+1<<30-1)>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20)
	}
	return fmt.Sprintf("%d KiB", (n+1<<10-1)>>10)
}
