package machine

import (
	"fmt"
	"math"
	"testing"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// The estimate of the remaining time begins at that of a gap that falls by a constant factor, uses the
// caps, and is never a NaN. There is none while the job waits.
func TestETA(t *testing.T) {
	newTestJob := func(gap float64, maxSweeps uint32, maxSeconds float64, gaps ...float64) *job {
		run := runOptions{Gap: gap, MaxSweeps: maxSweeps, MaxSeconds: maxSeconds}
		j := &job{prepared: &prepared{spec: &taxonv1.JobSpec{}, run: run, plan: &method.Plan{}}}
		j.Last = &method.Progress{Tolerance: gap, MaxSweeps: maxSweeps}
		j.State = taxonv1.JobState_JOB_STATE_RUNNING
		for i, g := range gaps {
			j.Trace = append(j.Trace, traceRecord{Sweep: uint32(i + 1), Seconds: float64(10 * (i + 1)),
				Certificate: &method.Certificate{Gap: g}})
			j.Committed = uint32(i + 1)
		}
		return j
	}
	primalOnly := func(j *job, left ...float64) *job {
		for i, r := range j.Trace {
			r.Certificate.PrimalOnly, r.Certificate.Left = true, left[i]
		}
		return j
	}
	digest := func(j *job) *job {
		j.stage, j.pausedAt = stageDigest, Tick(10*len(j.Trace)+4)*second
		return j
	}
	for _, test := range []struct {
		name      string
		job       *job
		late      float64 // seconds after the last certificate
		low, high float64
	}{
		{"no certificate", newTestJob(1e-3, 0, 0), 0, 0, 0},
		{"two certificates", newTestJob(1e-3, 0, 0, 0.5, 0.1), 0, 0, 0},
		{"a decade in ten seconds", newTestJob(1e-4, 0, 0, 1, 0.1, 0.01), 0, 20, 80},
		{"and five seconds later", newTestJob(1e-4, 0, 0, 1, 0.1, 0.01), 5, 15, 75},
		{"and much later", newTestJob(1e-4, 0, 0, 1, 0.1, 0.01), 300, 110. / 8, 55},
		{"rising", newTestJob(1e-4, 0, 0, 0.1, 0.2, 0.3), 0, 0, 0},
		{"level", newTestJob(1e-4, 0, 0, 0.1, 0.1, 0.1), 0, 0, 0},
		{"a gap of zero", newTestJob(1e-4, 0, 0, 0.1, 0, 0), 0, 0, 0},
		{"max_seconds", newTestJob(1e-9, 0, 35, 1, 0.1, 0.01), 0, 15, 15},
		{"max_sweeps", newTestJob(1e-9, 4, 0, 1, 0.1, 0.01), 0, 20, 20},
		{"the weights are written", newTestJob(0.5, 0, 0, 1, 0.1, 0.01), 0, 2.5, 10},
		{"the weights are read", digest(newTestJob(0.5, 0, 0, 1, 0.1, 0.01)), 4, 1, 8},
		{"a gap that means nothing", primalOnly(newTestJob(1e-4, 0, 0, 1, 0.1, 0.01), 0, 0, 0), 0, 0, 0},
		{"what is left", primalOnly(newTestJob(1e-4, 0, 0, 7, 7, 7), 1, 0.1, 0.01), 0, 20, 80},
		{"nothing is left", primalOnly(newTestJob(1e-4, 0, 0, 7, 7), 0.1, math.SmallestNonzeroFloat64), 0, 0, 0},
	} {
		m := &Machine{workers: []*workerState{{id: "w1", slots: 1}}}
		now := Tick((float64(10*len(test.job.Trace)) + test.late) * float64(second))
		got := m.eta(test.job, now)
		if !(math.Abs(got.low-test.low) < 1e-9 && math.Abs(got.high-test.high) < 1e-9 && got.low <= got.likely &&
			got.likely <= got.high) {
			t.Errorf("%s: %g to %g, likely %g seconds, want %g to %g", test.name, got.low, got.high, got.likely, test.low,
				test.high)
		}
		if nobody := (&Machine{}).eta(test.job, now); nobody != (left{}) && test.job.stage != stageDigest {
			t.Errorf("%s: %v while no worker is up", test.name, nobody)
		}
	}
}

// Seeds differ by job, list, item and sweep, and are the same ever after: they are part of
// what a model is made from.
func TestSeeds(t *testing.T) {
	seen := map[uint64]string{}
	for n := range 4 * 3 * 20 * 20 {
		job, list, item, sweep := uint64(n/1200), n/400%3, uint32(n/20%20), uint32(n%20)
		s, name := taskSeed(job, list, item, sweep), fmt.Sprint(job, list, item, sweep)
		if other, ok := seen[s]; ok {
			t.Fatalf("seeds of %s and %s are equal", name, other)
		}
		seen[s] = name
	}
	if got := taskSeed(7, 0, 3, 2); got != seed732 {
		t.Errorf("seed %#x, want %#x", got, uint64(seed732))
	}
}

const seed732 = 0x3a730b715e268cb4
