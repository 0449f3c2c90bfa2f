package machine

import taxonv1 "taxon/proto/taxon/v1"

// These bound the spans that are remembered: of all workers together, and of one worker.
const (
	keptSpans = 65536 // of all workers
	minSpans  = 4     // of one worker, at least
	maxSpans  = 256   // of one worker, at most
)

// timeline remembers what each worker ran last. It is not journaled: a restarted coordinator knows
// what the records of its journal say.
type timeline struct {
	// workers holds the spans by worker id, oldest first.
	workers map[string][]*span
	// live holds by batch the spans that have not ended.
	live map[uint64]*span
}

// span is the time of a batch on a worker.
type span struct {
	job, phase  string
	sweep, step uint32
	// task is the first task of the batch, and tasks how many it has.
	task, tasks uint32
	// under counts the tasks that still run.
	under        uint32
	begun, ended Tick
	result       string
}

// These values say how an attempt ended.
const (
	// resultDone and resultRevoked are results of an attempt. A revoked one no longer counts,
	// because another attempt was first or the job has ended.
	resultDone    = "done"
	resultRevoked = "revoked"
)

// result returns the loss as a timeline has it.
func (l loss) result() string {
	return [...]string{lossReturned: "returned", lossExpired: "lost", lossError: "failed", lossValue: "missing",
		lossAway: "away"}[l]
}

// begin records a lease that is granted.
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
		clear(list[:len(list)-most]) // append keeps the array, and so what it points to
		list = list[len(list)-most:]
	}
	t.workers[l.worker] = list
}

// end records the end of a lease. A span's result is the first one that is not done.
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

// Timeline describes what the workers run and ran last. A positive most bounds the spans of all
// workers together, roughly; zero returns all that are kept.
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
			k := &taxonv1.Span{Job: s.job, Sweep: s.sweep, Phase: s.phase, Step: s.step, Task: s.task, Tasks: s.tasks,
				BegunUnixMs: s.begun.Milliseconds()}
			if s.under == 0 {
				k.EndedUnixMs, k.Result = s.ended.Milliseconds(), s.result
			}
			line.Spans = append(line.Spans, k)
		}
		out.Workers = append(out.Workers, line)
	}
	return out
}
