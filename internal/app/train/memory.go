package train

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/fs/vfs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// estimate returns what the training will take; zero if it can't be trained (submitting it says why).
func (t *Training) estimate() (e method.Estimate) {
	if p, err := registry.Prepare(t.Spec); err == nil {
		e = p.Estimate
	}
	return e
}

// Needs estimates the memory in bytes of so many trainings like this one, side by side.
func (t *Training) Needs(trainings int) int64 { return t.needs(t.estimate(), trainings, method.Roomy) }

func (t *Training) needs(e method.Estimate, trainings int, thrift method.Thrift) int64 {
	return int64(e.Alone(uint32(t.o.slots()), uint32(trainings), thrift).Total)
}

// Fit returns how many trainings like this one fit into the memory side by side, at most so many. One
// that writes a model is as thrifty as it must be. If not even one fits, it returns an error with
// the numbers.
func (t *Training) Fit(most int) (int, error) {
	limit, source := t.o.Memory, "‹memory›"
	if limit == 0 {
		limit, source = availableMemory(), "this machine's free memory"
	}
	e, least := t.estimate(), method.Roomy
	if t.work != nil {
		least = method.OnDisk
	}
	for t.thrift = method.Roomy; t.thrift <= least; t.thrift++ {
		for n := most; n > 0; n-- {
			if limit <= 0 || t.needs(e, n, t.thrift) <= limit {
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

// tellThrift says what a thrifty training does to stay within its memory.
func (t *Training) tellThrift() {
	would := format.Bytes(t.Needs(1))
	switch t.thrift {
	case method.Frugal:
		t.ui.Note("memory is short (about %s would be taken): values are decoded anew each time, the weights are the same",
			would)
	case method.OnDisk:
		t.ui.Note("memory is short (about %s would be taken): values lie in files in %s, the weights are the same", would,
			t.work.Path)
	}
}

// CollectOften keeps garbage small while trainings run that are thrifty or have large dense vectors.
// With --memory the heap stays below it, beside the mapped data: what the plan has foreseen too
// low costs collections then, not memory. Otherwise freed pages are returned in time to stay within the
// plan's estimate. A setting of the user's (GOGC) takes precedence. Call what it returns at the end.
func (t *Training) CollectOften(trainings int) func() {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	e := t.estimate()
	limit, percent := int64(math.MaxInt64), e.Garbage(t.thrift)
	if need := t.needs(e, trainings, t.thrift); percent == 0 || need < method.DenseFrom {
		percent = 100
	} else {
		limit = need
	}
	if t.o.Memory > 0 {
		limit = method.HeapLimit(t.o.Memory - int64(trainings)*int64(e.Data))
	}
	limit = debug.SetMemoryLimit(limit)
	percent = debug.SetGCPercent(percent)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// usage measures the CPU time of the training itself, over all processes that it took. Several
// goroutines may call its methods.
type usage struct {
	before     float64 // of earlier processes
	began      float64
	cpuSeconds float64 // final value, once it was stopped

	mu sync.Mutex
	// paused is CPU time that does not count.
	paused float64
	// since is the CPU time when the present pause began. It is zero if there is no pause.
	since float64
}

func (u *usage) start() { u.began = cpuSeconds() }
func (u *usage) stop()  { u.cpuSeconds = u.spent() }

// pause stops counting CPU time until the returned function is called.
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

// cpuSeconds of this process so far, user and system.
func cpuSeconds() float64 {
	r := rusage()
	return float64(r.Utime.Sec+r.Stime.Sec) + float64(r.Utime.Usec+r.Stime.Usec)/1e6
}

// PeakRSS returns the most memory that this process has used so far. What rusage says may be the peak of the
// process that started it.
func PeakRSS() int64 {
	if bytes := procBytes("/proc/self/status", "VmHWM:"); bytes > 0 {
		return bytes
	}
	return int64(rusage().Maxrss) << 10
}

// rusage returns the system's account of this process. It is zero if there is none.
func rusage() (r unix.Rusage) {
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return unix.Rusage{}
	}
	return r
}

// availableMemory returns how many bytes can be used without swapping. It is 0 if that is unknown.
func availableMemory() int64 { return procBytes("/proc/meminfo", "MemAvailable:") }

// procBytes returns a number of kB in a file of /proc, in bytes. It is 0 on systems without /proc.
func procBytes(file, name string) (bytes int64) {
	data, _ := vfs.ReadFile(vfs.OS, file)
	_, rest, _ := strings.Cut(string(data), name)
	_, _ = fmt.Sscan(rest, &bytes)
	return bytes << 10
}
