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
	method   method.Method
	plan     *method.Plan
	estimate method.Estimate
}

// prepare checks a specification and plans it. Pure, and slow for large trees.
func prepare(spec *taxonv1.JobSpec) (*prepared, error) {
	p, err := registry.Prepare(spec)
	if err != nil {
		return nil, err
	}
	return &prepared{spec: spec, method: p.Method, plan: p.Plan, estimate: p.Estimate}, nil
}

// places are the places of one value per item of a list. Their JSON is run-length coded.
type places []taxonv1.Place

// values are the places of all families. Each family has its versions, the last one first.
type values map[string][]places

// stateVersion changes with the meaning of jobState.
const stateVersion = 2

// jobState is everything that a job's next step depends on, between two steps. It and the values
// of keepSteps are the content of a checkpoint.
type jobState struct {
	Version int
	ID      string
	Spec    []byte // JobSpec, serialised
	State   taxonv1.JobState
	Error   string
	Driver  method.State
	TimeUp  bool             `json:",omitempty"` // max_seconds are used up, or Early
	Early   bool             `json:",omitempty"` // an evaluation has ended the training
	Last    *method.Progress `json:",omitempty"` // in place of Driver, of a job whose values were dropped
	StepNo  uint32           // number of the last step that was begun; numbers are never used again
	Values  values

	Committed     uint32 // highest committed sweep
	Trace         []traceRecord
	Spent         Tick // training time up to the last (re)start
	CPUSeconds    float64
	Retried       uint32
	WorkersLost   uint32
	FinalStep     uint32 // step that holds the emitted weights; 0: none yet
	FinalAttempts []uint32

	Name                      string   `json:",omitempty"` // given by the submitter
	Owner                     string   `json:",omitempty"` // who submitted it; "": not known
	Shards                    []string `json:",omitempty"` // store shards of its values, in order of placement
	Replicas                  uint32   `json:",omitempty"` // copies of each value; 0: one
	Dropped                   bool     `json:",omitempty"` // its values are deleted from the store
	Discarded                 bool     `json:",omitempty"` // a user asked for that
	Submitted, Started, Ended Tick     `json:",omitempty"` // 0: not yet
	Uncounted                 Tick     `json:",omitempty"` // time since it ended that does not count for retire
	Idle                      Tick     `json:",omitempty"` // time in which it ran and could do nothing
	BytesRead, BytesWritten   uint64   `json:",omitempty"` // by tasks, from and to the store
	SweepRead, SweepWritten   uint64   `json:",omitempty"` // of the last committed sweep
	ReadBefore, WrittenBefore uint64   `json:",omitempty"` // totals when it was committed

	Speculated, Rollbacks uint32            `json:",omitempty"`
	Recomputed            uint32            `json:",omitempty"`
	RolledTo              uint32            `json:",omitempty"` // sweep that the last rollback went back to
	Futile                uint32            `json:",omitempty"` // rollbacks since it got further, or was resumed
	Failed                *failedTask       `json:",omitempty"` // where it failed
	Past                  []pastStep        `json:",omitempty"` // steps that are still referred to, see recompute.go
	Recomputes            map[uint64]uint32 `json:",omitempty"` // how often a task was recomputed, by recomputeKey
	Nodes, Terminals      int               `json:",omitempty"` // of a job whose values were dropped
	Lost                  bool              `json:",omitempty"` // it was done, but its weights are missing from the store
	Digest                *Digest           `json:",omitempty"` // of the weights of a job that is done
	CriteriaBefore        []pastCriteria    `json:",omitempty"` // oldest first
}

// traceRecord is a line of the trace; Certificate is nil where it was not computed.
type traceRecord struct {
	Sweep       uint32
	Phase       string
	Certificate *method.Certificate
	Seconds     float64
}

