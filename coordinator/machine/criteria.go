package machine

import (
	"fmt"
	"slices"
	"strings"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// StopCriteria are the options that say when a job ends. They may change while the job does not
// run. The final bytes may then differ from those of a job that had the new criteria from the
// start, because the last allowed sweep was priced and inner solves aim at the gap. A nil field
// leaves its criterion unchanged.
type StopCriteria struct {
	// Gap is the gap to train to.
	Gap *float64 `json:",omitempty"`
	// MaxSweeps bounds the number of sweeps. Zero means no bound.
	MaxSweeps *uint32 `json:",omitempty"`
	// MaxSeconds bounds the training time in seconds. Zero means no bound.
	MaxSeconds *float64 `json:",omitempty"`
}

// empty reports whether no criterion changes.
func (c StopCriteria) empty() bool { return c.Gap == nil && c.MaxSweeps == nil && c.MaxSeconds == nil }

// StopCriteriaOf returns all criteria of a job's options, which must be valid.
func StopCriteriaOf(o *taxonv1.Options) StopCriteria {
	r, _ := runOptionsOf(o)
	c := StopCriteria{MaxSweeps: &r.MaxSweeps, MaxSeconds: &r.MaxSeconds}
	if r.Gap > 0 {
		c.Gap = &r.Gap
	}
	return c
}

// runOptions are the options of a job that the machine itself goes by.
type runOptions struct {
	// Gap is the gap to train to. It is zero if the method has no such option.
	Gap              float64 `option:"gap"`
	MaxSweeps        uint32  `option:"max-sweeps"`
	MaxSeconds       float64 `option:"max-time"`
	CheckpointSweeps uint32  `option:"checkpoint-every"`
	Seed             uint64  `option:"seed"`
}

// runOptionsOf reads the machine's options of a job.
func runOptionsOf(o *taxonv1.Options) (r runOptions, err error) {
	none := method.GapWanted
	none.Default = "0"
	err = method.ReadOptions(o, append(registry.Of(o.GetMethod()), none), &r)
	return r, err
}

// into writes the criteria into options.
func (c StopCriteria) into(o *taxonv1.Options) {
	if c.Gap != nil {
		o.Set("gap", *c.Gap)
	}
	if c.MaxSweeps != nil {
		o.Set("max_sweeps", *c.MaxSweeps)
	}
	if c.MaxSeconds != nil {
		o.Set("max_seconds", *c.MaxSeconds)
	}
}

// pastCriteria are criteria that a job had until others replaced them after the sweep Sweep.
// Together with the options they decide the job's bytes.
type pastCriteria struct {
	Sweep      uint32
	Gap        float64
	MaxSweeps  uint32  `json:",omitempty"` // 0 stands for no limit
	MaxSeconds float64 `json:",omitempty"` // 0 stands for no limit
}

// message returns the criteria as a message.
func (p *pastCriteria) message() *taxonv1.PastCaps {
	return &taxonv1.PastCaps{Sweep: p.Sweep, Gap: p.Gap, MaxSweeps: p.MaxSweeps, MaxSeconds: p.MaxSeconds}
}

// pastCriteria returns the job's present criteria, before they are replaced.
func (j *job) pastCriteria() pastCriteria {
	return pastCriteria{Sweep: j.Committed, Gap: j.run.Gap, MaxSweeps: j.run.MaxSweeps, MaxSeconds: j.run.MaxSeconds}
}

// Checkpoint is what a stopped job continues from.
type Checkpoint struct {
	// State is the job's state, with the new criteria.
	State []byte
	// Sweep is the highest committed sweep.
	Sweep uint32
	// Changed names the criteria that differ, as "gap 0.0001 -> 1e-05". It is empty if none do.
	Changed string
}

// UpdateStopCriteria gives the job of a checkpoint's state other criteria. A job that was stopped
// by its old ones continues if the new ones allow it. If no criterion differs, the state is
// unchanged. It is pure.
func UpdateStopCriteria(state []byte, c StopCriteria) (Checkpoint, error) {
	j, err := reviveJob(state)
	if err != nil {
		return Checkpoint{}, err
	}
	if j.Dropped {
		return Checkpoint{}, fmt.Errorf("job %s: %w", j.ID, ErrNotResumable)
	}
	changed, err := j.updateStopCriteria(c)
	if err != nil {
		return Checkpoint{}, err
	}
	if changed != "" {
		if state, err = j.encode(); err != nil {
			return Checkpoint{}, err
		}
	}
	return Checkpoint{State: state, Sweep: j.Committed, Changed: changed}, nil
}

// changedCriteria lists the criteria that differ, by their option names.
func changedCriteria(old, now runOptions) string {
	var out []string
	add := func(name, unit string, a, b float64) {
		word := func(x float64) string {
			if x == 0 {
				return "none"
			}
			return fmt.Sprintf("%g%s", x, unit)
		}
		if a != b {
			out = append(out, name+" "+word(a)+" -> "+word(b))
		}
	}
	add("gap", "", old.Gap, now.Gap)
	add("max-sweeps", "", float64(old.MaxSweeps), float64(now.MaxSweeps))
	add("max-time", " s", old.MaxSeconds, now.MaxSeconds)
	return strings.Join(out, ", ")
}

// updateStopCriteria changes the criteria of a job that does not run, and says which of them
// differ.
func (j *job) updateStopCriteria(c StopCriteria) (changed string, err error) {
	options := proto.Clone(j.spec.GetOptions()).(*taxonv1.Options)
	c.into(options)
	if err := method.Violations(registry.Check(options)); err != nil {
		return "", err
	}
	old := j.run
	now, err := runOptionsOf(options)
	if err != nil || now == old {
		return "", err
	}
	spec := &taxonv1.JobSpec{Options: options, Data: j.spec.GetData(), Structure: j.spec.GetStructure(),
		Given: j.spec.GetGiven()}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("job %s: %w", j.ID, err)
	}
	with := *j.prepared
	with.spec, with.run = spec, now
	driver, up, err := j.driverUnder(&with)
	if err != nil {
		return "", fmt.Errorf("job %s: %w", j.ID, err)
	}
	j.CriteriaBefore = append(j.CriteriaBefore, j.pastCriteria())
	j.prepared, j.Spec, j.driver, j.TimeUp = &with, data, driver, up
	return changedCriteria(old, now), nil
}

