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

// compactBytes is the journal's size at which it is replaced by a snapshot: some thousand tasks'
// records.
const compactBytes = 4 << 20

// tickEvery bounds how late an expired lease or the end of a job's time is noticed.
const tickEvery = 100 * time.Millisecond

// Store is what the coordinator asks of the parameter store. Both calls are idempotent.
type Store interface {
	// Commit names the attempt of each task of a step that counts; 0: none.
	Commit(ctx context.Context, job string, step uint32, attempts []uint32) error
	// Drop deletes the job's steps below before that keep does not name; before of 2^32-1
	// with nothing to keep is the whole job.
	Drop(ctx context.Context, job string, keep []uint32, before uint32) error
}

// Checkpointer saves what a job can continue from: the machine's state of the job, and the
// store's values of the steps named. The state goes to Server.SubmitCheckpoint.
type Checkpointer interface {
	// Checkpoint replaces the job's last one. If that is impossible and the last one is still there,
	// the error may be ErrOlderKept: the job goes on.
	Checkpoint(ctx context.Context, job string, sweep uint32, state []byte, keepSteps []uint32) error
}

// Restorer is a Checkpointer that jobs can roll back to. Without one, a job whose values
// are lost starts again from its beginning.
type Restorer interface {
	// RestoreCheckpoint puts the values of the job's last checkpoint back into the store and
	// returns its state; nil: there is none.
	RestoreCheckpoint(ctx context.Context, job string) (state []byte, err error)
}

// Reserver is a Checkpointer that may have no room for a job, because files of something else are
// in its place. Then the job is refused before anything is written.
type Reserver interface {
	// Reserve says why a job could not be saved; state is what it continues from, nil for a new
	// one. confirm is called when the job was accepted.
	Reserve(ctx context.Context, job string, state []byte) (confirm func() error, err error)
}

// Digester reads the final weights of jobs. A job is done when it has named them.
type Digester interface {
	// Digest computes the digest of the weights for the job's status.
	Digest(ctx context.Context, job *taxonv1.JobResult, st *taxonv1.JobStatus) (machine.Digest, error)
	// Passing says whether the weights may be there in spite of an error, which may not occur
	// again.
	Passing(err error) bool
}

// ErrOlderKept is for a Checkpointer that could not replace a checkpoint.
var ErrOlderKept = errors.New("the older checkpoint is kept")

// ErrEarlyStop ends a training because an evaluation was good enough.
var ErrEarlyStop = errors.New("early stop")

// Config is what a Server works with. Store is required.
type Config struct {
	Store        Store
	Checkpointer Checkpointer // nil: jobs are durable through the journal, not by checkpoints
	// Evaluate gets the weights of every options.eval_every-th sweep, with the status of a job
	// that ended with them. Meanwhile the job waits. It continues when Evaluate returns nil, ends
	// with these weights on ErrEarlyStop, and fails on another error. nil: no evaluations, but
	// such sweeps are priced all the same.
	Evaluate func(ctx context.Context, st *taxonv1.JobStatus) error
	Digester Digester        // nil: a job is done without a digest of its weights
	Journal  journal.Journal // nil: none; a Server closes it
	Snapshot []byte          // what the journal held when it was opened
	Records  [][]byte
	Limits   machine.Limits
	// Caller names who makes a call, by its context: the owner of a job that it submits. nil: nobody
	// is known.
	Caller func(ctx context.Context) string
	Failed func(error) // called with each failure that belongs to no call (journal, store); nil: they are dropped
	// Notice is called with each event, in order, a little later. nil: they are dropped.
	Notice func(machine.Notice)
}

