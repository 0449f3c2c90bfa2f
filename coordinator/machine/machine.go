package machine

import (
	"errors"
	"fmt"
	"math"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Tick is a time in nanoseconds since a start that the shell chooses. It never falls.
type Tick int64

const (
	millisecond Tick = 1e6
	second      Tick = 1e9
)

// Seconds is the tick in seconds.
func (t Tick) Seconds() float64 { return float64(t) / float64(second) }

// Milliseconds is the tick in whole milliseconds.
func (t Tick) Milliseconds() int64 { return int64(t / millisecond) }

// Limits bounds what the machine does. The zero value of a field means its default.
type Limits struct {
	Lease            Tick   // a lease lives this long without renewal; a worker too. Default 10 s
	MaxSilenceStep   Tick   // of the time between two Time events at most this much counts as silence of others. Default: all of it
	Backoff          Tick   // before a task that was lost twice, or errored once, goes out again; doubles. Default 100 ms
	MaxBackoff       Tick   // Default 5 s
	MaxLosses        uint32 // of one task before its job fails: it seems to kill its workers. Default 30
	MaxErrors        uint32 // of one task that need not come again, before its job fails. Default 6: some ten seconds of back-off
	MaxOutage        Tick   // of the store, before a job that needs it fails. Default 10 min
	MaxRollbacks     uint32 // of a job without getting further, before it fails. Default 8
	Straggler        Tick   // no second attempt at a task that runs for less. Default 2 s
	KeepInputs       bool   // keep what the last steps read, so that values which the store loses can be recomputed
	MaxRunning       int    // jobs that run at once, others queue. Default 4
	MaxSpecBytes     int    // of the specifications of all jobs that run, wait or have values; an owner's may take a quarter. Default 1 GiB
	MaxQueued        int    // jobs that wait; more are refused. Default 100
	KeepJobs         int    // jobs of an owner that have finished whose values are kept, and as many that were cancelled or failed. Default 100
	KeepFor          Tick   // how long they are kept at most, of the time in which the coordinator is there. Default 30 days
	NeedShards       bool   // refuse jobs while no store shard is up
	Checkpoints      bool   // emit SaveJob actions
	Durable          bool   // jobs outlive a crash without checkpoints: one that can't be written is no reason to fail
	Evaluations      bool   // emit EvaluateWeights actions
	Digests          bool   // emit DigestWeights actions: a job is done when its weights are digested
	CheckpointEvery  Tick   // least time between two of them. Default 10 s
	CheckpointSweeps uint32 // least sweeps between two of them; 0: as each job says
}

// WithDefaults fills the fields that are zero.
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

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Machine is the state of all jobs and workers. It is pure: no clock, no I/O, no goroutines. The
// caller calls Step from one goroutine at a time, and executes the actions in their order.
type Machine struct {
	limits        Limits
	jobs          []*job // in order of submission
	byID          map[string]*job
	workers       []*workerState // in order of registration
	workerByID    map[string]*workerState
	gone          []*taxonv1.WorkerInfo // the last ones that left; not journaled
	timeline      timeline
	shards        []*shardState // in order of joining
	leases        map[uint64]*lease
	lastEpoch     uint64
	lastWorker    uint64
	lastJob       uint64
	shardsVersion uint64

	now     Tick
	clockAt Tick // time of the last record
	out     []Action

	listened, lastTick Tick   // how long others could be heard until the last Time event, and when that was
	records, durable   uint64 // records decided so far, and how many of them were durable at that time
}

// workerState is a registered worker. seen and contact are not journaled: after a restart
// every worker has a lease's time to be heard.
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

// lease is a live attempt. contact is not journaled, like workerState's.
type lease struct {
	job     *job
	step    uint32
	task    uint32
	attempt uint32
	epoch   uint64
	batch   uint64 // epoch of the first lease of those granted together
	worker  string
	granted Tick
	contact contact
	woken   bool // idle workers were woken because it straggles
}

// recomputing says whether the lease is of a task of a past step.
func (l *lease) recomputing() bool { return l.job.step == nil || l.step != l.job.step.number }

// New is a machine without jobs or workers.
func New(limits Limits) *Machine {
	return &Machine{limits: limits.WithDefaults(), byID: map[string]*job{}, workerByID: map[string]*workerState{}, leases: map[uint64]*lease{}}
}

// maxWorkers bounds the registered workers. Each takes some hundred bytes here and a few calls a
// lease.
const maxWorkers = 16384

// Errors in Refused actions.
var (
	ErrTooManyWorkers = fmt.Errorf("%d workers are registered, the most there may be: give each more slots", maxWorkers)

	ErrUnknownWorker = errors.New("worker is not registered (any more): register again")
	ErrUnknownJob    = errors.New("no such job")
	ErrUnknownMember = errors.New("no such member is registered")
	ErrNotResumable  = errors.New("only a cancelled or failed job whose values are kept can be resumed, or one whose weights were lost")
	ErrStopCriteria  = errors.New("the job can't go on with the ‹gap›, ‹max-sweeps› or ‹max-time› given")
	ErrJobExists     = errors.New("a job of this id exists with another specification")
	ErrDiscarded     = errors.New("a job of this id was discarded: submit it under another id")
	ErrNoRoom        = errors.New("no checkpoint of the job could be kept")
	ErrTooManyJobs   = errors.New("too many jobs: wait until one has ended")
)

// Step folds one event into the state and returns what the shell must do.
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

// Known says whether there is a job of an id.
func (m *Machine) Known(id string) bool { return m.find(id) != nil }

// Exportable says whether the final weights of a job are in the store, as far as is known.
func (m *Machine) Exportable(id string) bool {
	j := m.find(id)
	return j != nil && j.exportable()
}

// find is the job of an id; nil if there is none.
func (m *Machine) find(id string) *job { return m.byID[id] }

// known is the job of an id, or an error that wraps ErrUnknownJob.
func (m *Machine) known(id string) (*job, error) {
	if j := m.find(id); j != nil {
		return j, nil
	}
	return nil, fmt.Errorf("job %s: %w", id, ErrUnknownJob)
}

// worker is the worker of an id; nil if it is not registered.
func (m *Machine) worker(id string) *workerState { return m.workerByID[id] }

// addWorker adds a worker.
func (m *Machine) addWorker(w *workerState) {
	m.workers = append(m.workers, w)
	m.workerByID[w.id] = w
}

func (m *Machine) alive(worker string) bool { return m.worker(worker) != nil }

// slots is the number of tasks that the workers can have at a time.
func (m *Machine) slots() int {
	n := 0
	for _, w := range m.workers {
		if !w.draining {
			n += int(w.slots)
		}
	}
	return n
}

// workersOf are those that may be given a job's tasks.
func (m *Machine) workersOf(j *job) (out []*workerState) {
	for _, w := range m.workers {
		if !w.draining && m.mayRun(j, w) {
			out = append(out, w)
		}
	}
	return out
}

// heardFrom notes a worker's sign of life. An unknown worker is refused.
func (m *Machine) heardFrom(id string) error {
	w := m.worker(id)
	if w == nil {
		return ErrUnknownWorker
	}
	w.seen, w.contact = m.now, m.contactNow()
	return nil
}

func (m *Machine) register(e Register) error {
	if len(m.workers) >= maxWorkers {
		return fmt.Errorf("worker %.64q: %w", e.Name, ErrTooManyWorkers)
	}
	if w := m.worker(e.Previous); w != nil && w.name == clip(e.Name, 256) {
		m.decide(Record{Kind: recordGone, Worker: w.id, Reason: "its process was started again"})
	}
	id := fmt.Sprintf("w%d", m.lastWorker+1)
	m.decide(Record{Kind: recordRegister, Worker: id, Name: clip(e.Name, 256), Slots: e.Slots, Memory: e.Memory, Cores: e.Cores, Version: clip(e.Version, 64), By: e.By})
	m.warnOfMemory(m.worker(id))
	m.out = append(m.out, Registered{Worker: id})
	return nil
}

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

// held is the live lease of an id, if the worker holds it.
func (m *Machine) held(worker string, id *taxonv1.LeaseId) *lease {
	l := m.leases[id.GetEpoch()]
	if planted("skip fencing") {
		for _, e := range m.epochs() {
			if k := m.leases[e]; k.job.ID == id.GetJob() && k.step == id.GetStep() && k.task == id.GetTask() {
				return k
			}
		}
	}
	if l == nil || l.worker != worker || l.job.ID != id.GetJob() || l.task != id.GetTask() ||
		l.step != id.GetStep() || l.attempt != id.GetAttempt() {
		return nil
	}
	return l
}

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

// report ends an attempt. A report under a lease that is no longer held changes nothing, unless
// an earlier copy of the same report has committed the attempt.
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

// committed says whether a report repeats the one that committed its attempt.
func (m *Machine) committed(e Report) bool {
	j := m.find(e.Lease.GetJob())
	if j == nil || j.step == nil || j.step.number != e.Lease.GetStep() || int(e.Lease.GetTask()) >= len(j.step.tasks) {
		return false
	}
	t := &j.step.tasks[e.Lease.GetTask()]
	if planted("commit twice") && t.state == taskDone && e.Error == "" && !e.Returned {
		t.committed = e.Lease.GetAttempt()
		return true
	}
	return t.state == taskDone && t.worker == e.Worker && t.epoch == e.Lease.GetEpoch() && t.committed == e.Lease.GetAttempt()
}

// endAttempt decides what a report under a live lease means.
func (m *Machine) endAttempt(l *lease, e Report) {
	r := Record{Kind: recordLost, Job: l.job.ID, Step: l.step, Task: l.task, Epoch: l.epoch}
	if want := len(l.job.plan.Sums); e.Error == "" && !e.Returned && len(e.Sums) != want {
		e.Unfit, e.Error = true, fmt.Sprintf("it reports %d figures, the job's method has %d: it is of another version of taxon", len(e.Sums), want)
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
			m.rollBack(j, fmt.Sprintf("task %d of step %d, which is run again to make a lost value, fails: %s", l.task, l.step, e.Error))
			break
		}
		r.Loss, r.Reason = lossError, e.Error
		m.decide(r)
	case l.job.step.tasks[l.task].errors+1 >= m.limits.MaxErrors:
		m.failTask(l, fmt.Sprintf("%s failed %d times, the last time: %s", l.job.step.describe(l.task), m.limits.MaxErrors, e.Error))
	default:
		r.Loss, r.Reason = lossError, e.Error
		m.decide(r)
	}
}

const (
	maxTaskSeconds = 1e9     // CPU seconds of one task: thirty years
	maxTaskBytes   = 1 << 50 // that one task reads, or writes
)

// check says why a task of the plan can't have reported this; nil: it can. The bounds keep the
// job's sums within the range of their types.
func (e *Report) check(p *method.Plan) error {
	switch {
	case !(e.CPUSeconds >= 0 && e.CPUSeconds <= maxTaskSeconds):
		return fmt.Errorf("its worker reports %g CPU seconds, which can't be: look after that worker, then resume the job", e.CPUSeconds)
	case e.Read > maxTaskBytes || e.Written > maxTaskBytes:
		return fmt.Errorf("its worker reports %d bytes read and %d written, which can't be: look after that worker, then resume the job", e.Read, e.Written)
	}
	return p.Check(e.Sums)
}

func (m *Machine) fail(j *job, reason string) {
	m.decide(Record{Kind: recordFail, Job: j.ID, Reason: reason})
}
