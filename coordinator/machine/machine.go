package machine

import (
	"errors"
	"fmt"
	"math"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Tick is a time in nanoseconds since a start that the caller chooses. Ticks never decrease.
type Tick int64

const (
	millisecond Tick = 1e6
	second      Tick = 1e9
)

// Seconds returns the tick in seconds.
func (t Tick) Seconds() float64 { return float64(t) / float64(second) }

// Milliseconds returns the tick in whole milliseconds.
func (t Tick) Milliseconds() int64 { return int64(t / millisecond) }

// Limits bounds what the machine does. A field of zero means its default.
type Limits struct {
	// Lease is how long a lease lives without renewal. A worker or shard that is not heard for the
	// same time is lost. It must cover a few heartbeats. Zero stands for 10 s.
	Lease Tick

	// MaxSilenceStep is the most that the time between two Time events can add to the silence of
	// others. A coordinator that was stopped or starved hears nobody, so a small value (a fraction
	// of Lease) keeps it from declaring everybody lost when it wakes. By default all of the time
	// counts.
	MaxSilenceStep Tick

	// Backoff is the wait before a task goes out again that was lost twice or that reported an
	// error. It doubles with each further loss. Zero stands for 100 ms.
	Backoff Tick

	// MaxBackoff is the longest that the wait becomes by doubling. Zero stands for 5 s.
	MaxBackoff Tick

	// MaxLosses is how often one task may lose its worker. A task that is lost more often seems to
	// kill its workers, for example by its memory, and its job fails. Zero stands for 30.
	MaxLosses uint32

	// MaxErrors is the number of errors of one task at which its job fails. It counts errors that
	// another attempt may avoid; an error that is marked deterministic fails the job at once. Zero
	// stands for 6, which amounts to about ten seconds of back-off.
	MaxErrors uint32

	// MaxOutage is how long the store may be unusable before a job that needs it fails. Such a job
	// can be resumed when the store is back. Zero stands for 10 minutes.
	MaxOutage Tick

	// MaxRollbacks is how often a job may roll back without committing a further sweep. One more
	// roll-back fails the job. Zero stands for 8.
	MaxRollbacks uint32

	// Straggler is the least time that a task runs before an idle worker may be given a second
	// attempt at it. Zero stands for 2 s.
	Straggler Tick

	// KeepInputs makes a job remember what the tasks of recent steps read, so that a value which
	// the store loses can be recomputed. Without it such a loss rolls the job back.
	KeepInputs bool

	// MaxRunning is the number of jobs that run at once; further ones are queued. Zero stands for
	// 4.
	MaxRunning int

	// MaxSpecBytes bounds the total size in bytes of the specifications of all jobs that run, wait
	// or hold values. They stay in memory and in the journal. One owner's jobs may take a quarter
	// of it. Zero stands for 1 GiB.
	MaxSpecBytes int

	// MaxQueued is the number of jobs that may wait. A submission beyond it is refused. Zero stands
	// for 100.
	MaxQueued int

	// KeepJobs is the number of finished jobs of an owner whose values are kept, and separately the
	// number of cancelled or failed ones. Zero stands for 100.
	KeepJobs int

	// KeepFor is how long the values of an ended job are kept at most. Time in which the
	// coordinator did not run does not count. Zero stands for 30 days.
	KeepFor Tick

	// NeedShards makes the machine refuse jobs while no store shard is up. A coordinator whose
	// store is in its own process leaves it unset.
	NeedShards bool

	// Checkpoints makes the machine emit SaveJob actions.
	Checkpoints bool

	// Durable says that the journal alone lets jobs outlive a crash. A checkpoint that can't be
	// written then does not fail its job.
	Durable bool

	// Evaluations makes the machine emit EvaluateWeights actions.
	Evaluations bool

	// Digests makes the machine emit DigestWeights actions. A job is then done only when its
	// weights have been digested.
	Digests bool

	// CheckpointEvery is the least time between two checkpoints of a job. Zero stands for 10 s.
	CheckpointEvery Tick

	// CheckpointSweeps is the least number of sweeps between two checkpoints of a job. Zero leaves
	// it to each job's options.
	CheckpointSweeps uint32
}

// WithDefaults returns the limits with every zero field replaced by its default.
func (l Limits) WithDefaults() Limits {
	fill(&l.Lease, 10*second)
	fill(&l.MaxSilenceStep, math.MaxInt64)
	fill(&l.Backoff, 100*millisecond)
	fill(&l.MaxBackoff, 5*second)
	fill(&l.MaxLosses, 30)
	fill(&l.MaxErrors, 6)
	fill(&l.MaxRunning, 4)
	fill(&l.MaxOutage, 600*second)
	fill(&l.MaxRollbacks, 8)
	fill(&l.Straggler, 2*second)
	fill(&l.MaxQueued, 100)
	fill(&l.MaxSpecBytes, 1<<30)
	fill(&l.KeepJobs, 100)
	fill(&l.KeepFor, 30*24*3600*second)
	fill(&l.CheckpointEvery, 10*second)
	return l
}

// fill sets a field that is zero to a value.
func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Machine is the state of all jobs, workers and store shards. It is pure: it has no clock, no I/O
// and no goroutines. See the package comment for the duties of its caller.
type Machine struct {
	limits Limits
	jobs   []*job // in order of submission
	// byID finds the jobs by their ids.
	byID       map[string]*job
	workers    []*workerState // in order of registration
	workerByID map[string]*workerState
	// gone describes the workers that left or were lost last, oldest first. It is not journaled.
	gone     []*taxonv1.WorkerInfo
	timeline timeline
	shards   []*shardState // in order of joining
	// leases are the live leases by fencing epoch.
	leases map[uint64]*lease
	// lastEpoch, lastWorker and lastJob are the highest numbers given so far. They never decrease.
	lastEpoch  uint64
	lastWorker uint64
	lastJob    uint64
	// shardsVersion changes with the description of the shards; see shardsChanged.
	shardsVersion uint64

	// now is the time of the event being handled, and clockAt that of the last record.
	now     Tick
	clockAt Tick
	// out collects the actions of the event being handled.
	out []Action

	// listened is how long others could be heard until the last Time event, and lastTick the time
	// of that event. See silence.go.
	listened, lastTick Tick
	// records is the number of records decided so far. durable is how many of them were durable at
	// the last Time event.
	records, durable uint64
}

// workerState is a registered worker. The fields seen, contact and done are not journaled. After a
// restart every worker has the time of a lease to be heard.
type workerState struct {
	id, name string
	slots    uint32
	memory   uint64
	cores    uint32
	version  string
	draining bool
	seen     Tick
	contact  contact
	done     uint64 // tasks; not journaled
}

// lease is the permission of a worker to run one attempt of a task. contact is not journaled.
type lease struct {
	job     *job
	step    uint32
	task    uint32
	attempt uint32
	epoch   uint64
	// batch is the epoch of the first of the leases that were granted together. A batch takes one
	// slot.
	batch   uint64
	worker  string
	granted Tick
	contact contact
	// woken says that idle workers were woken because this attempt straggles.
	woken bool
}

// recomputing reports whether the lease is for a task of an earlier step than the current one.
func (l *lease) recomputing() bool { return l.job.step == nil || l.step != l.job.step.number }

// New returns a machine without jobs, workers or shards.
func New(limits Limits) *Machine {
	return &Machine{limits: limits.WithDefaults(), byID: map[string]*job{}, workerByID: map[string]*workerState{},
		leases: map[uint64]*lease{}}
}

// maxWorkers bounds the registered workers. Each costs a few hundred bytes here and a few calls per
// lease.
const maxWorkers = 16384

// These errors are wrapped by the Refused actions.
var (
	ErrTooManyWorkers = fmt.Errorf("%d workers are registered, the most there may be: give each more slots", maxWorkers)

	ErrUnknownWorker = errors.New("worker is not registered (any more): register again")
	ErrUnknownJob    = errors.New("no such job")
	ErrUnknownMember = errors.New("no such member is registered")
	ErrNotResumable  = errors.New("only a cancelled or failed job whose values are kept can be resumed, or one " +
		"whose weights were lost")
	ErrStopCriteria = errors.New("the job can't go on with the ‹gap›, ‹max-sweeps› or ‹max-time› given")
	ErrJobExists    = errors.New("a job of this id exists with another specification")
	ErrDiscarded    = errors.New("a job of this id was discarded: submit it under another id")
	ErrNoRoom       = errors.New("no checkpoint of the job could be kept")
	ErrTooManyJobs  = errors.New("too many jobs: wait until one has ended")
)

// Step applies one event to the state and returns the actions that the caller must carry out, in
// order. An event that is refused changes nothing and yields a Refused action. If now is earlier
// than in a previous call, Step takes the now of that call instead.
func (m *Machine) Step(now Tick, e Event) []Action {
	m.now, m.out = max(now, m.now), nil
	var err error
	switch e := e.(type) {
	case Submit:
		err = m.submit(e)
	case SubmitCheckpoint:
		err = m.submitCheckpoint(e)
	case Restore:
		err = m.restore(e)
	case Resume:
		err = m.resume(e)
	case Register:
		err = m.register(e)
	case Drain:
		err = m.drain(e)
	case JoinShard:
		err = m.joinShard(e)
	case LeaveShard:
		m.leaveShard(e.ID)
	case ForgetShard:
		err = m.forgetShard(e)
	case Leave:
		if m.worker(e.Worker) != nil {
			m.decide(Record{Kind: recordGone, Worker: e.Worker})
		}
	case RequestTask:
		err = m.requestTask(e)
	case Renew:
		err = m.renew(e)
	case Report:
		err = m.report(e)
	case Time:
		m.tick(e.Pending)
		m.time()
	case Cancel:
		err = m.cancel(e)
	case Saved:
		m.saved(e)
	case Loaded:
		m.loaded(e)
	case Evaluated:
		m.evaluated(e)
	case Digested:
		err = m.digested(e)
	case WeightsLost:
		m.weightsLost(e)
	}
	if err != nil {
		m.out = append(m.out, Refused{Err: err})
	}
	m.startQueued()
	out := m.out
	m.out = nil
	return out
}

// Known reports whether the machine has a job with this id.
func (m *Machine) Known(id string) bool { return m.find(id) != nil }

// Exportable reports whether the final weights of a job are in the store, as far as the machine
// knows.
func (m *Machine) Exportable(id string) bool {
	j := m.find(id)
	return j != nil && j.exportable()
}

// find returns the job of an id, or nil.
func (m *Machine) find(id string) *job { return m.byID[id] }

// known returns the job of an id, or an error that wraps ErrUnknownJob.
func (m *Machine) known(id string) (*job, error) {
	if j := m.find(id); j != nil {
		return j, nil
	}
	return nil, fmt.Errorf("job %s: %w", id, ErrUnknownJob)
}

// worker returns the worker of an id, or nil if it is not registered.
func (m *Machine) worker(id string) *workerState { return m.workerByID[id] }

// addWorker adds a worker to the list and to the index.
func (m *Machine) addWorker(w *workerState) {
	m.workers = append(m.workers, w)
	m.workerByID[w.id] = w
}

// alive reports whether a worker is registered.
func (m *Machine) alive(worker string) bool { return m.worker(worker) != nil }

// slots returns the number of tasks that all workers can run at a time. Draining workers do not
// count.
func (m *Machine) slots() int {
	n := 0
	for _, w := range m.workers {
		if !w.draining {
			n += int(w.slots)
		}
	}
	return n
}

// workersOf lists the workers that may be given tasks of a job.
func (m *Machine) workersOf(j *job) (out []*workerState) {
	for _, w := range m.workers {
		if !w.draining && m.mayRun(j, w) {
			out = append(out, w)
		}
	}
	return out
}

// heardFrom records a worker's sign of life. It returns ErrUnknownWorker if the worker is not
// registered.
func (m *Machine) heardFrom(id string) error {
	w := m.worker(id)
	if w == nil {
		return ErrUnknownWorker
	}
	w.seen, w.contact = m.now, m.contactNow()
	return nil
}

// register handles Register. A registration that names the previous worker of the same name removes
// that worker first, so that its tasks need not wait for its leases to expire.
func (m *Machine) register(e Register) error {
	if len(m.workers) >= maxWorkers {
		return fmt.Errorf("worker %.64q: %w", e.Name, ErrTooManyWorkers)
	}
	if w := m.worker(e.Previous); w != nil && w.name == clip(e.Name, 256) {
		m.decide(Record{Kind: recordGone, Worker: w.id, Reason: "its process was started again"})
	}
	id := fmt.Sprintf("w%d", m.lastWorker+1)
	m.decide(Record{Kind: recordRegister, Worker: id, Name: clip(e.Name, 256), Slots: e.Slots, Memory: e.Memory,
		Cores: e.Cores, Version: clip(e.Version, 64), By: e.By})
	m.warnOfMemory(m.worker(id))
	m.out = append(m.out, Registered{Worker: id})
	return nil
}

// requestTask handles RequestTask. A request that has waited since an earlier one is not a new sign
// of life.
func (m *Machine) requestTask(e RequestTask) error {
	if !e.Waits || !m.alive(e.Worker) {
		if err := m.heardFrom(e.Worker); err != nil {
			return err
		}
	}
	m.grant(e.Worker, e.Most, false)
	if m.worker(e.Worker).draining {
		m.out = append(m.out, WorkerDrained{})
	}
	return nil
}

// held returns the live lease of an id if the worker holds it, and nil otherwise. All parts of the
// id must match; the epoch alone fences off earlier attempts.
func (m *Machine) held(worker string, id *taxonv1.LeaseId) *lease {
	l := m.leases[id.GetEpoch()]
	if l == nil || l.worker != worker || l.job.ID != id.GetJob() || l.task != id.GetTask() ||
		l.step != id.GetStep() || l.attempt != id.GetAttempt() {
		return nil
	}
	return l
}

// renew handles Renew. It extends the leases that the worker still holds and names the others.
func (m *Machine) renew(e Renew) error {
	if err := m.heardFrom(e.Worker); err != nil {
		return err
	}
	var lost []*taxonv1.LeaseId
	for _, id := range e.Leases {
		if l := m.held(e.Worker, id); l != nil {
			l.contact = m.contactNow()
		} else {
			lost = append(lost, id)
		}
	}
	m.out = append(m.out, Lost{Leases: lost, ShardsVersion: m.shardsVersion})
	return nil
}

// report handles Report, the end of an attempt. A report under a lease that is no longer held
// changes nothing. It is still accepted if an earlier copy of the same report committed the
// attempt, because the worker may have missed the answer.
func (m *Machine) report(e Report) error {
	if err := m.heardFrom(e.Worker); err != nil {
		return err
	}
	if l := m.held(e.Worker, e.Lease); l != nil {
		m.endAttempt(l, e)
		m.out = append(m.out, Accepted{})
	} else if m.committed(e) {
		m.out = append(m.out, Accepted{})
	}
	if e.Next {
		m.grant(e.Worker, e.Most, e.Ahead)
	}
	return nil
}

// committed reports whether a report repeats the one that committed its attempt.
func (m *Machine) committed(e Report) bool {
	j := m.find(e.Lease.GetJob())
	if j == nil || j.step == nil || j.step.number != e.Lease.GetStep() || int(e.Lease.GetTask()) >= len(j.step.tasks) {
		return false
	}
	t := &j.step.tasks[e.Lease.GetTask()]
	return t.state == taskDone && t.worker == e.Worker && t.epoch == e.Lease.GetEpoch() &&
		t.committed == e.Lease.GetAttempt()
}

// endAttempt decides what a report under a live lease means: done, returned, lost, or the end of
// its job.
func (m *Machine) endAttempt(l *lease, e Report) {
	r := Record{Kind: recordLost, Job: l.job.ID, Step: l.step, Task: l.task, Epoch: l.epoch}
	if want := len(l.job.plan.Sums); e.Error == "" && !e.Returned && len(e.Sums) != want {
		e.Unfit, e.Error = true, fmt.Sprintf("it reports %d figures, the job's method has %d: it is of "+
			"another version of taxon", len(e.Sums), want)
	}
	e.Error = clip(e.Error, maxLineBytes)
	switch {
	case e.Returned:
		m.decide(r)
	case e.Error == "":
		if err := e.check(l.job.plan); err != nil {
			m.failTask(l, l.job.step.describe(l.task)+": "+err.Error())
			break
		}
		r.Kind, r.Sums, r.CPU, r.Read, r.Written = recordDone, e.Sums, e.CPUSeconds, e.Read, e.Written
		m.decide(r)
	case len(lostValues(e, l.job)) > 0:
		m.recomputeLost(l, e)
	case e.Unfit:
		m.unfit(l, e)
	case e.Deterministic:
		m.failTask(l, e.Error)
	case e.Unavailable:
		if !m.outage(l, e) {
			r.Loss, r.Reason = lossAway, e.Error
			m.decide(r)
		}
	case l.recomputing():
		if j := l.job; j.findRecompute(l.step, l.task).Errors+1 >= m.limits.MaxErrors {
			m.rollBack(j, fmt.Sprintf("task %d of step %d, which is run again to make a lost value, fails: %s", l.task, l.step,
				e.Error))
			break
		}
		r.Loss, r.Reason = lossError, e.Error
		m.decide(r)
	case l.job.step.tasks[l.task].errors+1 >= m.limits.MaxErrors:
		m.failTask(l, fmt.Sprintf("%s failed %d times, the last time: %s", l.job.step.describe(l.task), m.limits.MaxErrors,
			e.Error))
	default:
		r.Loss, r.Reason = lossError, e.Error
		m.decide(r)
	}
}

const (
	// maxTaskSeconds is the largest plausible CPU time of one task, about thirty years.
	maxTaskSeconds = 1e9
	// maxTaskBytes is the largest plausible number of bytes that one task reads, or writes.
	maxTaskBytes = 1 << 50
)

// check returns an error if no task of the plan can have reported this. The bounds keep the job's
// totals within the range of their types.
func (e *Report) check(p *method.Plan) error {
	switch {
	case !(e.CPUSeconds >= 0 && e.CPUSeconds <= maxTaskSeconds):
		return fmt.Errorf("its worker reports %g CPU seconds, which can't be: look after that worker, then resume the job",
			e.CPUSeconds)
	case e.Read > maxTaskBytes || e.Written > maxTaskBytes:
		return fmt.Errorf("its worker reports %d bytes read and %d written, which can't be: look after that worker, "+
			"then resume the job", e.Read, e.Written)
	}
	return p.Check(e.Sums)
}

// fail ends a job with an error.
func (m *Machine) fail(j *job, reason string) {
	m.decide(Record{Kind: recordFail, Job: j.ID, Reason: reason})
}
