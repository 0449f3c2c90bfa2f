package machine

import taxonv1 "taxon/proto/taxon/v1"

// Bounds of what is remembered of the workers' past: so many spans of all workers together, and
// of one at least and at most so many.
const (
	keptSpans = 65536
	minSpans  = 4
	maxSpans  = 256
)

// timeline remembers what each worker ran last. It is not journaled: a restarted coordinator has
// what its journal's records tell.
type timeline struct {
	workers map[string][]*span // by id, oldest first
	live    map[uint64]*span   // by batch
}

// span is the time of a batch on a worker.
type span struct {
	job, phase   string
	sweep, step  uint32
	task, tasks  uint32 // the first one, and how many
	under        uint32 // how many of them run
	begun, ended Tick
	result       string
}

// How an attempt ended.
const (
	resultDone    = "done"
	resultRevoked = "revoked" // it counts no more: another attempt was first, or the job has ended
)

// result is a loss as a timeline has it.
func (l loss) result() string {
	return [...]string{lossReturned: "returned", lossExpired: "lost", lossError: "failed", lossValue: "missing", lossAway: "away"}[l]
}

// begin notes a lease that is handed out.
func (t *timeline) begin(l *lease, workers int) {
	if s := t.live[l.batch]; s != nil {
		s.tasks, s.under = s.tasks+1, s.under+1
		return
	}
	s := &span{job: l.job.ID, step: l.step, task: l.task, tasks: 1, under: 1, begun: l.granted}
	if l.recomputing() {
		s.sweep, s.phase = l.job.progress().Sweep, "recompute"
	} else {
		s.sweep, s.phase = l.job.step.Sweep, l.job.step.Phase
	}
	if t.workers == nil {
		t.workers, t.live = map[string][]*span{}, map[uint64]*span{}
	}
	t.live[l.batch] = s
	list := append(t.workers[l.worker], s)
	if most := min(max(keptSpans/max(workers, 1), minSpans), maxSpans); len(list) > most {
		clear(list[:len(list)-most]) // the array behind it is kept until append makes another one
		list = list[len(list)-most:]
	}
	t.workers[l.worker] = list
}

// end notes the end of a lease. A span's result is the first one that is not done.
func (t *timeline) end(l *lease, result string, at Tick) {
	s := t.live[l.batch]
	if s == nil {
		return
	}
	if s.result == "" || s.result == resultDone {
		s.result = result
	}
	if s.under--; s.under == 0 {
		s.ended = at
		delete(t.live, l.batch)
	}
}

// Timeline tells what the workers run and ran last: each its part of so many spans; 0: all kept.
func (m *Machine) Timeline(now Tick, most int) *taxonv1.TimelineResult {
	out := &taxonv1.TimelineResult{NowUnixMs: max(now, m.now).Milliseconds()}
	workers := m.Workers()
	for _, w := range workers {
		spans := m.timeline.workers[w.Worker]
		if len(spans) == 0 {
			continue
		}
		if most > 0 {
			spans = spans[max(0, len(spans)-max(most/len(workers), minSpans)):]
		}
		line := &taxonv1.WorkerTimeline{Worker: w.Worker}
		for _, s := range spans {
			k := &taxonv1.Span{Job: s.job, Sweep: s.sweep, Phase: s.phase, Step: s.step, Task: s.task, Tasks: s.tasks, BegunUnixMs: s.begun.Milliseconds()}
			if s.under == 0 {
				k.EndedUnixMs, k.Result = s.ended.Milliseconds(), s.result
			}
			line.Spans = append(line.Spans, k)
		}
		out.Workers = append(out.Workers, line)
	}
	return out
}
