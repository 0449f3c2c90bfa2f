package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// Tick is a time in nanoseconds since a start that the shell chooses. It never falls.
type Tick int64

const (
	millisecond Tick = 1e6
	second      Tick = 1e9
)

// Seconds is the tick in seconds.
func (t Tick) Seconds() float64 { return float64(t) / float64(second) }

// Limits bounds what the machine does. The zero value of a field means its default.
type Limits struct {
	Lease           Tick   // a lease lives this long without renewal; a worker too. Default 10 s
	Backoff         Tick   // before a task that was lost twice, or errored once, goes out again; doubles. Default 100 ms
	MaxBackoff      Tick   // Default 5 s
	MaxLosses       uint32 // of one task before its job fails: it seems to kill its workers. Default 30
	MaxErrors       uint32 // of one task that need not come again, before its job fails. Default 6: some ten seconds of back-off
	MaxOutage       Tick   // of the store, before a job that needs it fails. Default 10 min
	MaxRollbacks    uint32 // of a job, before it fails. Default 8
	Straggler       Tick   // no second attempt at a task that runs for less. Default 2 s
	KeepInputs      bool   // keep what the last steps read, so that values which the store loses can be made again
	MaxRunning      int    // jobs that run at once, others queue. Default 4
	MaxQueued       int    // jobs that wait; more are refused. Default 100
	KeepJobs        int    // ended jobs whose values are kept. Default 100
	KeepFor         Tick   // how long they are kept at most. Default 30 days
	NeedShards      bool   // refuse jobs while no store shard is up
	Checkpoints     bool   // emit SaveJob actions
	Shows           bool   // emit ShowWeights actions
	CheckpointEvery Tick   // least time between two of them. Default 10 s
}

