package coordinator

import (
	"encoding/json"
	"fmt"
	"slices"
	"taxon/internal/jobspec"

	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// Sums are a task's share of the figures of a step; see the message of the same name.
type Sums struct {
	Primal, Dual, InnerGap, Restart, Moved float64
	Support, Working, Visits               uint64
}

// prepared is what follows from a specification alone.
type prepared struct {
	spec             *taxonv1.JobSpec
	plan             *taxonv1.Plan
	nodes, terminals uint32
	flat             bool
	estimate         Estimate
}

// prepare checks a specification and plans it. Pure, and slow for large trees.
func prepare(spec *taxonv1.JobSpec) (*prepared, error) {
	if err := checkOptions(spec.GetOptions()); err != nil {
		return nil, err
	}
	tree, _, err := jobspec.Tree(spec)
	if err != nil {
		return nil, err
	}
	if tree.IsGraph() && spec.GetOptions().GetSchedule() == jobspec.ScheduleParity {
		return nil, fmt.Errorf("schedule parity needs a tree, as a graph has no levels: use twoblock or colour")
	}
	p := &prepared{spec: spec, plan: NewPlan(tree, spec), nodes: uint32(tree.Len())}
	p.terminals = uint32(len(p.plan.BlockTerminals))
	p.flat = len(tree.Internals()) == 0
	p.estimate = PlanMemory(tree, spec, p.plan)
	return p, nil
}

// checkOptions refuses what the outer iteration can't run; ranges that only the solver
// knows about are the worker's to refuse.
func checkOptions(o *taxonv1.Options) error {
	switch {
	case o == nil:
		return fmt.Errorf("the job has no options")
	case !(o.Gap > 0 && o.Gap <= 1):
		return fmt.Errorf("gap %g: give a value above 0 and at most 1", o.Gap)
	case !(o.C > 0):
		return fmt.Errorf("option C is %g: give a value above 0", o.C)
	case !(o.Bias >= 0):
		return fmt.Errorf("bias %g: give 0 (none) or more", o.Bias)
	case !(o.MaxSeconds >= 0):
		return fmt.Errorf("max_seconds %g: give 0 (no cap) or more", o.MaxSeconds)
	}
	known := []string{"", jobspec.ScheduleTwoblock, jobspec.ScheduleParity, jobspec.ScheduleColour, jobspec.ScheduleJacobi}
	if !slices.Contains(known, o.Schedule) {
		return fmt.Errorf("schedule %q: use twoblock, parity, colour or jacobi", o.Schedule)
	}
	return jobspec.CheckWeights(o)
}

// maxItems bounds the blocks of a job that is read back: far above any plan.
const maxItems = 1 << 24

// places are the places of one value per block or range. Their JSON is run-length coded.
type places []taxonv1.Place

// jobState is all of a job that its next step depends on, as it stands between two
// steps: what a checkpoint holds, together with the values of keepSteps.
type jobState struct {
	ID     string
	Spec   []byte // JobSpec, serialised
	State  taxonv1.JobState
	Error  string
	Outer  outerState
	StepNo uint32 // number of the last step that was begun; numbers are never used again
	Dual   places // per block: duals, working set and v
	X      places // per range: internals
	XPrev  places // per range: internals of the update before

	Committed     uint32 // highest committed sweep
	Trace         []traceRecord
	Spent         Tick // training time up to the last (re)start
	CPUSeconds    float64
	Retried       uint32
	WorkersLost   uint32
	FinalStep     uint32 // step that holds the emitted weights; 0: none yet
	FinalAttempts []uint32

	Name                      string   `json:",omitempty"` // given by the submitter
	Shards                    []string `json:",omitempty"` // store shards of its values, in order of placement
	Replicas                  uint32   `json:",omitempty"` // copies of each value; 0: one
	Dropped                   bool     `json:",omitempty"` // its values are gone from the store
	Discarded                 bool     `json:",omitempty"` // a user asked for that
	Submitted, Started, Ended Tick     `json:",omitempty"` // 0: not yet
	BytesRead, BytesWritten   uint64   `json:",omitempty"` // by tasks, from and to the store
	SweepRead, SweepWritten   uint64   `json:",omitempty"` // of the last committed sweep
	ReadBefore, WrittenBefore uint64   `json:",omitempty"` // totals when it was committed

	Speculated, Remade, Rollbacks uint32            `json:",omitempty"`
	RolledTo                      uint32            `json:",omitempty"` // sweep that the last rollback went back to
	Futile                        uint32            `json:",omitempty"` // rollbacks since it got further, or was resumed
	Failed                        *failedTask       `json:",omitempty"` // where it failed
	Past                          []pastStep        `json:",omitempty"` // steps that are referred to, see remake.go
	Remakes                       map[uint64]uint32 `json:",omitempty"` // how often a task was made again, by remakeKey
	Nodes, Terminals              uint32            `json:",omitempty"` // of a job whose values were dropped
	Lost                          bool              `json:",omitempty"` // it was done, but its weights are gone from the store
	CapsBefore                    []pastCaps        `json:",omitempty"` // oldest first
}

// traceRecord is a line of the trace; Certificate is nil where it was not computed.
type traceRecord struct {
	Sweep       uint32
	Phase       string
	Certificate *certificate
	Seconds     float64
}

// job is a job in the machine.
type job struct {
	jobState
	*prepared
	outer     *outer
	step      *step          // under way; nil unless the job runs
	since     Tick           // of the last (re)start
	batches   map[uint64]int // live leases of each batch; a batch takes a slot
	log       jobLog
	remakes   []remake        // tasks of past steps that are run again, before all others
	rolling   bool            // rests until its last checkpoint is loaded
	used      float64         // slot-seconds, for fair shares; not journaled
	awaySince Tick            // first report since a success that the store is away or full, by Machine.listening; not journaled
	awayWhy   string          // the last of those reports
	unfit     map[string]bool // ids of workers that can't do its tasks; not journaled
	closing   bool            // cancelled, waits for its checkpoint
	showing   bool            // rests until the weights that its step wrote are evaluated
	shownAt   Tick            // when that began

	savedSweep    uint32
	savedAt       Tick
	lastAttempts  []uint32 // committed attempts of step lastCommitted
	lastCommitted uint32

	// Seconds that a block or range took last: they change the order of handing out only.
	blockSeconds, rangeSeconds []float64
	blockWorker, rangeWorker   []string
}

// newJob is a queued job before its first step.
func newJob(id string, p *prepared) (*job, error) {
	spec, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.spec)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	blocks, ranges := len(p.plan.BlockSet), len(p.plan.RangeBegin)-1
	s := jobState{
		ID: id, Spec: spec, State: taxonv1.JobState_JOB_STATE_QUEUED,
		Dual: make(places, blocks), X: make(places, ranges), XPrev: make(places, ranges),
	}
	j := makeJob(s, p)
	j.Outer = j.outer.outerState
	return j, nil
}

