package train

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/fs/vfs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// estimate returns the memory estimate of the training. It is zero if the problem cannot be
// trained. Submitting the problem then returns the reason.
func (t *Training) estimate() (e method.Estimate) {
	if p, err := registry.Prepare(t.Spec); err == nil {
		e = p.Estimate
	}
	return e
}

// Needs returns the estimated memory, in bytes, of a number of such trainings side by side.
func (t *Training) Needs(trainings int) int64 {
	return t.needs(t.estimate(), trainings, footprint.Cached)
}

// needs returns what Needs returns, for a given memory mode.
func (t *Training) needs(e method.Estimate, trainings int, mode footprint.Mode) int64 {
	return int64(footprint.Alone(e, uint32(t.o.slots()), uint32(trainings), mode).Total)
}

// Fit returns how many trainings like this one fit into the memory side by side, at most `most`. A
// training that writes a model uses the least restrictive memory mode that fits. If not even one
// training fits, Fit returns an error with the numbers.
func (t *Training) Fit(most int) (int, error) {
	limit, source := t.o.Memory, "‹memory›"
	if limit == 0 {
		limit, source = availableMemory(), "this machine's free memory"
	}
	e, least := t.estimate(), footprint.Cached
	if t.work != nil {
		least = footprint.Spill
	}
	for t.mode = footprint.Cached; t.mode <= least; t.mode++ {
		for n := most; n > 0; n-- {
			if limit <= 0 || t.needs(e, n, t.mode) <= limit {
				return n, nil
			}
		}
	}
	less := e.Less
	if less != "" {
		less += ", "
	}
	if t.o.slots() > 1 {
		less += "fewer ‹threads›, "
	}
	return 0, option.Errorf("train: about %s would be needed, %s is %s: use %sa machine with more memory, or raise "+
		"‹memory› if you know better",
		format.Bytes(t.needs(e, 1, least)), source, format.Bytes(limit), less)
}

// noteMode tells the user how the training saves memory.
func (t *Training) noteMode() {
	would := format.Bytes(t.Needs(1))
	switch t.mode {
	case footprint.Compact:
		t.ui.Note("memory is short (about %s would be taken): values are decoded at each use, the weights are the same",
			would)
	case footprint.Spill:
		t.ui.Note("memory is short (about %s would be taken): values lie in files in %s, the weights are the same", would,
			t.work.Path)
	}
}

// CollectOften adjusts the garbage collector for trainings that save memory or have large dense
// vectors, and returns a function that restores it. With Options.Memory the heap is limited to it,
// less the mapped data, so that an underestimate costs collections instead of memory. Otherwise
// freed pages are returned early enough to stay within the estimate. The user's GOGC takes
// precedence.
func (t *Training) CollectOften(trainings int) func() {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	e := t.estimate()
	limit, percent := int64(math.MaxInt64), footprint.Garbage(e, t.mode)
	if need := t.needs(e, trainings, t.mode); percent == 0 || need < footprint.DenseFrom {
		percent = 100
	} else {
		limit = need
	}
	if t.o.Memory > 0 {
		limit = footprint.HeapLimit(t.o.Memory - int64(trainings)*int64(e.Data))
	}
	limit = debug.SetMemoryLimit(limit)
	percent = debug.SetGCPercent(percent)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// usage measures the CPU time of a training over all processes that it ran in. Its methods may be
// called concurrently.
type usage struct {
	// before is the CPU time of earlier processes, in seconds.
	before float64
	// began is the CPU time of this process when the training began.
	began float64
	// cpuSeconds is the final value. stop sets it.
	cpuSeconds float64

	mu sync.Mutex
	// paused is CPU time that does not count.
	paused float64
	// since is the CPU time when the current pause began. It is zero if there is none.
	since float64
}

// start starts the measurement.
func (u *usage) start() { u.began = cpuSeconds() }

// stop ends the measurement.
func (u *usage) stop() { u.cpuSeconds = u.spent() }

// pause suspends counting until the returned function is called.
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

// spent returns the CPU time counted so far.
func (u *usage) spent() float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := cpuSeconds()
	if u.since > 0 {
		now = u.since
	}
	return u.before + now - u.began - u.paused
}

// cpuSeconds returns the CPU time of this process so far, user and system, in seconds.
func cpuSeconds() float64 {
	r := rusage()
	return float64(r.Utime.Sec+r.Stime.Sec) + float64(r.Utime.Usec+r.Stime.Usec)/1e6
}

// PeakRSS returns the peak resident memory of this process, in bytes. On Linux it is read from
// /proc, because rusage may report the peak of the parent process.
func PeakRSS() int64 {
	if bytes := procBytes("/proc/self/status", "VmHWM:"); bytes > 0 {
		return bytes
	}
	return int64(rusage().Maxrss) << 10
}

// rusage returns the system's resource usage of this process. It is zero if unavailable.
func rusage() (r unix.Rusage) {
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return unix.Rusage{}
	}
	return r
}

// availableMemory returns the bytes that can be used without swapping. It is 0 if unknown.
func availableMemory() int64 { return procBytes("/proc/meminfo", "MemAvailable:") }

// procBytes returns the value of a field of a file in /proc, converted from kB to bytes. It is 0 on
// systems without /proc.
func procBytes(file, name string) (bytes int64) {
	data, _ := vfs.ReadFile(vfs.OS, file)
	_, rest, _ := strings.Cut(string(data), name)
	_, _ = fmt.Sscan(rest, &bytes)
	return bytes << 10
}
