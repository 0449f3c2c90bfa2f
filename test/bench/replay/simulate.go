package main

import (
	"fmt"
	"slices"
	"strings"
)

// outcome is the result of a training on a number of cores. Times are in seconds.
type outcome struct {
	total   float64
	share   float64 // the work divided evenly, which no schedule can beat
	longest float64 // additional time due to the longest task of each step
	uneven  float64 // additional time due to assigning tasks one by one
	between float64 // time between steps

	read, written uint64 // bytes read from and written to the store
}

// costs are the costs that a cluster adds to computing.
type costs struct {
	task, between float64 // seconds per task, and between two steps

	// link is the speed of each worker's link and of the only store's, in bytes per second and
	// either direction. At 0 it is unlimited.
	link float64
}

// play simulates the steps on cores. A worker reads a task's values before it begins. It works on
// the next task while its results are written, but no further ahead. The store's link carries one
// transfer at a time, in either direction.
func play(steps []step, cores int, c costs) (o outcome) {
	writer := map[int]int{} // value -> the core that has written it
	last := map[item]int{}  // item -> the core that had it last, from 1
	for _, s := range steps {
		sum, longest := 0.0, 0.0
		free := make([]float64, cores)
		begun := make([]bool, cores)        // cores that have the step's shared values
		delivered := make([]float64, cores) // time at which a core's last values were written
		sending, receiving := 0.0, 0.0      // times until which the store's link is busy
		ends := 0.0
		move := func(busy *float64, from float64, bytes uint64) float64 {
			if c.link == 0 || bytes == 0 {
				return from
			}
			*busy = max(*busy, from) + float64(bytes)/c.link
			return *busy
		}
		done := make([]bool, len(s.tasks))
		for range s.tasks {
			core := slices.Index(free, slices.Min(free))
			n := next(s.tasks, done, last, core+1)
			done[n] = true
			t := &s.tasks[n]
			last[t.item] = core + 1
			need := t.read
			if !begun[core] {
				need = slices.Concat(need, s.shared)
				begun[core] = true
			}
			var read, written uint64
			for _, v := range need {
				if at, ok := writer[v.number]; !ok || at != core || !v.kept {
					read += v.bytes
				}
			}
			for _, v := range t.written {
				writer[v.number] = core
				written += v.bytes
			}
			d := t.seconds + c.task
			free[core] = max(move(&sending, free[core], read)+d, delivered[core])
			delivered[core] = move(&receiving, free[core], written)
			ends = max(ends, free[core], delivered[core])
			sum, longest = sum+d, max(longest, d)
			o.read, o.written = o.read+read, o.written+written
		}
		even, took := sum/float64(cores), ends
		bound := max(even, longest)
		o.share += even
		o.longest += bound - even
		o.uneven += took - bound
		o.between += c.between
		o.total += took + c.between
	}
	return o
}

// next returns the first remaining task whose item the core had last, else one whose item no core
// had, else any.
func next(tasks []taken, done []bool, last map[item]int, core int) int {
	best, rank := -1, 0
	for n := range tasks {
		if done[n] {
			continue
		}
		r := 1
		switch last[tasks[n].item] {
		case core:
			return n
		case 0:
			r = 2
		}
		if r > rank {
			best, rank = n, r
		}
	}
	return best
}

// limit names the largest cost besides the work.
func (o outcome) limit() string {
	switch m := max(o.longest, o.uneven, o.between); {
	case m <= 0:
		return "none"
	case m == o.longest:
		return "longest task of a step"
	case m == o.uneven:
		return "few tasks for each core"
	default:
		return "time between steps"
	}
}

// report formats a table of the outcomes by cores.
func report(steps []step, c costs, cores []int) string {
	var b strings.Builder
	tasks, seconds := 0, 0.0
	for _, s := range steps {
		tasks += len(s.tasks)
		for _, t := range s.tasks {
			seconds += t.seconds
		}
	}
	two := play(steps, 2, c)
	fmt.Fprintf(&b, "%d steps, %d tasks, %.1f s of computing, %.0f MB written, of which two workers read %.0f MB; a "+
		"task costs %.1f ms beside computing, a step %.1f ms.\n\n",
		len(steps), tasks, seconds, float64(two.written)/1e6, float64(two.read)/1e6, 1e3*c.task, 1e3*c.between)
	b.WriteString("| cores | seconds | speed-up | work | longest tasks | few tasks | between steps | limit |\n| --- | " +
		"--- | --- | --- | --- | --- | --- | --- |\n")
	one := play(steps, 1, c).total
	for _, n := range cores {
		o := play(steps, n, c)
		fmt.Fprintf(&b, "| %d | %.2f | %.1f | %.2f | %.2f | %.2f | %.2f | %s |\n", n, o.total, one/o.total, o.share,
			o.longest, o.uneven, o.between, o.limit())
	}
	return b.String()
}
