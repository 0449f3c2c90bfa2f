package train

import (
	"os"
	"runtime/debug"

	"taxon/coordinator/method/registry"
	"taxon/internal/exit"
	"taxon/internal/human"
	"taxon/internal/planinfo"
)

// denseInternal is what an entry of an internal node's dense vector takes on a graph, all
// copies and versions counted, as measured.
const denseInternal = 100

// densePercent is how much garbage may gather beside the live memory of a training whose
// vectors are dense, in percent. They are large values without pointers, which the collector
// does not look into: to collect often costs nothing there, and Go's 100 percent would
// double gigabytes.
const densePercent = 20

// overDense is what the process takes beyond its live memory then, in percent: garbage, and
// pages that the runtime gives back late (wordnet-freq: 4.5 GB live, 5.7 resident).
const overDense = 30

// denseFrom is the memory from which that matters; below it as much garbage is let be as is live.
const denseFrom = 512 << 20

// processBytes is what the program takes by itself.
const processBytes = 32 << 20

// smoothBytes is what a training with a smooth loss takes, by its plan.
func (t *Training) smoothBytes() int64 {
	p, err := registry.Prepare(t.Spec)
	if err != nil {
		return 0 // the submission says why
	}
	e := p.Estimate
	live := int64(e.Worker(uint32(t.o.slots())) + e.StoreLocal + e.Coordinator)
	if need := processBytes + 2*live; need < denseFrom {
		return need
	}
	return max(processBytes+live+live*overDense/100, denseFrom)
}

// smooth says whether the training's vectors are dense.
func (t *Training) smooth() bool { return t.o.Job.Loss == "logistic" || t.o.Job.Loss == "softmax" }

// needs estimates the memory of a training.
func (t *Training) needs() int64 {
	if t.smooth() {
		return t.smoothBytes()
	}
	need := planinfo.EstimateMemory(t.Spec.GetData(), t.Tree, t.o.Job.Loss, t.o.slots()).Total
	if t.Tree.IsGraph() {
		need += int64(t.Set.Matrix.Cols+1) * denseInternal * int64(len(t.Tree.Internals()))
	}
	return need
}

// Fits refuses a training that would not fit the memory, with the numbers.
func (t *Training) Fits() error {
	need := t.needs()
	limit, source := t.o.Memory, "--memory"
	if limit == 0 {
		limit, source = availableMemory(), "this machine's free memory"
	}
	if limit > 0 && need > limit {
		return exit.Usagef("train: about %s would be needed, %s is %s: use fewer --threads, a machine with more memory, or raise --memory if you know better",
			human.Bytes(need), source, human.Bytes(limit))
	}
	return nil
}

// CollectOften keeps garbage low while a training with large dense vectors runs, and gives
// freed pages back in time to stay within --memory, or what the plan says, unless the user
// has said how much may gather. What it returns ends that.
func (t *Training) CollectOften() func() {
	if !t.smooth() && !t.Tree.IsGraph() || os.Getenv("GOGC") != "" {
		return func() {}
	}
	need := t.needs()
	if need < denseFrom {
		return func() {}
	}
	if t.o.Memory > 0 {
		need = t.o.Memory
	}
	percent, limit := debug.SetGCPercent(densePercent), debug.SetMemoryLimit(need)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
