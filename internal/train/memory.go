package train

import (
	"os"
	"runtime/debug"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/exit"
	"taxon/internal/human"
)

// estimate is what the training takes; the zero value if it can't be trained: the submission
// says why.
func (t *Training) estimate() (e method.Estimate) {
	if p, err := registry.Prepare(t.Spec); err == nil {
		e = p.Estimate
	}
	return e
}

// Needs estimates the memory of so many trainings like this one side by side, in bytes.
func (t *Training) Needs(trainings int) int64 { return t.needs(t.estimate(), trainings) }

func (t *Training) needs(e method.Estimate, trainings int) int64 {
	return int64(e.Alone(uint32(t.o.slots()), uint32(trainings)).Total)
}

// Fit is how many trainings like this one, at most so many, fit the memory side by side. It
// refuses one that does not, with the numbers.
func (t *Training) Fit(most int) (int, error) {
	limit, source := t.o.Memory, "--memory"
	if limit == 0 {
		limit, source = availableMemory(), "this machine's free memory"
	}
	e := t.estimate()
	for n := most; n > 0; n-- {
		if limit <= 0 || t.needs(e, n) <= limit {
			return n, nil
		}
	}
	return 0, exit.Usagef("train: about %s would be needed, %s is %s: use fewer --threads, a machine with more memory, or raise --memory if you know better",
		human.Bytes(t.needs(e, 1)), source, human.Bytes(limit))
}

// CollectOften keeps garbage low while so many trainings with large dense vectors run side by
// side, and gives freed pages back in time to stay within --memory, or what the plan says,
// unless the user has said how much may gather. What it returns ends that.
func (t *Training) CollectOften(trainings int) func() {
	e := t.estimate()
	need := t.needs(e, trainings)
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