// driverUnder returns the driver with which a job that does not run continues under other criteria, and
// whether they say that its time is up.
func (j *job) driverUnder(p *prepared) (d method.Driver, timeUp bool, err error) {
	if d, err = j.method.Driver(p.spec, j.plan, j.driver.State()); err != nil {
		return nil, false, err
	}
	limit := p.run.MaxSeconds
	timeUp = j.TimeUp && (j.Early || limit > 0 && j.Spent.Seconds() >= limit)
	d.TimeUp(timeUp)
	d.Resume(p.run.Gap != j.run.Gap)
	return d, timeUp, nil
}

// applyResume queues an ended job again.
func (j *job) applyResume(r *Record) error {
	changed := ""
	if r.Criteria != nil {
		var err error
		if changed, err = j.updateStopCriteria(*r.Criteria); err != nil {
			return err
		}
	}
	j.driver.Resume(false)
	j.State, j.Error, j.Ended, j.Failed, j.Futile = taxonv1.JobState_JOB_STATE_QUEUED, "", 0, nil, 0
	if changed != "" {
		changed = ", " + changed
	}
	j.note(r.At, levelInfo, "resumed behind sweep %d%s", j.Committed, changed)
	return nil
}

// stoppedByCriteria reports whether a job is done by its criteria alone and can be continued.
func (j *job) stoppedByCriteria() bool {
	return j.State == taxonv1.JobState_JOB_STATE_DONE && method.ByCriteria(j.stoppedBy()) && !j.Dropped
}

// checkResume returns an error if other criteria would not let an ended job continue.
func (j *job) checkResume(c StopCriteria) error {
	options := proto.Clone(j.spec.GetOptions()).(*taxonv1.Options)
	c.into(options)
	if err := method.Violations(registry.Check(options)); err != nil {
		return fmt.Errorf("job %s: %w: %w", j.ID, ErrStopCriteria, err)
	}
	if !j.stoppedByCriteria() || j.Lost {
		return nil
	}
	with := *j.prepared
	with.spec = proto.Clone(j.spec).(*taxonv1.JobSpec)
	with.spec.Options = options
	var err error
	if with.run, err = runOptionsOf(options); err != nil {
		return fmt.Errorf("job %s: %w: %w", j.ID, ErrStopCriteria, err)
	}
	d, _, err := j.driverUnder(&with)
	if err != nil {
		return fmt.Errorf("job %s: %w: %w", j.ID, ErrStopCriteria, err)
	}
	if p := d.Progress(); p.StoppedBy != "" {
		return fmt.Errorf("job %s: %w: they end it where it is, by %s after sweep %d, %.0f s, at %s",
			j.ID, ErrStopCriteria, p.StoppedBy, j.Committed, j.Spent.Seconds(), p.Certificate)
	}
	return nil
}

// rolledCriteria returns the past criteria of a job that goes back to an earlier state and
// continues from there under its present criteria.
func (j *job) rolledCriteria(back *job) []pastCriteria {
	then, now := back.pastCriteria(), j.pastCriteria()
	if now.Sweep = then.Sweep; then == now {
		return back.CriteriaBefore
	}
	return append(slices.Clone(back.CriteriaBefore), then)
}

// sameSpec reports whether two specifications differ at most in stopping criteria.
func sameSpec(a, b []byte) bool {
	if string(a) == string(b) {
		return true
	}
	var x, y taxonv1.JobSpec
	if proto.Unmarshal(a, &x) != nil || proto.Unmarshal(b, &y) != nil || x.Options == nil || y.Options == nil {
		return false
	}
	for _, key := range []string{"gap", "max_sweeps", "max_seconds"} {
		x.Options.Set(key, y.Options.Value(key))
	}
	return proto.Equal(&x, &y)
}
