package machine

import (
	"cmp"
	"fmt"
	"slices"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// keptStatuses bounds the ended jobs whose status is kept without values. Limits.KeepJobs and
// KeepFor bound those whose values are kept as well.
const keptStatuses = 1000

// keptLines and keptTrace bound the log and trace of a job whose values are deleted.
const (
	keptLines = 20
	keptTrace = 20
)

// share is the group in which an ended job counts for Limits.KeepJobs. Each owner has groups of its
// own. Cancelled and failed jobs displace no finished ones, and jobs without values displace only
// each other.
type share struct {
	owner           string
	finished, empty bool
}

// share returns the group of an ended job whose values are kept.
func (j *job) share() share {
	return share{owner: j.Owner, finished: j.exportable(), empty: j.StepNo <= 1}
}

// endedJobs lists the ended jobs, latest end first.
func (m *Machine) endedJobs() (out []*job) {
	for _, j := range slices.Backward(m.jobs) {
		if j.ended() {
			out = append(out, j)
		}
	}
	slices.SortStableFunc(out, func(a, b *job) int { return cmp.Compare(b.Ended, a.Ended) })
	return out
}

// retire drops the values of the jobs that ended longest ago, and forgets the oldest jobs without
// values.
func (m *Machine) retire() {
	kept, dropped := map[share]int{}, 0
	for _, j := range m.endedJobs() {
		if !j.Dropped && j.foreign == nil {
			s := j.share()
			kept[s]++
			switch age := m.now - j.Ended - j.Uncounted; {
			case kept[s] > m.limits.KeepJobs:
				m.decide(Record{Kind: recordDiscard, Job: j.ID, Reason: fmt.Sprintf("those of %d such jobs that have ended are "+
					"kept, and as many came later", m.limits.KeepJobs)})
			case age > m.limits.KeepFor:
				m.decide(Record{Kind: recordDiscard, Job: j.ID, Reason: fmt.Sprintf("it ended %.0f days ago", age.Seconds()/86400)})
			}
		}
		if j.Dropped {
			if dropped++; dropped > keptStatuses {
				m.decide(Record{Kind: recordForget, Job: j.ID})
			}
		}
	}
	if m.now-m.clockAt >= clockEvery && len(kept) > 0 {
		m.decide(Record{Kind: recordClock})
	}
}

// Values are kept for a time in which the coordinator was running. So a clock that is wrong when it
// starts drops nothing.

const (
	// clockEvery is how often the time is journaled while values are kept.
	clockEvery = 12 * 3600 * second
	// clockGap is the longest time between the last record and a restart that counts as age. After
	// a longer time, the coordinator was away or one of the two times is wrong.
	clockGap = 2 * 24 * 3600 * second
)

// checkClock excludes the time since the last record from the age of ended jobs if it is more than
// clockGap.
func (m *Machine) checkClock(last, now Tick) {
	if last == 0 || now-last <= clockGap {
		return
	}
	m.now = now
	m.decide(Record{Kind: recordClock, Last: last})
	m.out = append(m.out, Warned{Text: fmt.Sprintf("the clock is %.1f days ahead of what it was when the "+
		"coordinator was last there: "+
		"values grow no older by it; if the clock is wrong, set it and start the coordinator again",
		(now-last).Seconds()/86400)})
}

// applyClock records that a time passed in which the coordinator did not run.
func (m *Machine) applyClock(r *Record) {
	if r.Last == 0 {
		return
	}
	for _, j := range m.jobs {
		if j.ended() && !j.Dropped && j.Ended <= r.Last {
			j.Uncounted += r.At - r.Last
		}
	}
}

// kept describes for how much longer retire keeps a job's values. It returns nil if the job has not
// ended.
func (m *Machine) kept(j *job) *taxonv1.Kept {
	switch {
	case !j.ended():
		return nil
	case j.Dropped:
		return &taxonv1.Kept{Dropped: true, Discarded: j.Discarded}
	case j.foreign != nil: // until it is discarded
		return &taxonv1.Kept{}
	}
	left, s, after := m.limits.KeepJobs, j.share(), false
	for _, k := range m.jobs {
		if k == j {
			after = true
		} else if k.ended() && !k.Dropped && (k.Ended > j.Ended || after && k.Ended == j.Ended) && k.share() == s {
			left--
		}
	}
	return &taxonv1.Kept{UntilUnixMs: (j.Ended + j.Uncounted + m.limits.KeepFor).Milliseconds(),
		Jobs: uint32(max(left, 1))}
}

// displaced lists the finished jobs whose weights are dropped once all open jobs of their owner
// have finished, oldest first.
func (m *Machine) displaced(owner string) (out []string) {
	s, open := share{owner: owner, finished: true}, 0
	var finished []string
	for _, j := range m.jobs {
		if !j.ended() && j.Owner == owner {
			open++
		}
	}
	for _, j := range m.endedJobs() {
		if !j.Dropped && j.share() == s {
			finished = append(finished, j.ID)
		}
	}
	for n := len(finished) - 1; n >= 0 && n >= m.limits.KeepJobs-open; n-- {
		out = append(out, finished[n])
	}
	return out
}

// compact drops everything of an ended job that its status does not need.
func (j *job) compact() error {
	d := j.spec.GetData()
	spec := &taxonv1.JobSpec{Options: j.spec.GetOptions(), Data: &taxonv1.Data{Fingerprint: d.GetFingerprint(),
		Instances: d.GetInstances(), Terms: d.GetTerms(), Features: d.GetFeatures(), Nonzeros: d.GetNonzeros()}}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(spec)
	if err != nil {
		return err
	}
	last := j.progress()
	j.Dropped, j.Spec, j.Last, j.Nodes, j.Terminals = true, data, &last, j.plan.Nodes, j.plan.Terminals
	j.prepared, j.driver, j.Driver = reviveCompacted(&j.jobState, spec), nil, nil
	j.Values, j.Past, j.Recomputes, j.recomputes, j.lastRuns, j.foreign = nil, nil, nil, nil, nil, nil
	j.Trace = append([]traceRecord(nil), j.Trace[max(len(j.Trace)-keptTrace, 0):]...)
	j.log.Lines = append([]logLine(nil), j.log.Lines[max(len(j.log.Lines)-keptLines, 0):]...)
	return nil
}

// reviveCompacted derives what it can from the specification of a job whose values are dropped.
func reviveCompacted(s *jobState, spec *taxonv1.JobSpec) *prepared {
	run, _ := runOptionsOf(spec.GetOptions()) // the job runs no more
	return &prepared{spec: spec, run: run, plan: &method.Plan{Nodes: s.Nodes, Terminals: s.Terminals}}
}

// forget removes a job for good.
func (m *Machine) forget(id string) {
	delete(m.byID, id)
	// A clone, because callers forget jobs while they range over the list.
	m.jobs = slices.DeleteFunc(slices.Clone(m.jobs), func(j *job) bool { return j.ID == id })
}
