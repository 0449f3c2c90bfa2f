// Package estimate estimates the cost of a training from its plan alone: tasks, bytes, memory, CPU
// time, and the speed-up on more cores. It has no side effects.
//
// The properties of the method come from its method.Estimate. Links and latencies of a cluster are
// assumed, and are reported with the numbers. Estimates are right within a factor of two or three.
// CPU times below some 20 s are upper bounds.
package estimate

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
)

// taskSeconds is the time that a task takes in addition to its work, in seconds. It includes the
// lease and the commit.
const taskSeconds = 300e-6

// These are assumptions about a cluster, which are not measured.
const (
	// linkBytes is the bandwidth of the link of each worker and each store, in bytes per second (10
	// Gbit/s).
	linkBytes = 1.25e9
	// stepSeconds is the time between the last commit of a step and the first task of the next.
	stepSeconds = 0.01
	// coordinatorTask is the coordinator's time per task, in seconds. There is one coordinator.
	coordinatorTask = 100e-6
)

// Cluster describes the cluster on which the training will run.
type Cluster struct {
	// Workers is the number of worker processes. Zero means as many as the cores need, with Slots
	// tasks each.
	Workers int
	// Slots is the number of tasks that a worker runs at a time.
	Slots int
	// Stores is the number of store shards.
	Stores int
	// Memory is the memory of a worker, in bytes. Zero means unknown.
	Memory int64
}

// Info is an estimate. Numbers of bytes are rather too large than too small.
type Info struct {
	Terminals  int     `json:"terminals"`
	Nodes      int     `json:"nodes"`
	Blocks     int     `json:"blocks,omitempty"`
	Ranges     int     `json:"ranges,omitempty"`
	Items      []Items `json:"items"`
	TasksSweep int     `json:"tasks_sweep"`
	// Visits is the number of multiplications per sweep, which is the number of nonzeros times the
	// number of classes.
	Visits float64 `json:"visits_sweep"`
	// Sweeps is the assumed number of sweeps until the training stops.
	Sweeps int `json:"sweeps"`
	// Until describes the stopping criterion.
	Until string `json:"until"`
	// BytesSweep is the number of bytes transferred between workers and store per sweep.
	BytesSweep int64 `json:"bytes_sweep"`
	// StoredSweep is the number of bytes written to the store per sweep.
	StoredSweep int64 `json:"stored_sweep"`
	// WorkerMemory is the largest memory of a worker, in bytes.
	WorkerMemory int64 `json:"worker_bytes"`
	// WorkerLeast is the smallest memory limit with which a worker can run the training, in bytes.
	WorkerLeast int64 `json:"worker_least_bytes"`
	// StoreMemory is the memory of each shard, in bytes.
	StoreMemory int64 `json:"store_bytes"`
	Fits        *bool `json:"fits,omitempty"`
	// CPUSeconds is the CPU time of the whole training.
	CPUSeconds float64   `json:"cpu_seconds"`
	Speedup    []Speedup `json:"speedup"`
}

// Items is the number of items of one kind in the plan.
type Items struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// Speedup is a point of the speed-up curve.
type Speedup struct {
	Cores   int `json:"cores"`
	Workers int `json:"workers"`
	// Seconds is the duration of the whole training.
	Seconds float64 `json:"seconds"`
	// Speedup is relative to one core without a cluster.
	Speedup float64 `json:"speedup"`
	// Bottleneck names the resource that limits the speed. It is empty if that is the cores.
	Bottleneck string `json:"bottleneck"`
}

