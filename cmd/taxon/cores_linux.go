package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cores keeps this process to cores that no other worker of the host keeps to. The scheduler
// of Linux looks every few milliseconds whether it could move a thread from a core that has
// two to one that has none, and passes over those that have just run; where workers fill a
// host, their computing threads are pushed together by everything that wakes for a moment,
// and take turns on one core beside an idle one.
type cores struct {
	taken []int // file descriptors that hold the names of cores
	was   unix.CPUSet
}

// hostPIDs is the first namespace of processes: Linux's PROC_PID_INIT_INO.
const hostPIDs = "pid:[4026531836]"

// seesHost tells whether this process sees all workers of the host: it is in no container,
// in which others would take the same cores unseen.
func seesHost() bool {
	ns, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && ns == hostPIDs
}

// takeCores takes as many cores as a worker has slots. nil: there are not as many free, the
// worker needs all that there are, or someone else decides on which cores it may run.
func takeCores(slots int) *cores {
	c := &cores{}
	if unix.SchedGetaffinity(0, &c.was) != nil || c.was.Count() != online() || slots >= c.was.Count() {
		return nil
	}
	var set unix.CPUSet
	for core := 0; len(c.taken) < slots && core < len(set)*64; core++ {
		if c.was.IsSet(core) && c.take(core) {
			set.Set(core)
		}
	}
	if len(c.taken) < slots || keepTo(&set) != nil {
		c.release()
		return nil
	}
	return c
}

// take marks a core as taken until this process ends, however it ends: by a socket's
// abstract name, which nobody listens on.
func (c *cores) take(core int) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	if unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("@taxon-core-%d", core)}) != nil {
		_ = unix.Close(fd)
		return false
	}
	c.taken = append(c.taken, fd)
	return true
}

// release gives the cores back.
func (c *cores) release() {
	if c == nil {
		return
	}
	_ = keepTo(&c.was)
	for _, fd := range c.taken {
		_ = unix.Close(fd)
	}
	c.taken = nil
}

// keepTo lets all threads run on these cores only, and so those that they start.
func keepTo(set *unix.CPUSet) error {
	for range 2 { // one that is not kept yet may start another meanwhile
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(id, set); err != nil && err != unix.ESRCH { // ESRCH: it has ended
				return err
			}
		}
	}
	return nil
}

// online is the number of the machine's cores, 0 if it is not known.
func online() (n int) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return 0
	}
	for part := range strings.SplitSeq(strings.TrimSpace(string(text)), ",") {
		first, last, span := strings.Cut(part, "-")
		if !span {
			last = first
		}
		lo, err := strconv.Atoi(first)
		if err != nil {
			return 0
		}
		hi, err := strconv.Atoi(last)
		if err != nil {
			return 0
		}
		n += hi - lo + 1
	}
	return n
}
