package machine

import (
	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Event is what happens to the machine.
type Event interface{ event() }

type (
	// Submit asks for a job. ID is the wanted id, empty for the next "job-N".
	Submit struct {
		ID       string
		Name     string
		Owner    string // who asks; "": not known
		Spec     *taxonv1.JobSpec
		Replicas uint32   // copies of each value; 0: one
		Avoid    []string // ids that are not to be given
		prepared *prepared
	}
	// SubmitCheckpoint asks for a job that continues from the state of a SaveJob action.
	SubmitCheckpoint struct{ State []byte }
	// Restore asks for a job to continue from such a state, whose values are on the shards
	// already. It replaces the job of its id, if that failed or was cancelled.
	Restore struct {
		State    []byte
		Owner    string // who asks; "": not known
		Shards   []string
		Replicas uint32
		revived  *job
	}
	// Resume asks for a cancelled or failed job to continue from its last committed step. With
	// Criteria, so does a job that its old criteria have ended.
	Resume struct {
		Job      string
		Criteria StopCriteria
		By       string // identity of the caller; empty: not known. So in the events below
	}
	// Register is a worker that joins. Memory is what its tasks may take, in bytes. 0: unknown.
	Register struct {
		Name   string
		Slots  uint32
		Memory uint64
		Cores  uint32 // of its host; 0: not told
		// Previous is the worker of this name whose process was killed; "": none.
		Previous string
		Version  string // of its taxon; "": unknown
		By       string
	}
	// Drain removes a worker, named by id or name, once it has finished its tasks.
	Drain struct{ Worker, By string }
	// JoinShard is a store shard that joins, or the heartbeat of one.
	JoinShard struct {
		ID, Addr        string
		Bytes, Capacity uint64
		Empty           bool // it holds no value at all
		Values          uint64
		Free, Reserve   uint64 // bytes; with less than Reserve free it refuses writes
		Version         string // of its taxon; "": unknown
		Repairing       bool   // it copies from others what it missed
		By              string
	}
	// ForgetShard removes a shard that is down from the list. With Force it does so even if jobs
	// have values on it.
	ForgetShard struct {
		ID    string
		Force bool
		By    string
	}
	// LeaveShard is a store shard that shuts down.
	LeaveShard struct{ ID string }
	// Leave is a worker that shuts down.
	Leave struct{ Worker string }
	// RequestTask is a worker with a free slot. Most bounds the tasks that it takes together. 0:
	// one.
	RequestTask struct {
		Worker string
		Most   uint32
		Waits  bool // for a task since an earlier RequestTask: this is no new sign of life
	}
	// Renew keeps leases of a worker alive.
	Renew struct {
		Worker string
		Leases []*taxonv1.LeaseId
	}
	// Report is the end of an attempt. Next asks for another task at once, or for Most.
	Report struct {
		Worker        string
		Lease         *taxonv1.LeaseId
		Error         string // empty: done
		Deterministic bool
		Returned      bool
		Sums          method.Sums
		CPUSeconds    float64
		Read, Written uint64          // bytes from and to the store
		Lost          []taxonv1.Place // with Error: values that the store should have and has not
		Unavailable   bool            // with Error: the store was away
		Unfit         bool            // with Error: this worker can't do the job's tasks, others may
		Next          bool
		Ahead         bool // with Next: the slot has work, the new task is for later
		Most          uint32
	}
	// Time says that time has passed: leases expire, silent workers are lost, jobs run out of
	// time. It does not wait for the journal: the last Pending records are not durable yet.
	Time struct{ Pending uint64 }
	// Cancel stops a job, keeping it resumable unless Discard is set.
	Cancel struct {
		Job     string
		Discard bool
		By      string
	}
	// Saved is the end of a SaveJob action; Err is its error, empty if there was none. OlderKept: the
	// job could continue from an older checkpoint all the same.
	Saved struct {
		Job       string
		Final     bool
		Err       string
		OlderKept bool
	}
	// Loaded is the end of a LoadJob action: the State of the job's last checkpoint, whose
	// values are in the store again; empty: there is none. Err is its error, if there was one.
	Loaded struct {
		Job   string
		State []byte
		Err   string
	}
	// WeightsLost says that the weights of a finished job are missing from the store.
	WeightsLost struct{ Job, Reason string }
	// Digested answers a DigestWeights action with the digest, or in Err with the reason why
	// there is none. Later: it will be tried again. The answer is Refused if that is not needed.
	Digested struct {
		Job    string
		Digest Digest
		Err    string
		Later  bool
	}
	// Evaluated is the end of an EvaluateWeights action; Err is its error, empty if there was none.
	// Stop: the job is to end with these weights.
	Evaluated struct {
		Job  string
		Err  string
		Stop bool
	}
)

// Prepare checks and plans the job, which is slow for a large tree. Step does it where the
// caller has not: a shell does it outside its lock. Pure.
func (e Submit) Prepare() (Submit, error) {
	var err error
	e.prepared, err = prepare(e.Spec)
	return e, err
}

// Prepare reads and plans the job, and returns its id. It does for Restore what Submit.Prepare
// does for Submit. Pure.
func (e Restore) Prepare() (prepared Restore, job string, err error) {
	if e.revived, err = reviveJob(e.State); err != nil {
		return e, "", err
	}
	return e, e.revived.ID, nil
}

func (Submit) event()           {}
func (SubmitCheckpoint) event() {}
func (Restore) event()          {}
func (Resume) event()           {}
func (Drain) event()            {}
func (JoinShard) event()        {}
func (LeaveShard) event()       {}
func (ForgetShard) event()      {}
func (Register) event()         {}
func (Leave) event()            {}
func (RequestTask) event()      {}
func (Renew) event()            {}
func (Report) event()           {}
func (Time) event()             {}
func (Cancel) event()           {}
func (Saved) event()            {}
func (WeightsLost) event()      {}
func (Digested) event()         {}
func (Evaluated) event()        {}
func (Loaded) event()           {}

// Action is what the shell must do, in order. Everything after a Persist action waits until its
// record is durable.
type Action interface{ action() }

type (
	// Persist makes a record durable in the journal.
	Persist struct{ Record Record }
	// Submitted answers Submit, SubmitCheckpoint and Restore. Displaced are the finished jobs whose
	// weights are dropped when it and the owner's other open jobs have finished.
	Submitted struct {
		Job       string
		Displaced []string
	}
	// Warned is for the operator.
	Warned struct{ Text string }
	// WorkerDrained answers RequestTask of a worker that is being drained. It gets no more tasks.
	WorkerDrained struct{}
	// Registered answers Register and Drain.
	Registered struct{ Worker string }
	// Grant answers RequestTask, and Report with Next, once for each task. Without one there is
	// nothing to do.
	Grant struct{ Lease *taxonv1.Lease }
	// Lost answers Renew: the leases that are no longer held, and the version of the list of shards.
	Lost struct {
		Leases        []*taxonv1.LeaseId
		ShardsVersion uint64
	}
	// Accepted answers Report if the report counted.
	Accepted struct{}
	// Refused answers an event that changed nothing.
	Refused struct{ Err error }
	// CommitStep sends the store the attempts of a step that count (0: none).
	CommitStep struct {
		Job      string
		Step     uint32
		Attempts []uint32
	}
	// DropSteps makes the store delete the steps below Before that Keep does not name. Before of
	// 2^32-1 with an empty Keep is the whole job.
	DropSteps struct {
		Job    string
		Keep   []uint32
		Before uint32
	}
	// SaveJob asks for a checkpoint. A Saved event must follow. DropSteps actions after it must
	// wait until it has ended.
	SaveJob struct {
		Job   string
		Sweep uint32
		State []byte
		Keep  []uint32
		Final bool // the job was cancelled and waits for it
	}
	// LoadJob asks for a job's last checkpoint: its values are put back into the store, and its
	// state is returned. A Loaded event must follow.
	LoadJob struct{ Job string }
	// EvaluateWeights asks for an evaluation: a step has written the weights of a sweep. The job
	// and its clock stop until an Evaluated event.
	EvaluateWeights struct {
		Job      string
		Sweep    uint32
		Step     uint32
		Attempts []uint32
	}
	// DigestWeights asks for the digest of a job's final weights. A Digested event must follow.
	// Until then the job is not done.
	DigestWeights struct{ Job string }
	// Wake makes parked askers ask again.
	Wake struct{}
	// Changed says to watchers that some status changed.
	Changed struct{}
	// Ended says that a job is over.
	Ended struct {
		Job   string
		State taxonv1.JobState
	}
)

// Effect is an action on the store or the checkpoints. The effects of a job are executed one
// after the other, in their order.
type Effect interface {
	Action
	EffectOn() (job string)
}

func (a CommitStep) EffectOn() string      { return a.Job }
func (a DropSteps) EffectOn() string       { return a.Job }
func (a SaveJob) EffectOn() string         { return a.Job }
func (a LoadJob) EffectOn() string         { return a.Job }
func (a EvaluateWeights) EffectOn() string { return a.Job }
func (a DigestWeights) EffectOn() string   { return a.Job }

func (Persist) action()         {}
func (Submitted) action()       {}
func (Warned) action()          {}
func (Registered) action()      {}
func (WorkerDrained) action()   {}
func (Grant) action()           {}
func (Lost) action()            {}
func (Accepted) action()        {}
func (Refused) action()         {}
func (CommitStep) action()      {}
func (DropSteps) action()       {}
func (SaveJob) action()         {}
func (LoadJob) action()         {}
func (EvaluateWeights) action() {}
func (DigestWeights) action()   {}
func (Wake) action()            {}
func (Changed) action()         {}
func (Ended) action()           {}