// Server is the gRPC shell of a Machine: it serves Jobs, Tasks and Members, keeps the clock,
// writes the journal and executes the machine's actions. Close ends it.
type Server struct {
	config  Config
	start   time.Time
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	joined  sync.WaitGroup
	closing sync.Once

	mu      sync.Mutex // guards what follows
	machine *machine.Machine
	wake    chan struct{} // closed and replaced when tasks may be waiting
	changed chan struct{} // closed and replaced when some status changed
	effects effects
	broken  error            // the journal failed: nothing is answered any more
	halted  chan struct{}    // closed when broken is set
	written uint64           // number of the last record in the journal
	durable uint64           // and of the last one of which that is known
	notices []machine.Notice // not told yet

	compacted int64 // bytes of the last snapshot; used by flushJournal alone
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

// Close stops the clock and the effects, ends waiting calls and closes the journal. It
// leaves jobs as they are: the next server continues them from the journal.
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
// whose journal can't be written should end. Started again, it continues from the end of the
// journal as soon as there is room on the disk.
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

// SubmitCheckpoint submits a job that continues from a checkpoint's state and returns its id.
func (s *Server) SubmitCheckpoint(state []byte) (string, error) {
	r := s.step(machine.SubmitCheckpoint{State: state})
	if r.err != nil {
		return "", r.err
	}
	return r.job, nil
}

// State is the state of a job for Branch, as a checkpoint would hold it now, and the steps whose
// values the next step would read. The job should have ended, because otherwise the values change
// meanwhile.
func (s *Server) State(id string) (state []byte, steps []uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.State(id)
}

// rebuild brings the machine to where the journal ends.
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

// now is wall-clock time that does not jump while the server lives.
func (s *Server) now() machine.Tick {
	return machine.Tick(s.start.UnixNano() + int64(time.Since(s.start)))
}

// caller names who makes a call; "": not known.
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

	written uint64 // the last record there was then
	own     uint64 // and the last one of this event; 0: none
}

// granted is the first of the leases that were handed out, nil if none were, and the rest.
func (r *reply) granted() (first *taxonv1.Lease, more []*taxonv1.Lease) {
	if len(r.leases) == 0 {
		return nil, nil
	}
	return r.leases[0], r.leases[1:]
}

// step gives the machine events one after the other, and executes the actions. It returns the
// answer once all records are durable, because the answer may depend on what another call has
// decided.
func (s *Server) step(events ...machine.Event) reply {
	r := s.stepNow(events...)
	if err := s.sync(r.written); err != nil {
		return reply{err: err}
	}
	return r
}

// heartbeat is step for a sign of life. Its answer waits for its own records only, and most have
// none. So a slow journal does not delay the caller's next sign of life.
func (s *Server) heartbeat(e machine.Event) reply {
	r := s.stepNow(e)
	if err := s.sync(r.own); err != nil {
		return reply{err: err}
	}
	return r
}

// stepNow is step without any wait.
func (s *Server) stepNow(events ...machine.Event) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stepLocked(events...)
}

// stepLocked is stepNow for a caller that holds mu.
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

// dispatch executes actions and notes what they answer; the caller holds mu.
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

// fail makes the server stop answering, because its answers would not be reliable. The caller
// holds mu.
func (s *Server) fail(err error) {
	if s.broken == nil {
		s.broken = fmt.Errorf("coordinator can't write its journal: %w", err)
		close(s.halted)
		s.warn(s.broken)
	}
}

func (s *Server) warn(err error) {
	if s.config.Failed != nil {
		s.config.Failed(err)
	}
}

// repeat does something at every tick, until the server closes.
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

// advanceClock lets the machine notice the passing of time. It waits for nothing: silent members
// are noticed however slow the journal is.
func (s *Server) advanceClock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stepLocked(machine.Time{Pending: s.written - s.durable})
}

// flushJournal makes records durable that no call waits for, and keeps the journal short.
func (s *Server) flushJournal() {
	s.mu.Lock()
	last := s.written
	s.mu.Unlock()
	if s.sync(last) == nil {
		s.compact()
	}
}

// compact replaces a long journal by a snapshot. It does so when the journal has grown by the
// size of the last snapshot. So the state bounds the size of the file, and writing snapshots
// costs no more than writing the records. The machine is blocked only while the snapshot is made,
// not while it is written.
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

// maxNotices bounds the events that wait to be told, while whoever listens is stuck. Later ones are
// dropped.
const maxNotices = 1 << 16

// keepNotice keeps an event until it is told. The caller holds mu, so nobody waits for a slow log.
func (s *Server) keepNotice(n machine.Notice) {
	if s.config.Notice != nil && len(s.notices) < maxNotices {
		s.notices = append(s.notices, n)
	}
}

// tellNotices tells the events that came since the last call.
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
