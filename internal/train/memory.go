package train

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

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
	less := e.Less
	if less != "" {
		less += ", "
	}
	return 0, exit.Usagef("train: about %s would be needed, %s is %s: use %sfewer --threads, a machine with more memory, or raise --memory if you know better",
		human.Bytes(t.needs(e, 1)), source, human.Bytes(limit), less)
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

// usage measures the CPU time of the training proper, over all processes that it took. Its
// methods may be called at once by several.
type usage struct {
	before     float64 // of the processes before this one
	began      float64
	cpuSeconds float64 // when it was stopped

	mu     sync.Mutex
	paused float64 // CPU time that does not count
	since  float64 // of a pause under way; 0: there is none
}

func (u *usage) start() { u.began = cpuSeconds() }
func (u *usage) stop()  { u.cpuSeconds = u.spent() }

// pause has CPU time not count until the function that it returns is called.
func (u *usage) pause() (resume func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.since = cpuSeconds()
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.paused, u.since = u.paused+cpuSeconds()-u.since, 0
	}
}

// spent is the CPU time so far.
func (u *usage) spent() float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := cpuSeconds()
	if u.since > 0 {
		now = u.since
	}
	return u.before + now - u.began - u.paused
}

// cpuSeconds of this process so far, user and system.
func cpuSeconds() float64 {
	r := rusage()
	return float64(r.Utime.Sec+r.Stime.Sec) + float64(r.Utime.Usec+r.Stime.Usec)/1e6
}

// PeakRSS is the most memory that this process has held so far.
func PeakRSS() int64 { return int64(rusage().Maxrss) << 10 }

// rusage is what this process has used; zero: the system does not say.
func rusage() (r unix.Rusage) {
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return unix.Rusage{}
	}
	return r
}

// availableMemory is what the system says can be taken without swapping; 0: unknown.
func availableMemory() (bytes int64) {
	data, _ := os.ReadFile("/proc/meminfo") // where there is none
	_, rest, _ := strings.Cut(string(data), "MemAvailable:")
	_, _ = fmt.Sscan(rest, &bytes)
	return bytes << 10
}
