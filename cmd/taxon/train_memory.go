package main

import (
	"os"
	"runtime/debug"

	"taxon/coordinator/method/registry"
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
func (t *training) smoothBytes() int64 {
	p, err := registry.Prepare(t.spec)
	if err != nil {
		return 0 // the submission says why
	}
	e := p.Estimate
	live := int64(e.Worker(uint32(workers(t.o.threads))) + e.StoreLocal + e.Coordinator)
	if need := processBytes + 2*live; need < denseFrom {
		return need
	}
	return max(processBytes+live+live*overDense/100, denseFrom)
}

// smooth says whether the training's vectors are dense.
func (t *training) smooth() bool { return t.o.loss == "logistic" || t.o.loss == "softmax" }

// needs estimates the memory of a training.
func (t *training) needs() int64 {
	if t.smooth() {
		return t.smoothBytes()
	}
	counts := make([]int64, len(t.set.Labels))
	for l := range counts {
		counts[l] = int64(t.set.PosBegin[l+1] - t.set.PosBegin[l])
	}
	features, nonzeros := int64(t.set.Matrix.Cols), t.set.Matrix.NNZ
	d := &dataInfo{Instances: int64(t.set.Matrix.Rows), Features: &features, Nonzeros: &nonzeros, LabelEntries: int64(len(t.set.LabelIndex))}
	need := estimateMemory(d, t.tree, counts, workers(t.o.threads)).Total
	if t.o.loss != "hinge" {
		need -= garbage * int64(workers(t.o.threads)) * denseBytes(d)
	}
	if t.tree.IsGraph() {
		need += int64(t.set.Matrix.Cols+1) * denseInternal * int64(len(t.tree.Internals()))
	}
	return need
}

// fits refuses a training that would not fit the memory, with the numbers.
func (t *training) fits() error {
	need := t.needs()
	limit, source := t.o.memory, "--memory"
	if limit == 0 {
		limit, source = availableMemory(), "this machine's free memory"
	}
	if limit > 0 && need > limit {
		return usagef("train: about %s would be needed, %s is %s: use fewer --threads, a machine with more memory, or raise --memory if you know better",
			formatBytes(need), source, formatBytes(limit))
	}
	return nil
}

// collectOften keeps garbage low while a training with large dense vectors runs, and gives
// freed pages back in time to stay within --memory, or what the plan says, unless the user
// has said how much may gather. What it returns ends that.
func (t *training) collectOften() func() {
	if !t.smooth() && !t.tree.IsGraph() || os.Getenv("GOGC") != "" {
		return func() {}
	}
	need := t.needs()
	if need < denseFrom {
		return func() {}
	}
	if t.o.memory > 0 {
		need = t.o.memory
	}
	percent, limit := debug.SetGCPercent(densePercent), debug.SetMemoryLimit(need)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
