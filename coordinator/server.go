package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"taxon/coordinator/journal"
	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
)

// compactBytes is the size of the journal, in bytes, at which it is replaced by a snapshot. The
// records of some thousand tasks have about this size.
const compactBytes = 4 << 20

// tickEvery bounds how late an expired lease or the end of a job's time is noticed.
const tickEvery = 100 * time.Millisecond

// Store is the part of the parameter store that the coordinator calls. Both calls must be
// idempotent.
type Store interface {
	// Commit tells the store which attempt of each task of a step counts. An attempt of 0 means
	// none.
	Commit(ctx context.Context, job string, step uint32, attempts []uint32) error
	// Drop deletes the steps of a job that are below before and not in keep. A before of 2^32-1
	// with an empty keep deletes the whole job.
	Drop(ctx context.Context, job string, keep []uint32, before uint32) error
}

// Checkpointer saves what a job can continue from: the machine's state of the job, which goes to
// Server.SubmitCheckpoint, and the store's values of the steps given.
type Checkpointer interface {
	// Checkpoint replaces the job's last checkpoint. If that fails but the last one is still
	// intact, it may return ErrOlderKept, and the job continues.
	Checkpoint(ctx context.Context, job string, sweep uint32, state []byte, keepSteps []uint32) error
}

// Restorer is implemented by a Checkpointer that jobs can roll back to. Without it, a job whose
// values are lost starts again from its beginning.
type Restorer interface {
	// RestoreCheckpoint puts the values of the job's last checkpoint back into the store and
	// returns its state. A nil state means that there is no checkpoint.
	RestoreCheckpoint(ctx context.Context, job string) (state []byte, err error)
}

// Reserver is implemented by a Checkpointer that may have no room for a job, because files of
// something else are in its place. Such a job is refused before anything is written.
type Reserver interface {
	// Reserve returns an error if a job could not be saved. state is what the job continues from,
	// or nil for a new job. The caller calls confirm when the job was accepted.
	Reserve(ctx context.Context, job string, state []byte) (confirm func() error, err error)
}

// Digester reads the final weights of jobs. A job is done when they have a digest.
type Digester interface {
	// Digest computes the digest of the weights for the job's status.
	Digest(ctx context.Context, job *taxonv1.JobResult, st *taxonv1.JobStatus) (machine.Digest, error)
	// Passing reports whether an error of Digest may be transient, so that the weights may still
	// exist.
	Passing(err error) bool
}

// ErrOlderKept is returned by a Checkpointer that could not replace a checkpoint but has kept the
// older one.
var ErrOlderKept = errors.New("the older checkpoint is kept")

// ErrEarlyStop is returned by Config.Evaluate to end a training with the present weights.
var ErrEarlyStop = errors.New("early stop")

// Config is what a Server works with. Store is required.
type Config struct {
	// Store is the parameter store of the jobs' values.
	Store Store

	// Checkpointer saves jobs. If it is nil, jobs survive a restart through the journal alone.
	Checkpointer Checkpointer

	// Evaluate is called with the weights of every options.eval_every-th sweep, as the status of a
	// job that ended with them. The job waits meanwhile. It continues if Evaluate returns nil, ends
	// with these weights on ErrEarlyStop, and fails on another error. A nil Evaluate evaluates
	// nothing, but such sweeps compute a certificate all the same.
	Evaluate func(ctx context.Context, st *taxonv1.JobStatus) error

	// Digester digests the final weights. If it is nil, jobs end without a digest.
	Digester Digester

	// Journal keeps the machine's records; the Server closes it. Without one, jobs do not survive
	// the process.
	Journal journal.Journal

	// Snapshot and Records are what the journal held when it was opened.
	Snapshot []byte
	Records  [][]byte

	// Limits bounds the machine. NewServer sets the fields that follow from the other fields of
	// Config.
	Limits machine.Limits

	// Caller returns the identity of the caller, given the context of a call. A job's owner is the
	// caller that submitted it. If Caller is nil, callers have no identity.
	Caller func(ctx context.Context) string

	// Failed is called with each failure that belongs to no call, such as one of the journal or the
	// store. A nil Failed drops them.
	Failed func(error)

	// Notice is called with each event of the machine, in order. It is called a little after the
	// event, so that a slow log delays no call. A nil Notice drops them.
	Notice func(machine.Notice)
}

