package machine

import (
	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Event is something that happened outside the machine: a call, the result of an effect, or the
// passing of time.
type Event interface{ event() }

type (
	// Submit asks for a new job.
	Submit struct {
		// ID is the wanted id. If it is empty, the machine gives the next free "job-N".
		ID   string
		Name string
		// Owner identifies the submitter. It is empty if that is not known.
		Owner string
		Spec  *taxonv1.JobSpec
		// Replicas is the number of copies of each value. Zero means one.
		Replicas uint32
		// Avoid lists ids that the machine must not give.
		Avoid []string
		// prepared is set by Prepare.
		prepared *prepared
	}
	// SubmitCheckpoint asks for a job that continues from State, the state of a SaveJob action.
	SubmitCheckpoint struct{ State []byte }
	// Restore asks for a job that continues from the state of a SaveJob action, and whose values
	// are on the shards already. It replaces the job of its id if that has failed or was cancelled.
	Restore struct {
		State []byte
		// Owner identifies the caller. It is empty if that is not known.
		Owner string
		// Shards are the ids of the shards that hold the values, in order of placement.
		Shards []string
		// Replicas is the number of copies of each value. Zero means one.
		Replicas uint32
		// revived is set by Prepare.
		revived *job
	}
	// Resume asks for a cancelled or failed job to continue from its last committed step. With
	// Criteria it also continues a job that was ended by its old criteria.
	Resume struct {
		Job      string
		Criteria StopCriteria
		// By identifies the caller. It is empty if that is not known; so it is in the events below.
		By string
	}
	// Register is sent when a worker joins. The machine answers with Registered.
	Register struct {
		Name  string
		Slots uint32
		// Memory is what the worker's tasks may take together, in bytes. Zero means unknown.
		Memory uint64
		// Cores is the number of CPU cores of the worker's host. Zero means unknown.
		Cores uint32
		// Previous is the id of the worker that this process replaces, because its process was
		// killed. It is empty for a new worker.
		Previous string
		// Version is the worker's version of taxon. It is empty if that is not known.
		Version string
		By      string
	}
	// Drain asks a worker, named by id or name, to leave when it has finished its tasks.
	Drain struct{ Worker, By string }
	// JoinShard is sent when a store shard joins, and then as its heartbeat.
	JoinShard struct {
		ID, Addr string

		// Bytes is the size of the shard's values and Capacity the most that it may hold. A
		// capacity of zero means unknown.
		Bytes, Capacity uint64
		// Empty says that the shard holds no value at all.
		Empty bool
		// Values is the number of values that the shard holds.
		Values uint64
		// Free and Reserve are bytes of the shard's disk. A shard with less than Reserve free
		// refuses writes.
		Free, Reserve uint64
		// Version is the shard's version of taxon. It is empty if that is not known.
		Version string
		// Repairing says that the shard is copying values from other shards that it missed.
		Repairing bool
		By        string
	}
	// ForgetShard removes a shard that is down from the list. With Force it does so even if values
	// of jobs lie on it.
	ForgetShard struct {
		ID    string
		Force bool
		By    string
	}
	// LeaveShard is sent when a store shard shuts down.
	LeaveShard struct{ ID string }
	// Leave is sent when a worker shuts down. Its leases are lost at once.
	Leave struct{ Worker string }
	// RequestTask is sent by a worker with a free slot.
	RequestTask struct {
		Worker string
		// Most bounds the tasks that the slot takes together. Zero means one.
		Most uint32
		// Waits says that the request has waited since an earlier RequestTask, so that it is not a
		// new sign of life.
		Waits bool
	}
	// Renew keeps leases of a worker alive.
	Renew struct {
		Worker string
		Leases []*taxonv1.LeaseId
	}
	// Report is the end of an attempt.
	Report struct {
		Worker string
		Lease  *taxonv1.LeaseId
		// Error says why the attempt failed. It is empty if the attempt is done.
		Error string
		// Deterministic says that every worker would run into Error. The job fails at once.
		Deterministic bool
		// Returned says that the worker gave the task back without running it to its end.
		Returned bool
		// Sums are the task's figures, in the order of the plan's Sums.
		Sums       method.Sums
		CPUSeconds float64
		// Read and Written are bytes from and to the store.
		Read, Written uint64
		// Lost lists, together with Error, the values that the store should have and has not.
		Lost []taxonv1.Place
		// Unavailable says, together with Error, that the store could not be reached.
		Unavailable bool
		// Unfit says, together with Error, that this worker can't run the job's tasks, but others may.
		Unfit bool
		// Next asks for another task at once, or for up to Most of them.
		Next bool
		// Ahead says, together with Next, that the slot still has work, so that the new task is for later.
		Ahead bool
		Most  uint32
	}
	// Time says that time has passed: leases expire, silent workers are lost, jobs run out of time.
	// The caller does not wait for the journal before it sends one. The last Pending records are
	// not durable yet.
	Time struct{ Pending uint64 }
	// Cancel stops a job. It stays resumable unless Discard is set.
	Cancel struct {
		Job     string
		Discard bool
		By      string
	}
	// Saved is the result of a SaveJob action. Err is empty if it succeeded. OlderKept says that it
	// failed, but that the job could continue from an older checkpoint.
	Saved struct {
		Job       string
		Final     bool
		Err       string
		OlderKept bool
	}
	// Loaded is the result of a LoadJob action. State is the state in the job's last checkpoint,
	// whose values are back in the store. It is empty if there is no checkpoint. Err is empty if
	// the action succeeded.
	Loaded struct {
		Job   string
		State []byte
		Err   string
	}
	// WeightsLost says that the weights of a finished job are missing from the store.
	WeightsLost struct{ Job, Reason string }
	// Digested is the result of a DigestWeights action: the digest, or in Err the reason why there
	// is none. Later says that the caller will try again. The event is refused if the job no longer
	// needs a digest.
	Digested struct {
		Job    string
		Digest Digest
		Err    string
		Later  bool
	}
	// Evaluated is the result of an EvaluateWeights action. Err is empty if it succeeded. Stop says
	// that the job is to end with these weights.
	Evaluated struct {
		Job  string
		Err  string
		Stop bool
	}
)

// Prepare checks and plans the job, which is slow for a large tree. A caller that shares the
// machine calls it outside its lock; otherwise Step does the same. It is pure.
func (e Submit) Prepare() (Submit, error) {
	var err error
	e.prepared, err = prepare(e.Spec)
	return e, err
}

// Prepare reads and plans the job, and returns its id. It does for Restore what Submit.Prepare does
// for Submit. It is pure.
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

// Action is something that the caller of Step must do. Actions are executed in order, and those
// after a Persist action wait until its record is durable.
type Action interface{ action() }

type (
	// Persist asks for a record to be made durable in the journal, before any action after it has
	// an effect outside the process.
	Persist struct{ Record Record }
	// Submitted answers Submit, SubmitCheckpoint and Restore. Displaced lists the finished jobs
	// whose weights will be dropped when this job and the owner's other open jobs have finished.
	Submitted struct {
		Job       string
		Displaced []string
	}
	// Warned is a message for the operator.
	Warned struct{ Text string }
	// WorkerDrained answers a RequestTask of a worker that is being drained. It gets no more tasks.
	WorkerDrained struct{}
	// Registered answers Register and Drain with the id of the worker.
	Registered struct{ Worker string }
	// Grant answers RequestTask, and Report with Next, once for each task. If there is no Grant, no
	// task is waiting.
	Grant struct{ Lease *taxonv1.Lease }
	// Lost answers Renew. Leases are those that the worker no longer holds, and ShardsVersion is
	// the version of the list of shards.
	Lost struct {
		Leases        []*taxonv1.LeaseId
		ShardsVersion uint64
	}
	// Accepted answers a Report that counted.
	Accepted struct{}
	// Refused answers an event that changed nothing. Err says why.
	Refused struct{ Err error }
	// CommitStep tells the store which attempt of each task of a step counts. An attempt of 0 means
	// none.
	CommitStep struct {
		Job      string
		Step     uint32
		Attempts []uint32
	}
	// DropSteps makes the store delete the steps of a job that are below Before and not in Keep. A
	// Before of 2^32-1 with an empty Keep deletes the whole job.
	DropSteps struct {
		Job    string
		Keep   []uint32
		Before uint32
	}
	// SaveJob asks for a checkpoint of a job: its State and the store's values of the steps in
	// Keep. A Saved event must follow. DropSteps actions of the job that come after it wait until
	// it has ended, because they delete what it copies.
	SaveJob struct {
		Job   string
		Sweep uint32
		State []byte
		Keep  []uint32
		// Final says that the job was cancelled and ends when the checkpoint is written.
		Final bool
	}
	// LoadJob asks for a job's last checkpoint: its values are put back into the store and its
	// state is returned. A Loaded event must follow.
	LoadJob struct{ Job string }
	// EvaluateWeights asks for an evaluation of the weights that a step wrote at the end of a
	// sweep. The job and its clock stand still until an Evaluated event follows.
	EvaluateWeights struct {
		Job      string
		Sweep    uint32
		Step     uint32
		Attempts []uint32
	}
	// DigestWeights asks for the digest of a job's final weights. A Digested event must follow;
	// until then the job is not done.
	DigestWeights struct{ Job string }
	// Wake tells waiting RequestTask calls to ask again.
	Wake struct{}
	// Changed tells watchers that the status of some job or shard has changed.
	Changed struct{}
	// Ended says that a job has ended in State.
	Ended struct {
		Job   string
		State taxonv1.JobState
	}
)

// Effect is an action on the store or the checkpoints. The effects of one job are executed one
// after the other, in order. Each may run only when all records before it are durable.
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
