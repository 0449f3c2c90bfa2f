package coordinator

import (
	"fmt"
	"slices"
	"strings"

	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// Caps are the options that say when a job ends. They may change while it rests: what it
// has done is the beginning of what it would have done, or as good as one. A sweep that was
// the last one allowed was priced for that, and the gap is what inner solves aim at, so the
// bytes in the end may be others than those of a job that had its caps from the start. Nil
// fields stay as they are.
type Caps struct {
	Gap        *float64 `json:",omitempty"`
	MaxSweeps  *uint32  `json:",omitempty"`
	MaxSeconds *float64 `json:",omitempty"`
}

// empty says whether nothing changes.
func (c Caps) empty() bool { return c.Gap == nil && c.MaxSweeps == nil && c.MaxSeconds == nil }

// CapsOf are the caps of a job's options, all of them.
func CapsOf(o *taxonv1.Options) Caps {
	return Caps{Gap: proto.Float64(o.GetGap()), MaxSweeps: proto.Uint32(o.GetMaxSweeps()), MaxSeconds: proto.Float64(o.GetMaxSeconds())}
}

// into writes the caps into options.
func (c Caps) into(o *taxonv1.Options) {
	if c.Gap != nil {
		o.Gap = *c.Gap
	}
	if c.MaxSweeps != nil {
		o.MaxSweeps = *c.MaxSweeps
	}
	if c.MaxSeconds != nil {
		o.MaxSeconds = *c.MaxSeconds
	}
}

// pastCaps are caps that a job had until, Sweep being the highest committed, others took
// their place. With the options they say what a job's bytes depend on.
type pastCaps struct {
	Sweep      uint32
	Gap        float64
	MaxSweeps  uint32  `json:",omitempty"` // 0: no cap
	MaxSeconds float64 `json:",omitempty"` // 0: no cap
}

func (p *pastCaps) message() *taxonv1.PastCaps {
	return &taxonv1.PastCaps{Sweep: p.Sweep, Gap: p.Gap, MaxSweeps: p.MaxSweeps, MaxSeconds: p.MaxSeconds}
}

// pastCaps are the caps that the job has now, once they are others.
func (j *job) pastCaps() pastCaps {
	o := j.spec.GetOptions()
	return pastCaps{Sweep: j.Committed, Gap: o.GetGap(), MaxSweeps: o.GetMaxSweeps(), MaxSeconds: o.GetMaxSeconds()}
}

// Rest is where a resting job stands: what it goes on from.
type Rest struct {
	State      []byte  // as in a checkpoint, with the caps that it goes on with
	Sweep      uint32  // highest committed
	CPUSeconds float64 // of its tasks so far
	Changed    string  // which caps are others, as "gap 0.0001 -> 1e-05"; empty: none
}

// Recap gives the job of a state (of a checkpoint) other caps. One that had stopped by its
// old ones goes on, if the new ones let it; what is there stays as it is if they are the
// same. Pure.
func Recap(state []byte, c Caps) (Rest, error) {
	j, err := reviveJob(state)
	if err != nil {
		return Rest{}, err
	}
	if j.Dropped {
		return Rest{}, fmt.Errorf("job %s: %w", j.ID, ErrNotResumable)
	}
	changed, err := j.recap(c)
	if err != nil {
		return Rest{}, err
	}
	if changed != "" {
		state = j.encode()
	}
	return Rest{State: state, Sweep: j.Committed, CPUSeconds: j.CPUSeconds, Changed: changed}, nil
}

// capsChanged lists the caps that differ, by the names of the command line's flags.
func capsChanged(old, now *taxonv1.Options) string {
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
	add("gap", "", old.GetGap(), now.GetGap())
	add("max-sweeps", "", float64(old.GetMaxSweeps()), float64(now.GetMaxSweeps()))
	add("max-time", " s", old.GetMaxSeconds(), now.GetMaxSeconds())
	return strings.Join(out, ", ")
}

// recap changes a resting job's caps, and says which are others.
func (j *job) recap(c Caps) (changed string, err error) {
	old := j.spec.GetOptions()
	options := proto.Clone(old).(*taxonv1.Options)
	c.into(options)
	if proto.Equal(options, old) {
		return "", nil
	}
	if err := checkOptions(options); err != nil {
		return "", err
	}
	spec := &taxonv1.JobSpec{Options: options, Data: j.spec.GetData(), Structure: j.spec.GetStructure(), Given: j.spec.GetGiven(), Drifting: j.spec.GetDrifting()}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("job %s: %w", j.ID, err)
	}
	with := *j.prepared
	with.spec = spec
	j.CapsBefore = append(j.CapsBefore, j.pastCaps())
	j.prepared, j.Spec = &with, data
	j.outer.recap(old, options, j.Spent)
	return capsChanged(old, options), nil
}

