// Package planinfo tells what a training will take before it is run, from its plan alone:
// tasks, bytes, memory, CPU time, and how far more cores help. It is pure.
//
// Time is a model with three constants, fitted to measured trainings (see
// Fitted); a cluster's links and latencies are assumed and
// stand beside their numbers. Read all of it to a factor of two or three, and CPU times
// below some 20 s as upper bounds.
package planinfo

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"

	"taxon/coordinator"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
)

// Costs are the model's constants.
type Costs struct {
	VisitNanos float64 // a nonzero and a class of one pass over the data, all passes of a sweep
	ByteNanos  float64 // a byte of a sweep's values: coded, stored, read, reduced
	TaskMicros float64 // a task: leased, run with nothing to do, committed
	Sweeps     int     // to a gap of 1e-2
}

// Fitted agrees with generated data at scales 0.001 to 0.004 (go run ./test/bench/scaling)
// and with 44,317 short texts of 3,383 classes (2 s a sweep) to a quarter, on one core of
// an AVX-512 Xeon with kernels in Go.
var Fitted = Costs{VisitNanos: 0.7, ByteNanos: 55, TaskMicros: 300, Sweeps: 16}

// Assumed of a cluster, not measured.
const (
	linkBytes       = 1.25e9 // bytes a second of each worker's and each store's link (10 Gbit/s)
	stepSeconds     = 0.01   // between a step's last commit and the next one's first task
	coordinatorTask = 100e-6 // seconds of the one coordinator's time a task
)

// Cluster is what the training shall run on.
type Cluster struct {
	Workers int   // processes; 0: as many as the cores need at Slots each
	Slots   int   // tasks at a time of a worker
	Stores  int   // shards of the store
	Memory  int64 // bytes of a worker; 0: not known
}

// Info is the answer. Bytes are estimates that err on the large side.
type Info struct {
	Terminals    int       `json:"terminals"`
	Nodes        int       `json:"nodes"`
	Blocks       int       `json:"blocks"`
	Ranges       int       `json:"ranges"`
	Groups       int       `json:"groups"`
	TasksSweep   int       `json:"tasks_sweep"`
	Visits       float64   `json:"visits_sweep"`       // nonzeros times classes
	Sweeps       int       `json:"sweeps"`             // assumed to a gap of 1e-2
	BytesSweep   int64     `json:"bytes_sweep"`        // between workers and store
	StoredSweep  int64     `json:"stored_sweep"`       // written by a sweep
	WorkerMemory int64     `json:"worker_bytes"`       // of each worker, at most
	WorkerLeast  int64     `json:"worker_least_bytes"` // if it is told how much it may take
	StoreMemory  int64     `json:"store_bytes"`        // of each shard
	Fits         *bool     `json:"fits,omitempty"`
	CPUSeconds   float64   `json:"cpu_seconds"` // whole training
	Speedup      []Speedup `json:"speedup"`
}

// Speedup is a point of the curve.
type Speedup struct {
	Cores      int     `json:"cores"`
	Workers    int     `json:"workers"`
	Seconds    float64 `json:"seconds"` // whole training
	Speedup    float64 `json:"speedup"` // against one core without a cluster
	Bottleneck string  `json:"bottleneck"`
}

// Of plans a training and works out what it takes on a cluster.
func Of(spec *taxonv1.JobSpec, c Cluster, k Costs, cores []int) (*Info, error) {
	tree, _, err := jobspec.Tree(spec)
	if err != nil {
		return nil, err
	}
	plan := coordinator.NewPlan(tree, spec)
	e := coordinator.PlanMemory(tree, spec, plan)
	c.Slots, c.Stores = max(c.Slots, 1), max(c.Stores, 1)
	i := &Info{
		Terminals: e.Terminals, Nodes: tree.Len(), Blocks: e.Blocks, Ranges: e.Ranges, Groups: e.Groups,
		TasksSweep: e.Blocks + e.Ranges, Sweeps: k.Sweeps, BytesSweep: int64(e.TrafficSweep), StoredSweep: int64(e.StoreSweep),
	}
	for _, v := range plan.GetBlockCost() {
		i.Visits += v
	}
	workers := c.Workers
	if workers <= 0 && len(cores) > 0 {
		workers = (cores[0] + c.Slots - 1) / c.Slots
	}
	all := uint32(min(max(workers, 1)*c.Slots, math.MaxUint32))
	i.WorkerMemory, i.WorkerLeast = int64(e.Process(uint32(c.Slots), all)), int64(e.Needs(uint32(c.Slots), all))
	i.StoreMemory = int64(e.Store(uint32(c.Stores), all))
	if c.Memory > 0 {
		fits := i.WorkerLeast <= c.Memory
		i.Fits = &fits
	}
	m := newModel(plan, e, k, len(tree.Internals()) == 0)
	one := m.sweep(1)
	i.CPUSeconds = one * float64(k.Sweeps)
	for _, n := range cores {
		i.Speedup = append(i.Speedup, m.on(n, c, one))
	}
	return i, nil
}

