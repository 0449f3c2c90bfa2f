package main

import (
	"fmt"
	"slices"
	"strings"
)

// outcome is a training on so many cores, in seconds.
type outcome struct {
	total   float64
	share   float64 // the work, shared out evenly: what no schedule beats
	longest float64 // what the longest task of each step adds to that
	uneven  float64 // what handing tasks out one by one adds to both
	between float64 // time between steps
}

// costs are what a cluster adds to computing.
type costs struct {
	task, between float64 // seconds a task, and between two steps
	link          float64 // bytes a second of each worker's link and of the only store's, either way; 0: no bound
}

// play runs the steps on cores.
func play(steps [][]taken, cores int, c costs) (o outcome) {
	for _, tasks := range steps {
		sum, longest := 0.0, 0.0
		free := make([]float64, cores)
		var read, written uint64
		for _, t := range tasks {
			d := t.seconds + c.task
			if c.link > 0 {
				d += float64(t.read+t.written) / c.link
			}
			read, written = read+t.read, written+t.written
			sum, longest = sum+d, max(longest, d)
			first := slices.Index(free, slices.Min(free))
			free[first] += d
		}
		even, took := sum/float64(cores), slices.Max(free)
		if c.link > 0 {
			took = max(took, float64(max(read, written))/c.link) // the store's
		}
		bound := max(even, longest)
		o.share += even
		o.longest += bound - even
		o.uneven += took - bound
		o.between += c.between
		o.total += took + c.between
	}
	return o
}

// limit names what costs the most beside the work.
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

// report is a table of the cores' outcomes.
func report(steps [][]taken, c costs, cores []int) string {
	var b strings.Builder
	tasks, seconds, written := 0, 0.0, uint64(0)
	for _, s := range steps {
		tasks += len(s)
		for _, t := range s {
			seconds, written = seconds+t.seconds, written+t.written
		}
	}
	fmt.Fprintf(&b, "%d steps, %d tasks, %.1f s of computing, %.0f MB written; a task costs %.1f ms beside computing, a step %.1f ms.\n\n",
		len(steps), tasks, seconds, float64(written)/1e6, 1e3*c.task, 1e3*c.between)
	b.WriteString("| cores | seconds | speed-up | work | longest tasks | few tasks | between steps | limit |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	one := play(steps, 1, c).total
	for _, n := range cores {
		o := play(steps, n, c)
		fmt.Fprintf(&b, "| %d | %.2f | %.1f | %.2f | %.2f | %.2f | %.2f | %s |\n", n, o.total, one/o.total, o.share, o.longest, o.uneven, o.between, o.limit())
	}
	return b.String()
}