// recap goes by other caps from here on, after so much time of training.
func (o *outer) recap(old, now *taxonv1.Options, spent Tick) {
	o.gap, o.maxSweeps = now.GetGap(), now.GetMaxSweeps()
	if now.GetGap() != old.GetGap() {
		o.Aim = 0 // it was another tolerance's
	}
	if limit := now.GetMaxSeconds(); limit == 0 || spent.Seconds() < limit {
		o.Force, o.Short = false, false
	}
	o.reopen()
}

// reopen has a job go on that its caps had stopped, if those it has now do not. One that
// stands before a sweep may have to price it, or need not any more.
func (o *outer) reopen() {
	switch {
	case o.Stage == stageSolve, o.Stage == stageSet && o.Set == 0:
		o.Price = o.mustPrice()
		return
	case o.Stage < stageEmit || !byCap(o.StoppedBy):
		return
	}
	if o.StoppedBy = ""; o.stop() {
		return
	}
	if o.flat || !o.twoblock() {
		o.openSweep(o.Sweep + 1)
		return
	}
	// The internals' step was dropped, so it is done now.
	if support := o.rule() == "support"; o.judge() && support {
		o.Stage = stageGuard
		return
	}
	o.Stage, o.Price = stageReduce, false
}

// byCap says of the reason why a job stopped that it might go on.
func byCap(reason string) bool {
	return reason == stoppedByGap || reason == stoppedBySweeps || reason == stoppedByTime
}

// applyReopen queues an ended job again.
func (j *job) applyReopen(r *Record) error {
	o := j.outer
	switch {
	case o.Stage < stageEmit:
		o.StoppedBy = ""
	case o.StoppedBy == stoppedByCancelled: // while it wrote its weights
		if o.StoppedBy = ""; !o.stop() {
			o.StoppedBy = o.atRest()
		}
	}
	changed := ""
	if r.Caps != nil {
		var err error
		if changed, err = j.recap(*r.Caps); err != nil {
			return err
		}
	}
	if j.Lost { // it begins at what is loaded
		o.StoppedBy = ""
	}
	j.State, j.Error, j.Ended, j.Failed, j.Futile = taxonv1.JobState_JOB_STATE_QUEUED, "", 0, nil, 0
	if changed != "" {
		changed = ", " + changed
	}
	j.note(r.At, levelInfo, "resumed behind sweep %d%s", j.Committed, changed)
	return nil
}

// capped says whether a job is done for its caps alone, and all is there to go on from.
func (j *job) capped() bool {
	return j.State == taxonv1.JobState_JOB_STATE_DONE && byCap(j.outer.StoppedBy) && !j.Dropped
}

// mayGoOn says why other caps would not let an ended job go on; nil: they do.
func (j *job) mayGoOn(c Caps) error {
	options := proto.Clone(j.spec.GetOptions()).(*taxonv1.Options)
	c.into(options)
	if err := checkOptions(options); err != nil {
		return fmt.Errorf("job %s: %w: %w", j.ID, ErrCaps, err)
	}
	if !j.capped() || j.Lost {
		return nil
	}
	copied := *j.outer
	copied.recap(j.spec.GetOptions(), options, j.Spent)
	if copied.Stage >= stageEmit {
		return fmt.Errorf("job %s: %w: they end it where it is, by %s after sweep %d, %.0f s, at gap %.3g",
			j.ID, ErrCaps, copied.StoppedBy, j.Committed, j.Spent.Seconds(), j.outer.Last.Gap)
	}
	return nil
}

// rolledCaps are the past caps of a job that goes back to another state of itself, and on
// from there with the caps that it has now.
func (j *job) rolledCaps(back *job) []pastCaps {
	then, now := back.pastCaps(), j.pastCaps()
	if now.Sweep = then.Sweep; then == now {
		return back.CapsBefore
	}
	return append(slices.Clone(back.CapsBefore), then)
}

// sameSpec says whether two specifications differ in nothing but caps.
func sameSpec(a, b []byte) bool {
	if string(a) == string(b) {
		return true
	}
	var x, y taxonv1.JobSpec
	if proto.Unmarshal(a, &x) != nil || proto.Unmarshal(b, &y) != nil || x.Options == nil || y.Options == nil {
		return false
	}
	CapsOf(y.Options).into(x.Options)
	return proto.Equal(&x, &y)
}
