package train

import (
	"os"
	"runtime/debug"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/exit"
	"taxon/internal/human"
)

// estimate is what the training takes, and the bytes of it in this process; the zero value if
// it can't be trained: the submission says why.
func (t *Training) estimate() (method.Estimate, int64) {
	p, err := registry.Prepare(t.Spec)
	if err != nil {
		return method.Estimate{}, 0
	}
	return p.Estimate, int64(p.Estimate.Alone(uint32(t.o.slots())).Total)
}

// Fits refuses a training that would not fit the memory, with the numbers.
func (t *Training) Fits() error {
	_, need := t.estimate()
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
	e, need := t.estimate()
	if !e.Dense || need < method.DenseFrom || os.Getenv("GOGC") != "" {
		return func() {}
	}
	if t.o.Memory > 0 {
		need = t.o.Memory
	}
	percent, limit := debug.SetGCPercent(method.DensePercent), debug.SetMemoryLimit(need)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
