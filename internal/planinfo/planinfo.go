// Package planinfo estimates what a training will take, from its plan alone: tasks, bytes,
// memory, CPU time, and how far more cores help. It is pure.
//
// Time is a model with three constants, fitted to measured trainings (see Fitted). A cluster's
// links and latencies are assumed, and stated beside their numbers. All figures are good to a
// factor of two or three. CPU times below some 20 s are upper bounds.
package planinfo

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
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
	Blocks       int       `json:"blocks,omitempty"`
	Ranges       int       `json:"ranges,omitempty"`
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
	p, err := registry.Prepare(spec)
	if err != nil {
		return nil, err
	}
	plan, e := p.Plan, p.Estimate
	c.Slots, c.Stores = max(c.Slots, 1), max(c.Stores, 1)
	i := &Info{
		Terminals: plan.Terminals, Nodes: plan.Nodes, Sweeps: k.Sweeps, BytesSweep: int64(e.TrafficSweep), StoredSweep: int64(e.StoreSweep),
	}
	for _, list := range plan.Items {
		switch list.Kind {
		case method.Terminals:
			i.Blocks += list.Count
		case method.Ranges:
			i.Ranges += list.Count
		}
		i.TasksSweep += list.Count
		for _, v := range list.Cost {
			i.Visits += v
		}
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
	m := newModel(plan, e, k)
	one := m.sweep(1)
	i.CPUSeconds = one * float64(k.Sweeps)
	for _, n := range cores {
		i.Speedup = append(i.Speedup, m.on(n, c, one))
	}
	return i, nil
}

// model holds the seconds of a sweep's tasks, step by step, longest first.
type model struct {
	k     Costs
	steps [][]float64
	tasks int
	bytes float64
}

// newModel takes a sweep to be one step for each list of items. Half of a value's cost falls
// on the task that writes it, half on the one that reads it. Items of unknown cost are cut to
// equal work.
func newModel(plan *method.Plan, e method.Estimate, k Costs) *model {
	m := &model{k: k, bytes: float64(e.TrafficSweep)}
	for n, list := range plan.Items {
		if n > 0 && plan.Internals == 0 { // nothing is reduced
			break
		}
		share := float64(e.StoreSweep) * k.ByteNanos * 1e-9 / 2 / float64(max(list.Count, 1))
		seconds := slices.Repeat([]float64{share + k.TaskMicros*1e-6}, list.Count)
		for i, cost := range list.Cost {
			seconds[i] += cost * k.VisitNanos * 1e-9
		}
		slices.SortFunc(seconds, func(a, b float64) int { return cmp.Compare(b, a) })
		m.steps = append(m.steps, seconds)
		m.tasks += list.Count
	}
	return m
}

// sweep is the time of a sweep's tasks on n cores, each taking the longest that is left.
func (m *model) sweep(n int) (seconds float64) {
	for _, tasks := range m.steps {
		seconds += makespan(tasks, n)
	}
	return seconds
}

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
		{"the coordinator: too many small tasks", max(0, coordinatorTask*float64(m.tasks)-work)},
		{"waiting between steps", float64(len(m.steps)) * stepSeconds},
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
	total += lag + float64(len(m.steps))*stepSeconds
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