// Of estimates a training on a cluster, and its speed-up for each number of cores.
func Of(j *registry.Job, c Cluster, cores []int) *Info {
	plan, e := j.Plan, j.Estimate
	c.Slots, c.Stores = max(c.Slots, 1), max(c.Stores, 1)
	i := &Info{
		Terminals: plan.Terminals, Nodes: plan.Nodes, Sweeps: e.Sweeps, Until: Until(j), BytesSweep: int64(e.TrafficSweep),
		StoredSweep: int64(e.StoreSweep),
	}
	for _, list := range plan.Items {
		switch list.Kind {
		case method.Terminals:
			i.Blocks += list.Count
		case method.Ranges:
			i.Ranges += list.Count
		}
		i.Items = append(i.Items, Items{list.Kind.String(), list.Count})
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
	i.WorkerMemory = int64(footprint.Worker(e, uint32(c.Slots), all))
	i.WorkerLeast = int64(footprint.Needs(e, uint32(c.Slots)))
	i.StoreMemory = int64(footprint.Store(e, uint32(c.Stores), all))
	if c.Memory > 0 {
		fits := i.WorkerLeast <= c.Memory
		i.Fits = &fits
	}
	m := newModel(plan, e)
	one := m.sweep(1)
	i.CPUSeconds = one * float64(e.Sweeps)
	for _, n := range cores {
		i.Speedup = append(i.Speedup, m.on(n, c, one))
	}
	return i
}

// Seconds estimates the duration of a training in one process, in seconds, within a factor of
// three.
func Seconds(j *registry.Job, threads int) float64 {
	return newModel(j.Plan, j.Estimate).sweep(threads) * float64(j.Estimate.Sweeps)
}

// Until describes where such a training stops.
func Until(j *registry.Job) string {
	if !registry.Has(j.Method.Name(), method.GapWanted.Name) {
		return "its default tolerance"
	}
	return "a gap of 1e-2 at C = 1"
}

// model holds the times of a sweep's tasks in seconds, for each step. The longest task of a step
// comes first.
type model struct {
	steps  [][]float64
	sweeps int
	tasks  int
	bytes  float64
}

// newModel returns the model of a plan, in which a sweep has one step per list of items. Items of
// unknown cost are assumed to be equal.
func newModel(plan *method.Plan, e method.Estimate) *model {
	m := &model{bytes: float64(e.TrafficSweep), sweeps: e.Sweeps}
	for n, work := range e.SecondsSweep {
		list, all := plan.Items[n], 0.0
		for _, cost := range list.Cost {
			all += cost
		}
		seconds := slices.Repeat([]float64{taskSeconds + work/float64(max(list.Count, 1))}, list.Count)
		for i, cost := range list.Cost {
			if all > 0 {
				seconds[i] = taskSeconds + work*cost/all
			}
		}
		slices.SortFunc(seconds, func(a, b float64) int { return cmp.Compare(b, a) })
		m.steps = append(m.steps, seconds)
		m.tasks += list.Count
	}
	return m
}

// sweep returns the time of a sweep on n cores, if each free core takes the longest remaining task.
func (m *model) sweep(n int) (seconds float64) {
	for _, tasks := range m.steps {
		seconds += makespan(tasks, n)
	}
	return seconds
}

// on estimates a training on n cores. The bottleneck is the largest cost other than the work of the
// cores. There is none if this cost is at most a tenth of a sweep.
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
	lag := 0.0 // links and coordinator work concurrently
	for p, part := range parts {
		if p >= 1 && p <= 3 {
			lag = max(lag, part.seconds)
		}
		if part.seconds > parts[worst].seconds {
			worst = p
		}
	}
	total += lag + float64(len(m.steps))*stepSeconds
	s := Speedup{Cores: n, Workers: workers, Seconds: total * float64(m.sweeps), Speedup: one / total, Bottleneck: "none"}
	if parts[worst].seconds > total/10 {
		s.Bottleneck = parts[worst].name
	}
	return s
}

// makespan returns the time at which the last of n cores is done, if each free core takes the next
// task.
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

// coresFree is a heap of the times at which the cores become free.
type coresFree []float64

func (f coresFree) Len() int           { return len(f) }
func (f coresFree) Less(a, b int) bool { return f[a] < f[b] }
func (f coresFree) Swap(a, b int)      { f[a], f[b] = f[b], f[a] }

// Push completes heap.Interface. The number of cores does not change.
func (f *coresFree) Push(x any) { *f = append(*f, x.(float64)) }

// Pop completes heap.Interface.
func (f *coresFree) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}