// makeJob joins a state with what was prepared from its specification.
func makeJob(s jobState, p *prepared) *job {
	blocks, ranges := len(p.plan.BlockSet), len(p.plan.RangeBegin)-1
	j := &job{
		jobState: s, prepared: p,
		outer:        newOuter(p.spec.Options, p.plan, p.flat),
		blockSeconds: make([]float64, blocks), rangeSeconds: make([]float64, ranges),
		blockWorker: make([]string, blocks), rangeWorker: make([]string, ranges),
	}
	j.outer.sampled = p.spec.GetData().GetInstances() >= SampledFrom
	j.outer.primal = !p.flat && jobspec.Uncertified(p.spec)
	j.outer.drift = j.outer.primal && len(p.spec.GetDrifting()) > 0
	return j
}

// reviveJob rebuilds a job from a serialised jobState.
func reviveJob(state []byte) (*job, error) {
	var s jobState
	if err := json.Unmarshal(state, &s); err != nil {
		return nil, fmt.Errorf("job state: %w", err)
	}
	spec := &taxonv1.JobSpec{}
	if err := proto.Unmarshal(s.Spec, spec); err != nil {
		return nil, fmt.Errorf("job %s: specification: %w", s.ID, err)
	}
	if s.Dropped {
		j := makeJob(s, reviveSlim(&s, spec))
		j.outer.outerState = s.Outer
		return j, nil
	}
	p, err := prepare(spec)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", s.ID, err)
	}
	if len(s.Dual) != len(p.plan.BlockSet) || len(s.X) != len(p.plan.RangeBegin)-1 || len(s.XPrev) != len(s.X) {
		return nil, fmt.Errorf("job %s: its state has another plan than this version makes: train anew", s.ID)
	}
	if s.Outer.Stage > stageEnd {
		return nil, fmt.Errorf("job %s: its state stands at stage %d, which this version does not know", s.ID, s.Outer.Stage)
	}
	for _, past := range s.Past {
		if len(past.Dual) != len(s.Dual) || len(past.X) != len(s.X) || len(past.XPrev) != len(s.X) || !past.valid(p.plan) {
			return nil, fmt.Errorf("job %s: its state names a past step %d of another plan", s.ID, past.Number)
		}
	}
	j := makeJob(s, p)
	j.outer.outerState = s.Outer
	return j, nil
}

