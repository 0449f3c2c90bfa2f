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
	// mostStolen is the part of the cores' time up to which a run counts: what a hypervisor
	// gives to other guests is no cost of either side, and hits one of them.
	mostStolen = 0.02
	// mostTries is how often a run is taken before a disturbed one has to do.
	mostTries = 5
)

// hostTimes are seconds of all cores since the machine came up.
type hostTimes struct{ idle, stolen float64 }

// readHost reads the first line of /proc/stat: user, nice, system, idle, iowait, irq,
// softirq, steal. Where it can't, nothing counts as idle or stolen.
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

// stopwatch measures from when it was made.
type stopwatch struct {
	began time.Time
	host  hostTimes
}

func watch() stopwatch { return stopwatch{time.Now(), readHost()} }

// cost is what a command took that has ended, with its CPU seconds.
func (w stopwatch) cost(cpu float64) cost {
	host := readHost()
	return cost{wall: time.Since(w.began).Seconds(), byRole: map[string]float64{"command": cpu},
		host: hostTimes{host.idle - w.host.idle, host.stolen - w.host.stolen}}
}

// undisturbed measures a side, and again while the hypervisor took too much. Each run is
// shown.
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
