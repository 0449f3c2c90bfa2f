// Package blockwise drives methods whose problems are each solved by one task. Each problem is an
// item. A sweep is one step, with a task for each problem that is not solved yet. A task
// continues from the value that the problem's last task wrote, and reports P and D. So several
// problems, and many trainings, run side by side. A single problem runs on one thread.
//
// Methods of such problems share the driver and the parameters of its tasks: params.go.
package blockwise

import (
	"encoding/json"
	"fmt"
	"maps"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Setup is what a method says of its problems.
type Setup struct {
	// the family of values, one a problem, that a solve continues from
	Value string
	// whose problem each is, for per_node of the report; nil: there is one
	Nodes  []string
	Report map[string]any // more of the report
}

// stage is the place of a step within its sweep.
type stage uint8

const (
	stageSolve    stage = iota
	stageEvaluate       // the sweep's weights are written, to be evaluated
	stageEmit           // the final weights are written
	stageEnd            // nothing is left to do
)

const (
	// sweepEpochs bounds the passes of a sweep. Dense data of few features take hundreds, and a
	// pass over the working sets costs little compared with a pass over all classes.
	sweepEpochs = 300
	// stationarySweeps is the number of sweeps in a row after which a job ends if none lowers the
	// gap by a tenth or raises D by a thousandth of it.
	stationarySweeps = 10
	stationaryRise   = 1e-3
)

// state is what a checkpoint holds of a driver.
type state struct {
	Stage     stage
	Sweep     uint32 // under way, from 1
	TimeUp    bool   `json:",omitempty"`
	Certified bool   // Last is set
	Last      method.Certificate
	// of each problem, once they are solved, where there are several
	Primal     []float64 `json:",omitempty"`
	Dual       []float64 `json:",omitempty"`
	Best       float64   // smallest gap that was a tenth below the one before it
	StallCount uint32    // sweeps in a row that changed next to nothing
	StoppedBy  string
}

// driver runs sweep after sweep until the gap is small enough.
type driver struct {
	state
	Setup
	settings
	problems uint32
}

// settings are the options that the driver goes by.
type settings struct {
	Gap       float64 `option:"gap"`
	MaxSweeps uint32  `option:"max-sweeps"`
	EvalEvery uint32  `option:"eval-every"`
}

// options are those that a method of such a driver has.
var options = []method.Option{method.GapWanted, method.EvalEvery}

// New makes a driver, from nothing or from the state in a checkpoint.
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

// report is what the method's report has of its own.
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

// open lists the runs of problems that are not solved yet: their beginnings and ends.
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
		if !ok { // left out, as the time is up
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

// fold takes the figures of the solved problems and adds up those of all. ok: all are known.
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

// certify sets the certificate of the sweep.
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

// endSweep commits the sweep, and ends the job or goes to the next one.
func (d *driver) endSweep() method.Outcome {
	if d.stop() {
		d.Stage = stageEmit
	} else {
		d.Sweep, d.Stage = d.Sweep+1, stageSolve
	}
	return method.Outcome{SweepDone: true, Certified: true, Phase: OpSolve}
}

// stop applies the stopping rules, the tolerance first.
func (d *driver) stop() bool {
	d.StoppedBy = method.StoppedBy(d.Last.Gap <= d.Gap, d.Sweep, d.MaxSweeps, d.state.TimeUp,
		d.StallCount >= stationarySweeps)
	return d.StoppedBy != ""
}

// leaves says whether the current step may be left out. The first sweep's may not: without it
// there is no result.
func (d *driver) leaves() bool { return d.Sweep > 1 && d.Stage == stageSolve }

// giveUp ends the job with the result of the last sweep.
func (d *driver) giveUp() {
	d.Sweep--
	d.StoppedBy, d.Stage = method.StoppedByMaxTime, stageEmit
}

// TimeUp implements method.Driver. A sweep that no worker has begun is left out, but the first
// one is only shortened.
func (d *driver) TimeUp(up bool) method.Late {
	d.state.TimeUp = up
	switch {
	case up && d.leaves():
		return method.LateLeave
	case up && d.Stage == stageSolve:
		return method.LateShort
	}
	return method.LateRun
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
