package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	// mostStolen is the largest share of the cores' time that a hypervisor may give to other guests
	// during a run that counts. That time is not a cost of either side, and affects only one of
	// them.
	mostStolen = 0.02

	// mostTries is the number of tries after which a disturbed run counts.
	mostTries = 5
)

// hostTimes holds the seconds of all cores since the machine was started.
type hostTimes struct{ idle, stolen float64 }

// readHost reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq,
// steal. If it cannot, it returns zeros.
func readHost() (t hostTimes) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var seconds [8]float64
	fields := strings.Fields(line)
	for i := range min(len(seconds), len(fields)-1) {
		n, _ := strconv.ParseUint(fields[i+1], 10, 64)
		seconds[i] = float64(n) / ticksPerSecond
	}
	return hostTimes{idle: seconds[3] + seconds[4], stolen: seconds[7]}
}

// stopwatch measures the time since it was created.
type stopwatch struct {
	began time.Time
	host  hostTimes
}

func watch() stopwatch { return stopwatch{time.Now(), readHost()} }

// cost returns the cost of a command that has ended, given its CPU seconds.
func (w stopwatch) cost(cpu float64) cost {
	host := readHost()
	return cost{wall: time.Since(w.began).Seconds(), byRole: map[string]float64{"command": cpu},
		host: hostTimes{host.idle - w.host.idle, host.stolen - w.host.stolen}}
}

// undisturbed measures a side, and repeats this while the hypervisor takes too much. It prints each
// run.
func (s *side) undisturbed(ctx context.Context) (c cost, err error) {
	for range mostTries {
		if c, err = s.measure(ctx); err != nil {
			return c, fmt.Errorf("%s: %w", s.name, err)
		}
		if c.host.stolen <= mostStolen*c.wall*float64(runtime.NumCPU()) {
			fmt.Println(c.row(s.name))
			return c, nil
		}
		fmt.Println(c.row(s.name + ", disturbed"))
	}
	return c, nil
}