// Server is the gRPC shell of a Machine: it serves Jobs, Tasks and Members, keeps the clock, writes
// the journal and executes the machine's actions. Close ends it.
type Server struct {
	config  Config
	start   time.Time
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	joined  sync.WaitGroup
	closing sync.Once

	// mu guards the fields below.
	mu      sync.Mutex
	machine *machine.Machine
	// wake is closed and replaced when tasks may be waiting.
	wake chan struct{}
	// changed is closed and replaced when some status has changed.
	changed chan struct{}
	effects effects
	// broken is set when the journal has failed. Nothing is answered any more, and halted is
	// closed.
	broken error
	halted chan struct{}
	// written is the number of the last record that was appended to the journal.
	written uint64
	// durable is the number of the last record that is known to be durable.
	durable uint64
	// notices are the events that Notice has not been called with yet.
	notices []machine.Notice

	// compacted is the size of the last snapshot in bytes. Only flushJournal uses it.
	compacted int64
}

// NewServer rebuilds the machine from the journal's contents and starts it.
func NewServer(config Config) (*Server, error) {
	if config.Store == nil {
		return nil, errors.New("coordinator: no store is configured")
	}
	config.Limits.Checkpoints = config.Checkpointer != nil
	config.Limits.Evaluations = config.Evaluate != nil
	config.Limits.Digests = config.Digester != nil
	config.Limits.Durable = config.Journal != nil
	config.Limits = config.Limits.WithDefaults()
	config.Limits.MaxSilenceStep = config.Limits.Lease / 8 // some ticks; and most of a lease is left to be heard in
	s := &Server{
		config: config, start: time.Now(), machine: machine.New(config.Limits),
		wake: make(chan struct{}), changed: make(chan struct{}), halted: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.rebuild(); err != nil {
		s.cancel()
		return nil, err
	}
	s.joined.Go(func() { s.repeat(s.advanceClock) })
	if config.Notice != nil {
		s.joined.Go(func() { s.repeat(s.tellNotices) })
	}
	if config.Journal != nil {
		s.joined.Go(func() { s.repeat(s.flushJournal) })
	}
	return s, nil
}

// Register adds the services to a gRPC server.
func (s *Server) Register(g grpc.ServiceRegistrar) {
	taxonv1.RegisterJobsServer(g, &jobService{Server: s})
	taxonv1.RegisterTasksServer(g, &taskService{Server: s})
	taxonv1.RegisterMembersServer(g, &memberService{Server: s})
}

// jobService, taskService and memberService are the Server as each service sees it.
type (
	jobService struct {
		taxonv1.UnimplementedJobsServer
		*Server
	}
	taskService struct {
		taxonv1.UnimplementedTasksServer
		*Server
	}
	memberService struct {
		taxonv1.UnimplementedMembersServer
		*Server
	}
)

// Close stops the clock and the effects, ends waiting calls and closes the journal. It does not end
// jobs, because the next server continues them from the journal.
func (s *Server) Close() error {
	var err error
	s.closing.Do(func() {
		s.cancel()
		s.effects.close()
		s.joined.Wait()
		if s.config.Notice != nil {
			s.tellNotices()
		}
		if s.config.Journal != nil {
			err = s.config.Journal.Close()
		}
	})
	return err
}

// Wait returns nil when ctx ends, or the reason why the server has stopped answering. A process
// whose journal can't be written should end. When it is started again, it continues from the end of
// the journal.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.halted:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.broken
	}
}