// encode serialises the state between two steps.
func (j *job) encode() []byte {
	j.Outer = j.outer.outerState
	out, err := json.Marshal(&j.jobState)
	if err != nil {
		// Sums that are not finite are refused when they arrive; nothing else can fail.
		panic(fmt.Sprintf("coordinator: job %s can't be serialised: %v", j.ID, err))
	}
	return out
}

// keepSteps lists, ascending, the steps whose values are still to be read, or may have to
// be to make those again.
func (j *job) keepSteps() []uint32 {
	steps := append(j.referred(), j.FinalStep)
	if planted("drop too early") {
		steps = append(sortedSteps(stepsOf(j.Dual, j.X)), j.FinalStep)
	}
	for _, p := range j.Past {
		steps = append(steps, stepsOf(p.Dual, p.X, p.XPrev)...)
	}
	return sortedSteps(steps)
}

// referred lists, ascending, the steps that the next step's tasks read.
func (j *job) referred() []uint32 { return sortedSteps(stepsOf(j.Dual, j.X, j.XPrev)) }

// stepsOf lists the steps of values, with repetitions.
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
func (j *job) ended() bool {
	return j.State == taxonv1.JobState_JOB_STATE_DONE || j.State == taxonv1.JobState_JOB_STATE_FAILED ||
		j.State == taxonv1.JobState_JOB_STATE_CANCELLED
}

// running says whether the job has a step whose tasks may be handed out.
func (j *job) running() bool { return j.hasStep() && !j.showing }

// hasStep says whether the job has a step under way.
func (j *job) hasStep() bool {
	return j.State == taxonv1.JobState_JOB_STATE_RUNNING && !j.closing && !j.rolling
}

// showWeights tells of the weights that the job rests for.
func (j *job) showWeights() ShowWeights {
	return ShowWeights{Job: j.ID, Sweep: j.outer.Sweep, Step: j.lastCommitted, Attempts: j.lastAttempts}
}

// goOn ends the job's rest, if it rests, and takes it out of its time.
func (j *job) goOn(at Tick) {
	if j.showing {
		j.since += at - j.shownAt
		j.showing = false
	}
}

// spentAt is the training time so far, that before a resume included.
func (j *job) spentAt(now Tick) Tick {
	if j.showing {
		now = j.shownAt
	}
	if j.State == taxonv1.JobState_JOB_STATE_RUNNING {
		return j.Spent + now - j.since
	}
	return j.Spent
}

// MarshalJSON codes runs of consecutive tasks as [count, step, task, attempt].
func (p places) MarshalJSON() ([]byte, error) {
	r := taxonv1.NewRefs(p)
	return json.Marshal([4][]uint32{r.Count, r.Step, r.Task, r.Attempt})
}

// UnmarshalJSON undoes MarshalJSON.
func (p *places) UnmarshalJSON(data []byte) error {
	var runs [4][]uint32
	if err := json.Unmarshal(data, &runs); err != nil {
		return err
	}
	items := uint64(0)
	for _, n := range runs[0] {
		items += uint64(n)
	}
	if items > maxItems {
		return fmt.Errorf("%d places: at most %d are possible", items, maxItems)
	}
	r := &taxonv1.Refs{Count: runs[0], Step: runs[1], Task: runs[2], Attempt: runs[3]}
	*p = r.Expand()
	return nil
}