// withDefaults fills the fields that are zero.
func (l Limits) withDefaults() Limits {
	fill(&l.Lease, 10*second)
	fill(&l.Backoff, 100*millisecond)
	fill(&l.MaxBackoff, 5*second)
	fill(&l.MaxLosses, 30)
	fill(&l.MaxErrors, 6)
	fill(&l.MaxRunning, 4)
	fill(&l.MaxOutage, 600*second)
	fill(&l.MaxRollbacks, 8)
	fill(&l.Straggler, 2*second)
	fill(&l.MaxQueued, 100)
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

// Machine is the state of all jobs and workers. It is pure: no clock, no I/O, no
// goroutines; the shell calls Step from one goroutine at a time and carries out the
// actions in their order.
type Machine struct {
	limits        Limits
	jobs          []*job // in order of submission
	byID          map[string]*job
	workers       []*workerState        // in order of registration
	gone          []*taxonv1.WorkerInfo // the last ones that went; not journaled
	shards        []*shardState         // in order of joining
	leases        map[uint64]*lease
	lastEpoch     uint64
	lastWorker    uint64
	lastJob       uint64
	shardsVersion uint64

	now Tick
	out []Action
}

// workerState is a registered worker. seen is not journaled: after a restart every
// worker has a lease's time to be heard.
type workerState struct {
	id, name string
	slots    uint32
	memory   uint64
	draining bool
	seen     Tick
	done     uint64 // tasks; not journaled
}

// lease is a live attempt. expires is not journaled, like workerState.seen.
type lease struct {
	job     *job
	step    uint32
	task    uint32
	attempt uint32
	epoch   uint64
	worker  string
	granted Tick
	expires Tick
	called  bool // idle workers were told that it straggles
}

// remaking says whether the lease is of a task of a past step.
func (l *lease) remaking() bool { return l.job.step == nil || l.step != l.job.step.number }

// NewMachine is a machine without jobs or workers.
func NewMachine(limits Limits) *Machine {
	return &Machine{limits: limits.withDefaults(), byID: map[string]*job{}, leases: map[uint64]*lease{}}
}

// Errors in Refused actions.
var (
	ErrUnknownWorker = errors.New("worker is not registered (any more): register again")
	ErrUnknownJob    = errors.New("no such job")
	ErrUnknownMember = errors.New("no such member is registered")
	ErrNotResumable  = errors.New("only a cancelled or failed job whose values are kept can be resumed")
	ErrJobExists     = errors.New("a job of this id exists with another specification")
	ErrTooManyJobs   = errors.New("too many jobs: wait until one has ended")
)

// Step folds one event into the state and returns what the shell must do.
func (m *Machine) Step(now Tick, e Event) []Action {
	m.now, m.out = max(now, m.now), nil
	switch e := e.(type) {
	case Submit:
		m.submit(e)
	case Resume:
		m.resume(e)
	case Reopen:
		m.reopen(e.Job)
	case Register:
		id := fmt.Sprintf("w%d", m.lastWorker+1)
		m.decide(Record{Kind: recordRegister, Worker: id, Name: clip(e.Name, 256), Slots: e.Slots, Memory: e.Memory})
		m.out = append(m.out, Registered{Worker: id})
	case Drain:
		m.drain(e.Worker)
	case JoinShard:
		m.joinShard(e)
	case LeaveShard:
		m.leaveShard(e.ID)
	case Leave:
		if m.worker(e.Worker) != nil {
			m.decide(Record{Kind: recordGone, Worker: e.Worker})
		}
	case Ask:
		if m.hear(e.Worker) {
			m.grant(e.Worker)
			if m.worker(e.Worker).draining {
				m.out = append(m.out, Dismissed{})
			}
		}
	case Renew:
		m.renew(e)
	case Report:
		m.report(e)
	case Time:
		m.time()
	case Cancel:
		m.cancel(e)
	case Saved:
		m.saved(e)
	case Loaded:
		m.loaded(e)
	case Shown:
		m.shown(e)
	}
	m.startQueued()
	out := m.out
	m.out = nil
	return out
}

// find is the job of an id; nil if there is none.
func (m *Machine) find(id string) *job { return m.byID[id] }

// worker is the worker of an id; nil if it is not registered.
func (m *Machine) worker(id string) *workerState {
	for _, w := range m.workers {
		if w.id == id {
			return w
		}
	}
	return nil
}

func (m *Machine) alive(worker string) bool { return m.worker(worker) != nil }

// hear notes that a worker lives; an unknown one is refused.
func (m *Machine) hear(id string) bool {
	w := m.worker(id)
	if w == nil {
		m.refuse(ErrUnknownWorker)
		return false
	}
	w.seen = m.now
	return true
}

func (m *Machine) refuse(err error) { m.out = append(m.out, Refused{Err: err}) }

// prepareBytes is prepare of a serialised specification.
func prepareBytes(data []byte) (*prepared, error) {
	spec := &taxonv1.JobSpec{}
	if err := proto.Unmarshal(data, spec); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	return prepare(spec)
}

func (m *Machine) submit(e Submit) {
	p := e.prepared
	if p == nil {
		var err error
		if p, err = prepare(e.Spec); err != nil {
			m.refuse(err)
			return
		}
	}
	id := e.ID
	if id == "" {
		id = m.freeID()
	}
	j, err := newJob(id, p)
	if err != nil {
		m.refuse(err)
		return
	}
	if old := m.find(id); old != nil {
		if slices.Equal(old.Spec, j.Spec) {
			m.out = append(m.out, Submitted{Job: id})
		} else {
			m.refuse(fmt.Errorf("job %s: %w", id, ErrJobExists))
		}
		return
	}
	if m.full() {
		return
	}
	if err := m.tooLarge(p, e.Replicas); err != nil {
		m.refuse(err)
		return
	}
	shards, err := m.pin(e.Replicas)
	if err != nil {
		m.refuse(err)
		return
	}
	m.decide(Record{Kind: recordSubmit, Job: id, Name: clip(e.Name, 256), Payload: j.Spec, Shards: shards, Replicas: e.Replicas, prepared: p})
	m.out = append(m.out, Submitted{Job: id})
}

func (m *Machine) freeID() string {
	for n := m.lastJob + 1; ; n++ {
		if id := fmt.Sprintf("job-%d", n); m.find(id) == nil {
			return id
		}
	}
}

// full refuses another job if the queue is.
func (m *Machine) full() bool {
	if m.openJobs() < m.limits.MaxRunning+m.limits.MaxQueued {
		return false
	}
	m.refuse(fmt.Errorf("%d jobs run or wait, the most there may be: %w", m.limits.MaxRunning+m.limits.MaxQueued, ErrTooManyJobs))
	return true
}

func (m *Machine) openJobs() int {
	n := 0
	for _, j := range m.jobs {
		if !j.ended() {
			n++
		}
	}
	return n
}

func (m *Machine) resume(e Resume) {
	j, err := reviveJob(e.State)
	if err != nil {
		m.refuse(err)
		return
	}
	if m.find(j.ID) != nil {
		m.refuse(fmt.Errorf("job %s: %w", j.ID, ErrJobExists))
		return
	}
	if m.full() {
		return
	}
	shards, err := m.pin(j.Replicas)
	if err != nil {
		m.refuse(err)
		return
	}
	m.decide(Record{Kind: recordRestore, Job: j.ID, Payload: e.State, Shards: shards, restored: j})
	m.out = append(m.out, Submitted{Job: j.ID})
}

// reopen queues a job again that was cancelled or failed.
func (m *Machine) reopen(id string) {
	j := m.find(id)
	switch {
	case j == nil:
		m.refuse(fmt.Errorf("job %s: %w", id, ErrUnknownJob))
	case !j.ended(): // it goes on anyway
	case !j.resumable():
		m.refuse(fmt.Errorf("job %s: %w", id, ErrNotResumable))
	case m.full():
	default:
		m.decide(Record{Kind: recordReopen, Job: id})
	}
}

// drain lets a worker finish what it has and gives it no more.
func (m *Machine) drain(id string) {
	w, err := m.namedWorker(id)
	if err != nil {
		m.refuse(err)
		return
	}
	if !w.draining {
		m.decide(Record{Kind: recordDrain, Worker: w.id})
	}
	m.out = append(m.out, Registered{Worker: w.id}, Wake{})
}

// startQueued starts queued jobs, oldest first, while fewer than MaxRunning run.
func (m *Machine) startQueued() {
	running := 0
	for _, j := range m.jobs {
		if j.State == taxonv1.JobState_JOB_STATE_RUNNING {
			running++
		}
	}
	for _, j := range m.jobs {
		if running >= m.limits.MaxRunning {
			return
		}
		if j.State == taxonv1.JobState_JOB_STATE_QUEUED {
			running++
			m.decide(Record{Kind: recordStart, Job: j.ID})
		}
	}
}

// leastUsed is what a job that starts begins with: no more rights than the others have.
func (m *Machine) leastUsed(but *job) float64 {
	least, found := but.used, false
	for _, j := range m.jobs {
		if j != but && j.inFlight() && (!found || j.used < least) {
			least, found = j.used, true
		}
	}
	return least
}

// grant hands a task to a worker: of the running job with the fewest live leases that has
// one waiting; among equals of the one that has had the fewest slot-seconds, then of the
// oldest. So each running job has its share of the slots at any time, and over time, too,
// where there are fewer slots than jobs. What waits for nobody may still straggle.
func (m *Machine) grant(worker string) {
	w := m.worker(worker)
	if w.draining {
		return
	}
	var few [8]*job
	candidates := few[:0]
	for _, j := range m.jobs {
		if j.running() && (len(j.remakes) > 0 || j.step.done+j.step.live < len(j.step.tasks)) && m.fits(j, w) {
			candidates = append(candidates, j)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *job) int {
		return cmp.Or(a.leases-b.leases, cmp.Compare(a.used, b.used))
	})
	for _, j := range candidates {
		if len(j.remakes) > 0 { // others may need what is made again
			if r := j.dueRemake(m.now); r != nil {
				m.handOut(j, r.Step, r.Task, worker)
				return
			}
			continue
		}
		s := j.step
		n, ok := s.queue.pop(worker,
			func(t uint32) bool { return s.tasks[t].state == taskWaiting && s.tasks[t].attempt == 0 },
			func(t uint32) bool { return s.tasks[t].state == taskWaiting && s.tasks[t].notBefore <= m.now })
		if !ok {
			continue
		}
		m.handOut(j, s.number, n, worker)
		return
	}
	if len(m.workers) > 1 {
		m.speculate(worker)
	}
}

// handOut leases a task of the step under way, or of a past one, to a worker.
func (m *Machine) handOut(j *job, number, n uint32, worker string) {
	epoch := m.lastEpoch + 1
	m.decide(Record{Kind: recordGrant, Job: j.ID, Worker: worker, Step: number, Task: n, Epoch: epoch})
	s := j.step
	if number != s.number {
		s = j.past(number).bringBack()
		s.tasks[n].epoch = epoch
	}
	m.out = append(m.out, Grant{Lease: s.lease(j, n)})
}

// held is the live lease that an id names, if the worker holds it.
func (m *Machine) held(worker string, id *taxonv1.LeaseId) *lease {
	l := m.leases[id.GetEpoch()]
	if l == nil || l.worker != worker || l.job.ID != id.GetJob() || l.task != id.GetTask() ||
		l.step != id.GetStep() || l.attempt != id.GetAttempt() {
		return nil
	}
	return l
}

func (m *Machine) renew(e Renew) {
	if !m.hear(e.Worker) {
		return
	}
	var lost []*taxonv1.LeaseId
	for _, id := range e.Leases {
		if l := m.held(e.Worker, id); l != nil {
			l.expires = m.now + m.limits.Lease
		} else {
			lost = append(lost, id)
		}
	}
	m.out = append(m.out, Lost{Leases: lost})
}

// report ends an attempt. A report under a lease that is no longer held changes nothing,
// unless the very attempt was committed by an earlier copy of the report.
func (m *Machine) report(e Report) {
	if !m.hear(e.Worker) {
		return
	}
	if l := m.held(e.Worker, e.Lease); l != nil {
		m.conclude(l, e)
		m.out = append(m.out, Accepted{})
	} else if m.committed(e) {
		m.out = append(m.out, Accepted{})
	}
	if e.Next {
		m.grant(e.Worker)
	}
}

// committed says whether a report repeats the one that committed its attempt.
func (m *Machine) committed(e Report) bool {
	j := m.find(e.Lease.GetJob())
	if j == nil || j.step == nil || j.step.number != e.Lease.GetStep() || int(e.Lease.GetTask()) >= len(j.step.tasks) {
		return false
	}
	t := &j.step.tasks[e.Lease.GetTask()]
	return t.state == taskDone && t.worker == e.Worker && t.epoch == e.Lease.GetEpoch() && t.committed == e.Lease.GetAttempt()
}

// conclude decides what a report under a live lease means.
func (m *Machine) conclude(l *lease, e Report) {
	r := Record{Kind: recordLost, Job: l.job.ID, Step: l.step, Task: l.task, Epoch: l.epoch}
	e.Error = clip(e.Error, maxLineBytes)
	switch {
	case e.Returned:
		m.decide(r)
	case e.Error == "" && !e.Sums.finite(e.CPUSeconds):
		m.failTask(l, l.job.step.describe(l.task)+": "+errNotFinite.Error())
	case e.Error == "":
		r.Kind, r.Sums, r.CPU, r.Read, r.Written = recordDone, &e.Sums, e.CPUSeconds, e.Read, e.Written
		m.decide(r)
	case len(e.Lost) > 0:
		m.missing(l, e)
	case e.Deterministic:
		m.failTask(l, e.Error)
	case e.Unavailable:
		if !m.outage(l, e) {
			r.Loss, r.Reason = lossAway, e.Error
			m.decide(r)
		}
	case l.remaking():
		if j := l.job; j.findRemake(l.step, l.task).Errors+1 >= m.limits.MaxErrors {
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

// finite says whether the figures can be summed and journaled.
func (s *Sums) finite(cpu float64) bool {
	for _, x := range []float64{s.Primal, s.Dual, s.InnerGap, s.Restart, s.Moved, cpu} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

func (m *Machine) fail(j *job, reason string) {
	m.decide(Record{Kind: recordFail, Job: j.ID, Reason: reason})
}

// epochs lists the live leases' epochs, ascending.
func (m *Machine) epochs() []uint64 {
	out := make([]uint64, 0, len(m.leases))
	for e := range m.leases {
		out = append(out, e)
	}
	slices.Sort(out)
	return out
}

// time lets the clock strike: silent workers, expired leases, tasks whose back-off is
// over, jobs whose time is up.
func (m *Machine) time() {
	for _, w := range slices.Clone(m.workers) {
		if w.seen+m.limits.Lease <= m.now {
			m.decide(Record{Kind: recordGone, Worker: w.id, Reason: "silent"})
		}
	}
	m.missShards()
	for _, e := range m.epochs() {
		if l := m.leases[e]; l != nil && l.expires <= m.now {
			m.decide(Record{Kind: recordLost, Job: l.job.ID, Step: l.step, Task: l.task,
				Epoch: e, Loss: lossExpired, Reason: "lease expired"})
		}
	}
	for _, j := range m.jobs {
		if !j.running() {
			continue
		}
		if limit := j.spec.GetOptions().GetMaxSeconds(); limit > 0 && !j.outer.Force && j.spentAt(m.now).Seconds() >= limit {
			m.decide(Record{Kind: recordTime, Job: j.ID})
		}
		m.checkLosses(j)
	}
	m.callForHelp()
	m.retire()
}

// checkLosses fails a job whose task loses every worker it goes to, and wakes askers for
// tasks whose back-off is over.
func (m *Machine) checkLosses(j *job) {
	if j.step == nil { // its time was up, or it has failed
		return
	}
	for _, r := range j.remakes {
		if r.Losses > m.limits.MaxLosses {
			m.rollBack(j, fmt.Sprintf("task %d of step %d, which is run again to make a lost value, lost its worker %d times", r.Task, r.Step, r.Losses))
			return
		}
		if r.Epoch == 0 && r.NotBefore <= m.now {
			m.out = append(m.out, Wake{})
		}
	}
	for _, n := range j.step.queue.again {
		t := &j.step.tasks[n]
		if t.losses > m.limits.MaxLosses {
			m.fail(j, fmt.Sprintf("step %d (%s), task %d lost its worker %d times: look at the workers' memory and logs",
				j.step.number, j.step.spec.Phase, n, t.losses))
			return
		}
		if t.notBefore <= m.now {
			m.out = append(m.out, Wake{})
		}
	}
}

// cancel stops a job. Discarded, an ended one loses its values too.
func (m *Machine) cancel(e Cancel) {
	j := m.find(e.Job)
	switch {
	case j == nil:
		m.refuse(fmt.Errorf("job %s: %w", e.Job, ErrUnknownJob))
	case j.ended() || j.closing && !e.Discard:
		if e.Discard && !j.Dropped {
			m.decide(Record{Kind: recordDiscard, Job: e.Job})
		}
	case j.State == taxonv1.JobState_JOB_STATE_RUNNING && m.limits.Checkpoints && !e.Discard && !j.rolling:
		m.decide(Record{Kind: recordCancel, Job: e.Job})
		m.out = append(m.out, m.save(j, m.now, true))
	default:
		m.decide(Record{Kind: recordCancelOK, Job: e.Job})
		if e.Discard {
			m.decide(Record{Kind: recordDiscard, Job: e.Job})
		}
	}
}

func (m *Machine) saved(e Saved) {
	j := m.find(e.Job)
	switch {
	case j == nil || j.ended():
	case e.Err != "":
		m.fail(j, "checkpoint: "+e.Err)
	case e.Final && j.closing:
		m.decide(Record{Kind: recordCancelOK, Job: j.ID})
	}
}

// shown lets a job go on whose weights have been evaluated.
func (m *Machine) shown(e Shown) {
	j := m.find(e.Job)
	switch {
	case j == nil || !j.showing: // cancelled meanwhile
	case e.Err != "":
		m.fail(j, fmt.Sprintf("sweep %d: evaluation: %s", j.outer.Sweep, e.Err))
	default:
		m.decide(Record{Kind: recordShown, Job: j.ID})
	}
}