// SubmitCheckpoint submits a job that continues from the state of a checkpoint, and returns its id.
func (s *Server) SubmitCheckpoint(state []byte) (string, error) {
	r := s.step(machine.SubmitCheckpoint{State: state})
	if r.err != nil {
		return "", r.err
	}
	return r.job, nil
}

// State returns the state of a job for machine.Branch, as a checkpoint would hold it now, and the
// steps whose values the next step would read. The job should have ended, because otherwise the
// values change meanwhile.
func (s *Server) State(id string) (state []byte, steps []uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.State(id)
}

// rebuild brings the machine to the state in which the journal ends.
func (s *Server) rebuild() error {
	if s.config.Snapshot != nil {
		if err := s.machine.LoadSnapshot(s.config.Snapshot); err != nil {
			return err
		}
	}
	for n, data := range s.config.Records {
		var r machine.Record
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("journal record %d: %w", n, err)
		}
		if err := s.machine.Replay(r); err != nil {
			return fmt.Errorf("journal record %d: %w", n, err)
		}
	}
	s.config.Snapshot, s.config.Records = nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch(s.machine.Recover(s.now()), &reply{})
	return nil
}

// now returns the wall-clock time, without jumps while the server lives.
func (s *Server) now() machine.Tick {
	return machine.Tick(s.start.UnixNano() + int64(time.Since(s.start)))
}

// caller identifies the caller of a call. It is empty if that is not known.
func (s *Server) caller(ctx context.Context) string {
	if s.config.Caller == nil {
		return ""
	}
	return s.config.Caller(ctx)
}

// reply collects the actions that answer an event.
type reply struct {
	err       error
	job       string
	displaced []string
	worker    string
	leases    []*taxonv1.Lease
	lost      machine.Lost
	accepted  int
	dismissed bool

	// written is the number of the last record at the time of the answer, and own that of the last
	// record of this event. own is zero if the event made no record.
	written uint64
	own     uint64
}

// granted returns the first of the granted leases, or nil if there are none, and the others.
func (r *reply) granted() (first *taxonv1.Lease, more []*taxonv1.Lease) {
	if len(r.leases) == 0 {
		return nil, nil
	}
	return r.leases[0], r.leases[1:]
}

// step gives the machine events one after the other and executes the actions. It returns the answer
// once all records are durable, including those of other calls, because the answer may depend on
// them.
func (s *Server) step(events ...machine.Event) reply {
	r := s.stepNow(events...)
	if err := s.sync(r.written); err != nil {
		return reply{err: err}
	}
	return r
}

// heartbeat does what step does, for a member's sign of life. Its answer waits for its own records
// only, and most have none. So a slow journal does not delay the caller's next sign of life.
func (s *Server) heartbeat(e machine.Event) reply {
	r := s.stepNow(e)
	if err := s.sync(r.own); err != nil {
		return reply{err: err}
	}
	return r
}

// stepNow does what step does, but does not wait for the journal.
func (s *Server) stepNow(events ...machine.Event) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stepLocked(events...)
}

// stepLocked does what stepNow does, for a caller that holds mu.
func (s *Server) stepLocked(events ...machine.Event) (r reply) {
	if s.broken != nil {
		return reply{err: s.broken}
	}
	before := s.written
	for _, e := range events {
		s.dispatch(s.machine.Step(s.now(), e), &r)
	}
	if r.written = s.written; r.written > before {
		r.own = r.written
	}
	return r
}

