package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// prepared is what follows from a specification alone.
type prepared struct {
	spec     *taxonv1.JobSpec
	run      runOptions // of spec
	method   method.Method
	plan     *method.Plan
	estimate method.Estimate
}

// prepare checks a specification, plans it and estimates its cost. It is pure, and slow for large
// trees.
func prepare(spec *taxonv1.JobSpec) (*prepared, error) {
	p, err := registry.Prepare(spec)
	if err != nil {
		return nil, err
	}
	run, err := runOptionsOf(spec.GetOptions())
	if err != nil {
		return nil, err
	}
	return &prepared{spec: spec, run: run, method: p.Method, plan: p.Plan, estimate: p.Estimate}, nil
}

// places are the places of one value per item of a list. Their JSON is run-length coded.
type places []taxonv1.Place

// values are the places of all families of values by name. Each family has a list of its versions,
// the newest first.
type values map[string][]places

// stateVersion changes with the meaning of jobState.
const stateVersion = 2

// jobState is everything that a job's next step depends on, between two steps. A checkpoint
// consists of it and of the values of keepSteps.
type jobState struct {
	Version int
	ID      string
	Spec    []byte // JobSpec, serialised
	State   taxonv1.JobState
	Error   string
	Driver  method.State
	// TimeUp says that max_seconds are used up, or that Early is set.
	TimeUp bool `json:",omitempty"`
	// Early says that an evaluation has ended the training.
	Early bool `json:",omitempty"`
	// Last replaces Driver in a job whose values were dropped.
	Last *method.Progress `json:",omitempty"`
	// StepNo is the number of the last step that was begun. Numbers are never used again.
	StepNo uint32
	Values values

	// Committed is the highest committed sweep.
	Committed uint32
	Trace     []traceRecord
	// Spent is the training time up to the last start or resume.
	Spent       Tick
	CPUSeconds  float64
	Retried     uint32
	WorkersLost uint32
	// FinalStep is the step that wrote the final weights, and FinalAttempts its attempts that
	// count. It is zero while there are no such weights.
	FinalStep     uint32
	FinalAttempts []uint32

	// Name is given by the submitter, and Owner identifies the submitter, if known.
	Name  string `json:",omitempty"`
	Owner string `json:",omitempty"`
	// Shards are the store shards that hold the job's values, in order of placement.
	Shards []string `json:",omitempty"`
	// Replicas is the number of copies of each value. Zero means one.
	Replicas uint32 `json:",omitempty"`
	// Dropped says that the job's values are deleted from the store, and Discarded that a user
	// asked for it.
	Dropped   bool `json:",omitempty"`
	Discarded bool `json:",omitempty"` // a user asked for that
	// Submitted, Started and Ended are the times of these events, or zero before them.
	Submitted, Started, Ended Tick `json:",omitempty"`
	// Uncounted is the time since the job ended that does not count as age of its values; see
	// checkClock.
	Uncounted Tick `json:",omitempty"`
	// Idle is the time for which the job ran and could do nothing; see idle.go.
	Idle Tick `json:",omitempty"`
	// BytesRead and BytesWritten are the bytes that the job's tasks read from the store and wrote
	// to it.
	BytesRead, BytesWritten uint64 `json:",omitempty"`
	// SweepRead and SweepWritten are the same for the last committed sweep alone, and ReadBefore
	// and WrittenBefore are the totals when it was committed.
	SweepRead, SweepWritten   uint64 `json:",omitempty"`
	ReadBefore, WrittenBefore uint64 `json:",omitempty"` // totals when it was committed

	// Speculated counts second attempts at stragglers, Rollbacks the rollbacks, and Recomputed the
	// tasks that were run again for a lost value.
	Speculated, Rollbacks uint32 `json:",omitempty"`
	Recomputed            uint32 `json:",omitempty"`
	// RolledTo is the sweep that the last rollback returned to.
	RolledTo uint32 `json:",omitempty"`
	// Futile counts the rollbacks since the job last committed a new sweep or was resumed.
	Futile uint32 `json:",omitempty"`
	// Failed says which task the job failed at. It is nil if the job did not fail at a task.
	Failed *failedTask `json:",omitempty"`
	// Past lists the steps whose values are still referred to; see recompute.go.
	Past []pastStep `json:",omitempty"`
	// Recomputes counts by recomputeKey how often a task was recomputed.
	Recomputes map[uint64]uint32 `json:",omitempty"`
	// Nodes and Terminals are the plan's figures in a job whose values were dropped.
	Nodes, Terminals int `json:",omitempty"`
	// Lost says that the job was done, but that its weights are missing from the store.
	Lost bool `json:",omitempty"`
	// Digest is the digest of the weights of a finished job.
	Digest *Digest `json:",omitempty"`
	// CriteriaBefore lists the earlier stopping criteria, oldest first.
	CriteriaBefore []pastCriteria `json:",omitempty"`
}

