// Package blockwise drives methods whose training consists of independent problems, each of which a
// single task solves. Each problem is an item. A sweep is one step, with one task for each unsolved
// problem. A task continues from the value that the problem's previous task wrote, and reports the
// primal objective P and the dual D. So several problems, and several trainings, run in parallel; a
// single problem runs on one thread.
//
// These methods share the driver and the parameters of its tasks (params.go).
package blockwise

import (
	"encoding/json"
	"fmt"
	"maps"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Setup describes a method's problems to the driver.
type Setup struct {
	// Value is the family of values, one per problem, from which a task continues.
	Value string

	// Nodes names the node of each problem, for the report's per_node. A nil Nodes stands for a
	// single problem.
	Nodes []string

	// Report holds further entries of the report. It may be nil.
	Report map[string]any
}

// stage identifies a step within its sweep.
type stage uint8

const (
	stageSolve    stage = iota
	stageEvaluate       // the weights of the sweep are written, to be evaluated
	stageEmit           // the final weights are written
	stageEnd            // nothing is left to do
)

const (
	// sweepEpochs bounds the passes of a sweep over its working sets. Dense data with few features
	// take hundreds of passes, and such a pass is cheap compared with a pass over all classes.
	sweepEpochs = 300

	// stationarySweeps is the number of consecutive sweeps without progress after which a job ends.
	// A sweep makes progress if it lowers the gap by a tenth or raises D by a thousandth of the
	// gap.
	stationarySweeps = 10
	stationaryRise   = 1e-3
)

// state is the driver's part of a checkpoint.
type state struct {
	Stage     stage
	Sweep     uint32 // the current sweep, from 1
	TimeUp    bool   `json:",omitempty"`
	Certified bool   // whether Last is set
	Last      method.Certificate

	// Primal holds P of each problem, once the problems have been solved. It is nil for a single
	// problem.
	Primal []float64 `json:",omitempty"`

	// Dual holds D of each problem, as Primal holds P.
	Dual []float64 `json:",omitempty"`

	// Best is the last gap that was below 0.9 of the best before it.
	Best float64

	// StallCount counts the last consecutive sweeps without progress.
	StallCount uint32
	StoppedBy  string
}

// driver repeats sweeps until the gap is within the tolerance or another criterion ends the job.
type driver struct {
	state
	Setup
	settings
	problems uint32
}

// settings are the options that the driver uses.
type settings struct {
	Gap       float64 `option:"gap"`
	MaxSweeps uint32  `option:"max-sweeps"`
	EvalEvery uint32  `option:"eval-every"`
}

// options are the options that every method with such a driver has.
var options = []method.Option{method.GapWanted, method.EvalEvery}

// New returns a driver, which begins at s if s holds the state of a checkpoint.
func New(o *taxonv1.Options, setup Setup, s method.State) (method.Driver, error) {
	d := &driver{state: state{Sweep: 1}, Setup: setup, problems: uint32(max(len(setup.Nodes), 1))}
	if err := method.ReadOptions(o, options, &d.settings); err != nil {
		return nil, err
	}
	if err := method.Restore(s, &d.state, &d.Stage, stageEnd); err != nil {
		return nil, err
	}
	if n := len(d.Primal); n != len(d.Dual) || n > 0 && n != len(d.Nodes) {
		return nil, fmt.Errorf("it stands at stage %d with %d problems, which this version does not know", d.Stage, n)
	}
	return d, nil
}

// State implements method.Driver.
func (d *driver) State() method.State { return method.Encode(&d.state) }

// Progress implements method.Driver.
func (d *driver) Progress() method.Progress {
	p := method.Progress{Sweep: d.Sweep, StoppedBy: d.StoppedBy, Tolerance: d.Gap, MaxSweeps: d.MaxSweeps}
	if d.Certified {
		last := d.Last
		p.Certificate = &last
		p.Report = d.report()
	}
	return p
}

// report returns the method's own entries of the report, or nil if there are none.
func (d *driver) report() json.RawMessage {
	if d.Report == nil && d.Nodes == nil {
		return nil
	}
	out := maps.Clone(d.Report)
	if d.Nodes != nil {
		if out == nil {
			out = map[string]any{}
		}
		out["per_node"] = method.PerNode(d.Nodes, d.Primal, d.Dual)
	}
	return method.Encode(out)
}

// open lists the runs of consecutive unsolved problems, as [begin, end).
func (d *driver) open() (runs [][2]uint32) {
	for k := range d.problems {
		if len(d.Primal) > 0 && method.RelativeGap(d.Primal[k], d.Dual[k]) <= d.Gap {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1][1] == k {
			runs[n-1][1]++
		} else {
			runs = append(runs, [2]uint32{k, k + 1})
		}
	}
	return runs
}

// Next implements method.Driver.
func (d *driver) Next() (method.Step, bool) {
	if d.state.TimeUp && d.leaves() {
		d.giveUp()
	}
	return d.Step()
}

// Step implements method.Driver.
func (d *driver) Step() (method.Step, bool) {
	s := method.Step{Sweep: d.Sweep, Phase: OpSolve}
	tasks := method.Tasks{Items: Problems, Count: d.problems, Timed: true, Reads: []method.Read{{Value: d.Value}}}
	switch d.Stage {
	case stageSolve:
		tasks.Op, tasks.Writes = OpSolve, []string{d.Value}
		tasks.Params = method.Encode(Solve{Gap: d.Gap, Epochs: sweepEpochs})
		tasks.Late = method.Encode(Solve{Gap: d.Gap, Epochs: 1})
		for _, run := range d.open() {
			tasks.First, tasks.Count = run[0], run[1]-run[0]
			s.Tasks = append(s.Tasks, tasks)
		}
		return s, true
	case stageEvaluate, stageEmit:
		s.Emit, s.Show = d.Stage == stageEmit, d.Stage == stageEvaluate
		s.Phase, tasks.Op, tasks.Params = OpEmit, OpEmit, method.Encode(struct{}{})
	default:
		return method.Step{}, false
	}
	s.Tasks = []method.Tasks{tasks}
	return s, true
}

// Commit implements method.Driver.
func (d *driver) Commit(all []method.Sums) (method.Outcome, error) {
	switch d.Stage {
	case stageSolve:
		p, dual, ok := d.fold(all)
		if !ok { // the task was left out because the time is up
			d.giveUp()
			return method.Outcome{}, nil
		}
		if err := d.certify(p, dual); err != nil {
			return method.Outcome{}, err
		}
		if d.EvalEvery > 0 && d.Sweep%d.EvalEvery == 0 {
			d.Stage = stageEvaluate
			return method.Outcome{}, nil
		}
		return d.endSweep(), nil
	case stageEvaluate:
		return d.endSweep(), nil
	case stageEmit:
		d.Stage = stageEnd
	}
	return method.Outcome{}, nil
}

// fold stores the figures of the problems that this step has solved, and returns the sums of P and
// D over all problems. ok is false if no problem was solved.
func (d *driver) fold(all []method.Sums) (p, dual float64, ok bool) {
	if d.Nodes == nil {
		if len(all) != 1 || all[0] == nil {
			return 0, 0, false
		}
		return all[0][SumPrimal], all[0][SumDual], true
	}
	runs := d.open()
	if len(d.Primal) == 0 {
		d.Primal, d.Dual = make([]float64, d.problems), make([]float64, d.problems)
	}
	at := 0
	for _, run := range runs {
		for k := run[0]; k < run[1]; k++ {
			if s := all[at]; s != nil {
				d.Primal[k], d.Dual[k], ok = s[SumPrimal], s[SumDual], true
			}
			at++
		}
	}
	for k := range d.Primal {
		p += d.Primal[k]
		dual += d.Dual[k]
	}
	return p, dual, ok
}

// certify sets the certificate of the sweep and updates the stall count.
func (d *driver) certify(p, dual float64) error {
	gap := method.RelativeGap(p, dual)
	if err := method.CheckFinite(p, gap); err != nil {
		return err
	}
	switch {
	case !d.Certified || gap < 0.9*d.Best:
		d.Best, d.StallCount = gap, 0
	case dual-d.Last.Dual > float64(stationaryRise*(p-dual)):
		d.StallCount = 0
	default:
		d.StallCount++
	}
	d.Last, d.Certified = method.Certificate{Objective: p, Dual: dual, Gap: gap, Kind: method.Gap}, true
	return nil
}

// endSweep commits the sweep. It ends the job or begins the next sweep.
func (d *driver) endSweep() method.Outcome {
	if d.stop() {
		d.Stage = stageEmit
	} else {
		d.Sweep, d.Stage = d.Sweep+1, stageSolve
	}
	return method.Outcome{SweepDone: true, Certified: true, Phase: OpSolve}
}

// stop applies the stopping criteria, the tolerance first.
func (d *driver) stop() bool {
	d.StoppedBy = method.StoppedBy(d.Last.Gap <= d.Gap, d.Sweep, d.MaxSweeps, d.state.TimeUp,
		d.StallCount >= stationarySweeps)
	return d.StoppedBy != ""
}

// leaves reports whether the current step may be left out once the time is up. The first sweep may
// not, because without it there is no result.
func (d *driver) leaves() bool { return d.Sweep > 1 && d.Stage == stageSolve }

// giveUp ends the job with the result of the previous sweep.
func (d *driver) giveUp() {
	d.Sweep--
	d.StoppedBy, d.Stage = method.StoppedByMaxTime, stageEmit
}

// TimeUp implements method.Driver. A sweep that no worker has begun is left out. The first sweep is
// only shortened.
func (d *driver) TimeUp(up bool) method.DeadlinePolicy {
	d.state.TimeUp = up
	switch {
	case up && d.leaves():
		return method.Skip
	case up && d.Stage == stageSolve:
		return method.RunReduced
	}
	return method.RunFull
}

// Resume implements method.Driver.
func (d *driver) Resume(bool) {
	if d.Stage < stageEmit || !method.ByCriteria(d.StoppedBy) {
		return
	}
	if d.StoppedBy = ""; !d.stop() {
		d.Sweep, d.Stage, d.StallCount = d.Sweep+1, stageSolve, 0
	}
}