// dispatch executes actions and collects the answers in r. The caller holds mu.
func (s *Server) dispatch(actions []machine.Action, r *reply) {
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Persist:
			s.append(a.Record)
		case machine.Submitted:
			r.job, r.displaced = a.Job, a.Displaced
		case machine.Warned:
			s.warn(errors.New(a.Text))
		case machine.Registered:
			r.worker = a.Worker
		case machine.Grant:
			r.leases = append(r.leases, a.Lease)
		case machine.Lost:
			r.lost = a
		case machine.WorkerDrained:
			r.dismissed = true
		case machine.Accepted:
			r.accepted++
		case machine.Refused:
			r.err = a.Err
		case machine.Effect:
			s.effects.add(a.EffectOn(), effect{action: a, after: s.written}, s.execute)
		case machine.Wake:
			close(s.wake)
			s.wake = make(chan struct{})
		case machine.Changed, machine.Ended:
			close(s.changed)
			s.changed = make(chan struct{})
		case machine.Notice:
			s.keepNotice(a)
		}
	}
}

// append writes a record to the journal's buffer. The caller holds mu.
func (s *Server) append(r machine.Record) {
	j := s.config.Journal
	if j == nil {
		return
	}
	data, err := json.Marshal(&r)
	if err != nil {
		s.fail(fmt.Errorf("journal: record %s: %w", r.Kind, err))
		return
	}
	s.written = j.Append(data)
}

// sync waits until a record is durable.
func (s *Server) sync(number uint64) error {
	j := s.config.Journal
	if j == nil || number == 0 {
		return nil
	}
	err := j.Sync(number)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.fail(err)
		return err
	}
	s.durable = max(s.durable, number)
	return nil
}

// fail makes the server stop answering, because its answers would not be reliable. The caller holds
// mu.
func (s *Server) fail(err error) {
	if s.broken == nil {
		s.broken = fmt.Errorf("coordinator can't write its journal: %w", err)
		close(s.halted)
		s.warn(s.broken)
	}
}

// warn reports a failure to Config.Failed.
func (s *Server) warn(err error) {
	if s.config.Failed != nil {
		s.config.Failed(err)
	}
}

// repeat calls do at every tick until the server closes.
func (s *Server) repeat(do func()) {
	clock := time.NewTicker(min(tickEvery, max(time.Duration(s.config.Limits.MaxSilenceStep), time.Millisecond)))
	defer clock.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-clock.C:
			do()
		}
	}
}

// advanceClock tells the machine the time. It does not wait for the journal, so silent members are
// noticed however slow the journal is.
func (s *Server) advanceClock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stepLocked(machine.Time{Pending: s.written - s.durable})
}

// flushJournal makes durable the records for which no call waits, and keeps the journal short.
func (s *Server) flushJournal() {
	s.mu.Lock()
	last := s.written
	s.mu.Unlock()
	if s.sync(last) == nil {
		s.compact()
	}
}

// compact replaces a long journal by a snapshot when it has grown by the size of the last snapshot.
// So the size of the state bounds that of the file, and writing snapshots costs no more than
// writing the records. The machine is blocked while the snapshot is made, but not while it is
// written.
func (s *Server) compact() {
	j := s.config.Journal
	if j.Size() < max(compactBytes, s.compacted) {
		return
	}
	err := j.Compact(func(cut func()) []byte {
		s.mu.Lock()
		defer s.mu.Unlock()
		cut()
		snapshot := s.machine.Snapshot()
		s.compacted = int64(len(snapshot))
		return snapshot
	})
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fail(err)
	}
}

// maxNotices bounds the events that wait while Config.Notice is stuck. Later ones are dropped.
const maxNotices = 1 << 16

// keepNotice queues an event for Config.Notice. The caller holds mu.
func (s *Server) keepNotice(n machine.Notice) {
	if s.config.Notice != nil && len(s.notices) < maxNotices {
		s.notices = append(s.notices, n)
	}
}

// tellNotices passes the events since the last call to Config.Notice.
func (s *Server) tellNotices() {
	s.mu.Lock()
	list := s.notices
	s.notices = nil
	s.mu.Unlock()
	for _, n := range list {
		s.config.Notice(n)
	}
}

// Lookahead describes the job's current step and the step after it.
func (s *Server) Lookahead(id string) (machine.Lookahead, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Lookahead(id)
}
