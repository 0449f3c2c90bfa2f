package plan

import (
	"encoding/json"
	"fmt"

	"taxon/coordinator/method"
)

// These are the steps of a job.
const (
	stageSolve = iota
	stageEmit
	stageEnd
)

// state is the driver's part of a checkpoint.
type state struct {
	Stage     int
	Sweep     uint32
	TimeUp    bool
	Once      bool // the time was up before the step began
	StoppedBy string
	Solves    uint32    // largest number of full passes of a block
	Primal    []float64 // P of each problem, once it is solved
	Dual      []float64
}

// driver has two steps. The first solves all problems, and the second writes their weights. A job
// that is resumed with other stopping criteria solves its problems again, because only the weights
// are kept.
type driver struct {
	state
	plan      *Plan
	gap       float64
	maxSolves uint32
	last      *method.Certificate
	report    json.RawMessage
}

func newDriver(o *Settings, plan *Plan, s method.State) (*driver, error) {
	d := &driver{state: state{Sweep: 1}, plan: plan, gap: o.Gap, maxSolves: o.MaxSweeps}
	if s == nil {
		return d, nil
	}
	if err := json.Unmarshal(s, &d.state); err != nil {
		return nil, err
	}
	if n := len(plan.Node); d.Stage < stageSolve || d.Stage > stageEnd || d.Stage > stageSolve && (len(d.Primal) != n ||
		len(d.Dual) != n) {
		return nil, fmt.Errorf("it stands at step %d with %d of %d problems: written by another version of taxon", d.Stage,
			len(d.Primal), n)
	}
	return d, d.certify()
}

// State implements method.Driver.
func (d *driver) State() method.State { return method.Encode(&d.state) }

// Next implements method.Driver.
func (d *driver) Next() (method.Step, bool) {
	d.Once = d.state.TimeUp
	return d.Step()
}

// Step implements method.Driver.
func (d *driver) Step() (method.Step, bool) {
	s := method.Step{Sweep: d.Sweep}
	tasks := method.Tasks{Items: Blocks, Count: uint32(len(d.plan.Problem)), Timed: true}
	switch d.Stage {
	case stageSolve:
		tasks.Op, tasks.Writes = OpSolve, []string{Weights}
		tasks.Params, tasks.Late = method.Encode(Solve{Once: d.Once}), method.Encode(Solve{Once: true})
	case stageEmit:
		tasks.Op, tasks.Reads = OpEmit, []method.Read{{Value: Weights}}
		s.Emit = true
	default:
		return s, false
	}
	s.Phase, s.Tasks = tasks.Op, []method.Tasks{tasks}
	return s, true
}

// Commit implements method.Driver.
func (d *driver) Commit(all []method.Sums) (method.Outcome, error) {
	if d.Stage != stageSolve {
		d.Stage = stageEnd
		return method.Outcome{}, nil
	}
	d.Primal, d.Dual, d.Solves = make([]float64, len(d.plan.Node)), make([]float64, len(d.plan.Node)), 0
	for b, s := range all {
		p := d.plan.Problem[b]
		d.Primal[p] += s[SumPrimal]
		d.Dual[p] += s[SumDual]
		d.Solves = max(d.Solves, uint32(s[SumSolves]))
	}
	d.Stage = stageEmit
	if err := d.certify(); err != nil {
		return method.Outcome{}, err
	}
	d.StoppedBy = d.reason()
	return method.Outcome{SweepDone: true, Certified: true}, nil
}

// certify sums the problems' figures.
func (d *driver) certify() error {
	if d.Stage == stageSolve {
		d.last, d.report = nil, nil
		return nil
	}
	c := &method.Certificate{Kind: method.Gap}
	for p, primal := range d.Primal {
		c.Objective += primal
		c.Dual += d.Dual[p]
	}
	c.Gap = method.RelativeGap(c.Objective, c.Dual)
	if err := method.CheckFinite(c.Objective, c.Gap); err != nil {
		return err
	}
	d.last, d.report = c, method.Encode(map[string]any{"per_node": method.PerNode(d.plan.Name, d.Primal, d.Dual)})
	return nil
}

// reason returns the reason for which the problems are not solved further.
func (d *driver) reason() string {
	switch {
	case d.last.Gap <= d.gap:
		return method.StoppedByGap
	case d.state.TimeUp:
		return method.StoppedByMaxTime
	case d.maxSolves > 0 && d.Solves >= d.maxSolves:
		return method.StoppedByMaxSweeps
	}
	return method.StoppedByStationary
}

// TimeUp implements method.Driver. Blocks that no worker has started are solved with one full pass
// only, so that each has weights and a certificate.
func (d *driver) TimeUp(up bool) method.DeadlinePolicy {
	d.state.TimeUp = up
	if up && d.Stage == stageSolve {
		return method.RunReduced
	}
	return method.RunFull
}

// Resume implements method.Driver.
func (d *driver) Resume(bool) {
	if d.Stage == stageSolve || !method.ByCriteria(d.StoppedBy) {
		return
	}
	if reason := d.reason(); reason != method.StoppedByStationary {
		d.StoppedBy = reason
		return
	}
	d.state = state{Sweep: d.Sweep + 1}
	d.last, d.report = nil, nil
}

// Progress implements method.Driver.
func (d *driver) Progress() method.Progress {
	return method.Progress{Sweep: d.Sweep, StoppedBy: d.StoppedBy, Tolerance: d.gap, Certificate: d.last, Report: d.report}
}
