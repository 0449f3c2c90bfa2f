package train

import (
	"bufio"
	"os"
	"strconv"
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
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return float64(r.Utime.Sec+r.Stime.Sec) + float64(r.Utime.Usec+r.Stime.Usec)/1e6
}

// PeakRSS is the most memory that this process has held so far.
func PeakRSS() int64 {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return int64(r.Maxrss) << 10
}

// availableMemory is what the system says can be taken without swapping; 0: unknown.
func availableMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "MemAvailable:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