// model holds the seconds of a sweep's tasks, longest first.
type model struct {
	k              Costs
	blocks, ranges []float64
	steps          float64 // of a sweep: all blocks, then all ranges, if there are internals
	bytes          float64
}

func newModel(plan *taxonv1.Plan, e coordinator.Estimate, k Costs, flat bool) *model {
	m := &model{k: k, bytes: float64(e.TrafficSweep)}
	// Half of a value's cost falls on the block that writes it, half on the range that adds it up.
	share := float64(e.StoreSweep) * k.ByteNanos * 1e-9 / 2
	terminals := plan.GetBlockBegin()
	all := float64(max(len(plan.GetBlockTerminals()), 1))
	for b, cost := range plan.GetBlockCost() {
		part := float64(terminals[b+1]-terminals[b]) / all
		m.blocks = append(m.blocks, cost*k.VisitNanos*1e-9+part*share+k.TaskMicros*1e-6)
	}
	m.steps = 1
	if n := len(plan.GetRangeBegin()) - 1; n > 0 && !flat { // without internals nothing is reduced
		m.steps = 2
		m.ranges = slices.Repeat([]float64{share/float64(n) + k.TaskMicros*1e-6}, n) // cut to equal work
	}
	slices.SortFunc(m.blocks, func(a, b float64) int { return cmp.Compare(b, a) })
	return m
}

// sweep is the time of a sweep's tasks on n cores, each taking the longest that is left.
func (m *model) sweep(n int) float64 { return makespan(m.blocks, n) + makespan(m.ranges, n) }

// on is a training on n cores. What is slowest besides the cores' own work, if it takes
// more than a tenth of a sweep, is the bottleneck.
func (m *model) on(n int, c Cluster, one float64) Speedup {
	workers := c.Workers
	if workers <= 0 {
		workers = (n + c.Slots - 1) / c.Slots
	}
	busy := min(n, workers*c.Slots)
	work := m.sweep(busy)
	parts := []struct {
		name    string
		seconds float64
	}{
		{"too few or too uneven tasks for the cores", work - one/float64(busy)},
		{"the stores' links: start more stores", max(0, m.bytes/(linkBytes*float64(c.Stores))-work)},
		{"the workers' links", max(0, m.bytes/(linkBytes*float64(min(workers, n)))-work)},
		{"the coordinator: too many small tasks", max(0, coordinatorTask*float64(len(m.blocks)+len(m.ranges))-work)},
		{"waiting between steps", m.steps * stepSeconds},
		{fmt.Sprintf("the workers' slots, %d in all: give more workers", busy), one/float64(busy) - one/float64(n)},
	}
	total, worst := work, 0
	lag := 0.0 // links and coordinator work beside one another
	for p, part := range parts {
		if p >= 1 && p <= 3 {
			lag = max(lag, part.seconds)
		}
		if part.seconds > parts[worst].seconds {
			worst = p
		}
	}
	total += lag + m.steps*stepSeconds
	s := Speedup{Cores: n, Workers: workers, Seconds: total * float64(m.k.Sweeps), Speedup: one / total, Bottleneck: "none"}
	if parts[worst].seconds > total/10 {
		s.Bottleneck = parts[worst].name
	}
	return s
}

// makespan is when the last of n cores is done, if each in turn takes the next task.
func makespan(tasks []float64, n int) float64 {
	free := make(coresFree, max(n, 1))
	last := 0.0
	for _, t := range tasks {
		free[0] += t
		last = max(last, free[0])
		heap.Fix(&free, 0)
	}
	return last
}

// coresFree is a heap of the times at which the cores are free.
type coresFree []float64

func (f coresFree) Len() int           { return len(f) }
func (f coresFree) Less(a, b int) bool { return f[a] < f[b] }
func (f coresFree) Swap(a, b int)      { f[a], f[b] = f[b], f[a] }

// Push and Pop complete heap.Interface; the number of cores does not change.
func (f *coresFree) Push(x any) { *f = append(*f, x.(float64)) }
func (f *coresFree) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}