// traceRecord is the trace entry of one sweep. Certificate is nil if none was computed.
type traceRecord struct {
	Sweep       uint32
	Phase       string
	Certificate *method.Certificate
	Seconds     float64
}

// job is a job in the machine. Fields that are marked volatile are neither journaled nor in
// snapshots: they affect the order of work, never the results.
type job struct {
	jobState
	*prepared
	// driver decides the next step. It is nil if the job's values were dropped.
	driver method.Driver
	// step is the current step. It is nil unless the job runs.
	step *step
	// since is the time of the last start or resume. Time that does not count moves it forward.
	since Tick
	// batches counts the live leases of each batch. A batch takes one slot.
	batches map[uint64]int
	log     jobLog
	// recomputes are the tasks of past steps that are run again, before all others.
	recomputes []recompute
	// used is the slot-seconds that the job has had, for fair shares. Volatile.
	used float64
	// awaySince is when a task first reported, since the last success, that the store is away or
	// full. It is a time of Machine.listening, zero if there was no such report. Volatile.
	awaySince Tick
	// awayWhy is the last of those reports.
	awayWhy string
	// unfit holds the ids of the workers that can't run the job's tasks. Volatile.
	unfit map[string]bool
	// stage is what the running job does or waits for.
	stage stage
	// foreign is the job as it was read, if this version can't continue it, and otherwise nil.
	foreign *jobSnapshot
	// broken says why a record of the job could not be replayed. It is nil if all could.
	broken error
	// pausedAt is when the current stage began. If the stage is paused, the clock stopped then.
	pausedAt Tick
	// idle is why the clock stands in stageTrain, and idleSince since when.
	idle      idle
	idleSince Tick // and since when

	// lastDone is when a task of the job last succeeded, or when the job was started. It is not in
	// snapshots.
	lastDone Tick
	// savedSweep and savedAt are the sweep and time of the last checkpoint.
	savedSweep uint32
	savedAt    Tick
	// lastAttempts are the committed attempts of the step lastCommitted.
	lastAttempts  []uint32
	lastCommitted uint32

	// lastRuns holds for each list of items what the last task of each item took. It affects the
	// order of granting tasks only.
	lastRuns [][]history
}

// stage is what a running job does or waits for.
type stage uint8

const (
	// stageTrain means that the tasks of the current step are being granted.
	stageTrain stage = iota
	// stageEvaluate means that the weights that the step wrote are being evaluated.
	stageEvaluate
	// stageRollBack means that the last checkpoint is being loaded.
	stageRollBack
	// stageSave means that the job was cancelled, and its checkpoint is being written.
	stageSave
	// stageDigest means that all steps are done, and the weights are being digested.
	stageDigest
)

// paused reports whether time in the stage does not count as training time.
func (s stage) paused() bool { return s == stageEvaluate || s == stageRollBack || s == stageDigest }

// history is what the last task of an item predicts about its next one.
type history struct {
	// seconds is CPU time. Zero means unknown.
	seconds float64
	worker  string
}

// newJob returns a queued job before its first step.
func newJob(id string, p *prepared) (*job, error) {
	spec, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.spec)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	s := jobState{Version: stateVersion, ID: id, Spec: spec, State: taxonv1.JobState_JOB_STATE_QUEUED, Values: values{}}
	for _, v := range p.plan.Variables {
		for range v.Versions {
			s.Values[v.Name] = append(s.Values[v.Name], make(places, p.plan.Items[v.Items].Count))
		}
	}
	return makeJob(s, p)
}

// makeJob joins a state with what was prepared from its specification.
func makeJob(s jobState, p *prepared) (*job, error) {
	j := &job{jobState: s, prepared: p, lastRuns: make([][]history, len(p.plan.Items))}
	for k, list := range p.plan.Items {
		j.lastRuns[k] = make([]history, list.Count)
	}
	if s.Dropped {
		return j, nil
	}
	var err error
	if j.driver, err = p.method.Driver(p.spec, p.plan, s.Driver); err != nil {
		return nil, fmt.Errorf("job %s: its state: %w", s.ID, err)
	}
	return j, nil
}