// job is a job in the machine.
type job struct {
	jobState
	*prepared
	driver     method.Driver  // nil: its values were dropped
	step       *step          // under way; nil unless the job runs
	since      Tick           // of the last (re)start
	batches    map[uint64]int // live leases of each batch; a batch takes a slot
	log        jobLog
	recomputes []recompute     // tasks of past steps that are run again, before all others
	used       float64         // slot-seconds, for fair shares; not journaled
	awaySince  Tick            // first report since a success that the store is away or full, by Machine.listening; not journaled
	awayWhy    string          // the last of those reports
	unfit      map[string]bool // ids of workers that can't do its tasks; not journaled
	stage      stage           // of a running job
	foreign    *jobSnapshot    // as it was read, of a job that this version can't continue; nil: it can
	broken     error           // why a record of it could not be replayed; nil: all could
	pausedAt   Tick            // when its clock was stopped: see stage.paused
	idle       idle            // why its clock stands in stageTrain
	idleSince  Tick            // and since when

	lastDone      Tick // when a task of it ended well last, or it was started; not in snapshots
	savedSweep    uint32
	savedAt       Tick
	lastAttempts  []uint32 // committed attempts of step lastCommitted
	lastCommitted uint32

	lastRuns [][]history // of each list of items, item by item; they change the order of handing out only
}

// stage says what a running job does or waits for.
type stage uint8

const (
	stageTrain    stage = iota // the tasks of its step are handed out
	stageEvaluate              // the weights that its step wrote are evaluated
	stageRollBack              // its last checkpoint is loaded
	stageSave                  // it was cancelled, and its checkpoint is written
	stageDigest                // all steps are done, and its weights are digested
)

// paused says whether the stage does not count as training time.
func (s stage) paused() bool { return s == stageEvaluate || s == stageRollBack || s == stageDigest }

// history is what the last task of an item predicts about the next one.
type history struct {
	seconds float64 // CPU time; 0: unknown
	worker  string
}

// newJob is a queued job before its first step.
func newJob(id string, p *prepared) (*job, error) {
	spec, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.spec)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	s := jobState{Version: stateVersion, ID: id, Spec: spec, State: taxonv1.JobState_JOB_STATE_QUEUED, Values: values{}}
	for _, v := range p.plan.Values {
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

// errOtherVersion refuses the state of another version.
var errOtherVersion = fmt.Errorf("it was written by another version of taxon: go on with that version, or train anew")

// errUnknownKind refuses the record of a version that knows more kinds.
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

// progress is the state of the job's iteration.
func (j *job) progress() method.Progress {
	if j.driver == nil {
		if j.Last == nil {
			return method.Progress{}
		}
		return *j.Last
	}
	return j.driver.Progress()
}

// stoppedBy is the reason why the job stopped. "": it has not.
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
	if planted("drop too early") {
		steps = append(j.Values.latest(), j.FinalStep)
	}
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

// latest lists, ascending, the steps of the last versions.
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

// sortedSteps sorts steps and removes repetitions and 0, which is no step.
func sortedSteps(steps []uint32) []uint32 {
	slices.Sort(steps)
	steps = slices.Compact(steps)
	if len(steps) > 0 && steps[0] == 0 {
		steps = steps[1:]
	}
	return steps
}

// ended says whether the job is over for good.
func (j *job) ended() bool { return j.State.Ended() }

// running says whether the job has a step whose tasks may be handed out.
func (j *job) running() bool { return j.hasStep() && j.stage == stageTrain }

// inFlight says whether the job counts towards Limits.MaxRunning. A job whose weights are being
// digested needs no workers and does not count.
func (j *job) inFlight() bool {
	return j.State == taxonv1.JobState_JOB_STATE_RUNNING && j.stage != stageDigest
}

// hasStep says whether the job has a current step.
func (j *job) hasStep() bool {
	return j.State == taxonv1.JobState_JOB_STATE_RUNNING && (j.stage == stageTrain || j.stage == stageEvaluate)
}

// evaluateWeights asks for an evaluation of the weights of the job's last step.
func (j *job) evaluateWeights() EvaluateWeights {
	return EvaluateWeights{Job: j.ID, Sweep: j.progress().Sweep, Step: j.lastCommitted, Attempts: j.lastAttempts}
}

// enter begins a stage. A paused one does not count as training time.
func (j *job) enter(s stage, at Tick) {
	j.startClock(at)
	if j.stage.paused() {
		j.since += at - j.pausedAt
	}
	j.stage, j.pausedAt = s, at
}

// spentAt is the training time so far, that before a resume included.
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
