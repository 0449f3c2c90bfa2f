package train

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

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