// errOtherVersion refuses the state of another version of taxon.
var errOtherVersion = fmt.Errorf("it was written by another version of taxon: go on with that version, or train anew")

// errUnknownKind refuses a record of a kind that this version does not know.
var errUnknownKind = errors.New("written by another version of taxon")

// encode serialises the state between two steps. It fails if a number in it is not finite.
func (j *job) encode() ([]byte, error) {
	if j.driver != nil {
		j.Driver = j.driver.State()
	}
	out, err := json.Marshal(&j.jobState)
	if err != nil {
		return nil, fmt.Errorf("job %s: its state can't be written: %w", j.ID, err)
	}
	return out, nil
}

// progress returns the state of the job's iteration.
func (j *job) progress() method.Progress {
	if j.driver == nil {
		if j.Last == nil {
			return method.Progress{}
		}
		return *j.Last
	}
	return j.driver.Progress()
}

// stoppedBy returns the reason why the job stopped. It is empty if the job has not stopped.
func (j *job) stoppedBy() string {
	if j.State == taxonv1.JobState_JOB_STATE_CANCELLED {
		return method.StoppedByCancelled
	}
	by := j.progress().StoppedBy
	if j.Early && by == method.StoppedByMaxTime {
		by = method.StoppedByEarlyStop
	}
	return by
}

// keepSteps lists, ascending, the steps whose values are still needed, or may be needed to
// recompute such values.
func (j *job) keepSteps() []uint32 {
	steps := append(j.referred(), j.FinalStep)
	for _, p := range j.Past {
		steps = append(steps, p.From.steps()...)
	}
	return sortedSteps(steps)
}

// referred lists, ascending, the steps that the next step's tasks may read.
func (j *job) referred() []uint32 { return j.Values.steps() }

// steps lists, ascending, the steps of all versions.
func (v values) steps() (out []uint32) {
	for _, versions := range v {
		out = append(out, stepsOf(versions...)...)
	}
	return sortedSteps(out)
}

// latest lists, ascending, the steps of the newest versions.
func (v values) latest() (out []uint32) {
	for _, versions := range v {
		out = append(out, stepsOf(versions[0])...)
	}
	return sortedSteps(out)
}

// stepsOf lists the steps of places, with repetitions.
func stepsOf(lists ...places) (steps []uint32) {
	for _, list := range lists {
		last := uint32(0)
		for _, p := range list {
			if p.Step != last {
				steps, last = append(steps, p.Step), p.Step
			}
		}
	}
	return steps
}

// sortedSteps sorts steps and removes repetitions and 0, which is not a step.
func sortedSteps(steps []uint32) []uint32 {
	slices.Sort(steps)
	steps = slices.Compact(steps)
	if len(steps) > 0 && steps[0] == 0 {
		steps = steps[1:]
	}
	return steps
}

// ended reports whether the job is done, failed or cancelled.
func (j *job) ended() bool { return j.State.Ended() }

// running reports whether the job has a step whose tasks may be granted.
func (j *job) running() bool { return j.hasStep() && j.stage == stageTrain }

// inFlight reports whether the job counts towards Limits.MaxRunning. A job whose weights are being
// digested needs no workers and does not count.
func (j *job) inFlight() bool {
	return j.State == taxonv1.JobState_JOB_STATE_RUNNING && j.stage != stageDigest
}

// hasStep reports whether the job has a current step.
func (j *job) hasStep() bool {
	return j.State == taxonv1.JobState_JOB_STATE_RUNNING && (j.stage == stageTrain || j.stage == stageEvaluate)
}

// evaluateWeights returns the action that evaluates the weights of the job's last step.
func (j *job) evaluateWeights() EvaluateWeights {
	return EvaluateWeights{Job: j.ID, Sweep: j.progress().Sweep, Step: j.lastCommitted, Attempts: j.lastAttempts}
}

// enter begins a stage. If the previous stage was paused, its time is not counted.
func (j *job) enter(s stage, at Tick) {
	j.startClock(at)
	if j.stage.paused() {
		j.since += at - j.pausedAt
	}
	j.stage, j.pausedAt = s, at
}

// spentAt returns the training time up to now, including that before a resume.
func (j *job) spentAt(now Tick) Tick {
	switch {
	case j.stage.paused():
		now = j.pausedAt
	case j.idle != notIdle:
		now = j.idleSince
	}
	if j.State == taxonv1.JobState_JOB_STATE_RUNNING {
		return j.Spent + now - j.since
	}
	return j.Spent
}
