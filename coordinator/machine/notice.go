package machine

import (
	"cmp"
	"fmt"

	"taxon/internal/ui/format"
	taxonv1 "taxon/proto/taxon/v1"
)

// Notice is a line of the event log. It says what happened, to what, and who asked for it. An empty
// field does not apply. Notices follow from records, except those about shards being up and having
// room, which are not journaled.
type Notice struct {
	At    Tick
	Level string // info, warn or error
	// Text is one of a fixed set of phrases, so that logs can be searched for it.
	Text  string
	Job   string
	Sweep uint32
	Step  uint32
	// Task is valid if Attempt is not zero.
	Task   uint32
	Worker string // id
	Store  string
	// Attempt is the attempt that the notice is about. It is zero if the notice is not about a
	// task.
	Attempt uint32
	// By identifies the caller who asked for it.
	By     string
	Reason string

	JobName, WorkerName string
}

func (Notice) action() {}

// tell emits a notice.
func (m *Machine) tell(n Notice) {
	n.At = m.now
	m.out = append(m.out, n)
}

// tellRecord emits the notice of a record. It must be called before the record is applied, while
// the leases and workers that it ends still exist.
func (m *Machine) tellRecord(r *Record) {
	n := Notice{Level: levelInfo, Job: r.Job, By: cmp.Or(r.By, r.Owner), Reason: r.Reason}
	if j := m.find(r.Job); j != nil {
		n.JobName, n.Sweep = j.Name, j.Committed
	}
	switch r.Kind {
	case recordSubmit:
		n.Text, n.JobName = "job submitted", r.Name
	case recordRestore:
		n.Text, n.Job, n.JobName, n.Sweep = "job restored", r.restored.ID, r.restored.Name, r.restored.Committed
	case recordStart:
		n.Text = "job started"
	case recordResume:
		n.Text = "job resumed"
	case recordCancel:
		n.Text = "job is to be cancelled"
	case recordIdle:
		n.Level, n.Text = levelWarn, "job waits"
	case recordTimeUp:
		n.Text = "job has used up its time"
	case recordRollback:
		n.Level, n.Text = levelWarn, "job rolls back"
	case recordRolled:
		n.Level, n.Text = levelWarn, "job rolled back"
	case recordNote:
		n.Level, n.Text = levelWarn, "job has a problem"
	case recordDiscard:
		n.Text = "values dropped"
		if r.Asked {
			n.Text, n.Reason = "values discarded", ""
		}
	case recordForget:
		n.Text = "job forgotten"
	case recordWeights:
		n.Level, n.Text = levelError, "weights lost"
	case recordDigested:
		if r.Digest != nil {
			return
		}
		n.Level, n.Text = levelError, "weights lost"
	case recordRegister:
		n.Text, n.Worker, n.WorkerName = "worker joined", r.Worker, r.Name
		n.Reason = "with " + format.Counted(int64(r.Slots), "slot", "slots")
	case recordDrain:
		n.Text, n.Worker, n.WorkerName = "worker is to be drained", r.Worker, m.worker(r.Worker).name
	case recordGone:
		m.tellGone(r)
		return
	case recordLost:
		m.tellLease(m.leases[r.Epoch], r.Loss, r.Reason)
		return
	case recordMissing:
		m.tellLease(m.leases[r.Epoch], lossValue, r.Reason)
		return
	case recordUnshard:
		n.Text, n.Store = "store forgotten", r.Worker
	case recordRecover:
		n.Level, n.Text = levelWarn, "coordinator is back"
		n.Reason = fmt.Sprintf("the last record is %.0f s old", (r.At - r.Last).Seconds())
	default:
		return
	}
	m.tell(n)
}

// tellGone emits the notices of a worker that has gone and of the leases that are lost with it.
func (m *Machine) tellGone(r *Record) {
	w := m.worker(r.Worker)
	if r.Reason == "" || w.draining {
		m.tell(Notice{Level: levelInfo, Text: "worker left", Worker: w.id, WorkerName: w.name})
		return
	}
	m.tell(Notice{Level: levelWarn, Text: "worker lost", Worker: w.id, WorkerName: w.name, Reason: r.Reason})
	for _, e := range m.epochs() {
		if l := m.leases[e]; l.worker == w.id {
			m.tellLease(l, lossExpired, r.Reason)
		}
	}
}

// tellLease emits the notice of a lost attempt. An attempt that its worker returned on purpose is
// not a loss.
func (m *Machine) tellLease(l *lease, how loss, reason string) {
	text, known := map[loss]string{lossExpired: "lease lost", lossError: "task failed", lossValue: "values missing",
		lossAway: "store out of reach"}[how]
	if l == nil || !known {
		return
	}
	n := Notice{Level: levelWarn, Text: text, Job: l.job.ID, JobName: l.job.Name, Sweep: l.job.Committed, Step: l.step,
		Task:    l.task,
		Attempt: l.attempt, Worker: l.worker, Reason: reason}
	if w := m.worker(l.worker); w != nil {
		n.WorkerName = w.name
	}
	m.tell(n)
}

// tellEnd emits the notice of a job's end, with the caller who asked for it.
func (m *Machine) tellEnd(id, by string) {
	j := m.find(id)
	n := Notice{Level: levelInfo, Job: id, JobName: j.Name, Sweep: j.Committed, By: by, Reason: j.Error}
	switch j.State {
	case taxonv1.JobState_JOB_STATE_DONE:
		n.Text, n.Reason = "job done", j.stoppedBy()
	case taxonv1.JobState_JOB_STATE_CANCELLED:
		n.Text = "job cancelled"
	default:
		n.Level, n.Text = levelError, "job failed"
		if f := j.Failed; f != nil {
			n.Step, n.Task, n.Attempt, n.WorkerName = f.Step, f.Task, f.Attempt, f.Worker
		}
	}
	m.tell(n)
}

// tellReport emits notices of what changed with a shard's report: it is up, its disk is full, or it
// has room again.
func (m *Machine) tellReport(s *shardState, e JoinShard) {
	n := Notice{Level: levelInfo, Store: s.id, By: e.By}
	if !s.up {
		n.Text, n.Reason = "store joined", "at "+e.Addr
		m.tell(n)
	}
	full, was := e.Free < e.Reserve, s.lastReport.Free < s.lastReport.Reserve
	switch {
	case full && !was:
		n.Level, n.Text = levelError, "store is full"
		n.Reason = fmt.Sprintf("%s are free, and it takes no writes with less than %s", format.Bytes(int64(e.Free)),
			format.Bytes(int64(e.Reserve)))
		m.tell(n)
	case was && !full:
		n.Text, n.Reason = "store has room again", format.Bytes(int64(e.Free))+" are free"
		m.tell(n)
	}
}
