package plan

import (
	"errors"
	"fmt"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// stage is the place of a step within its sweep.
type stage uint8

const (
	stageSample   stage = iota
	stageEvaluate       // the sweep's weights are written, to be evaluated
	stageCompare        // the chains are compared
	stageEmit           // the final weights are written
	stageEnd            // nothing is left to do
)

// Agreed is the largest R-hat at which chains count as converged to the same distribution.
const Agreed = 1.05

// state is what a checkpoint holds of a driver.
type state struct {
	Stage     stage
	Sweep     uint32 // under way, from 1
	TimeUp    bool   `json:",omitempty"`
	Sampled   bool   // Energy is set
	Energy    float64
	Figures   [Figures]float64 // sums over all sample tasks; of compare as they came
	Compared  bool             `json:",omitempty"`
	StoppedBy string
}

// driver runs a chain's iterations sweep by sweep.
type driver struct {
	state
	Settings
	length, burnIn, sweeps uint32
	maxSweeps, evalEvery   uint32
}

func newDriver(o *taxonv1.Options, s method.State) (*driver, error) {
	d := &driver{state: state{Sweep: 1}, maxSweeps: o.GetMaxSweeps(), evalEvery: o.GetEvalEvery()}
	var err error
	if d.Settings, err = SettingsOf(o); err != nil {
		return nil, err
	}
	d.length, d.burnIn, d.sweeps = d.cut()
	return d, method.Restore(s, &d.state, &d.Stage, stageEnd)
}

// State implements method.Driver.
func (d *driver) State() method.State { return method.Encode(&d.state) }

// params are those of the current sweep.
func (d *driver) params() Sample {
	p := Sample{Iterations: d.length, Leapfrog: d.Leapfrog}
	p.Keep, p.Every = d.kept()
	if done := (d.Sweep - 1) * d.length; done < d.burnIn {
		p.Adapt, p.Iterations = true, min(d.length, d.burnIn-done)
	}
	return p
}

// Next implements method.Driver.
func (d *driver) Next() (method.Step, bool) { return d.Step() }

// Step implements method.Driver.
func (d *driver) Step() (method.Step, bool) {
	s := method.Step{Sweep: d.Sweep, Phase: OpSample}
	tasks := method.Tasks{Items: All, Count: 1, Timed: true, Reads: []method.Read{{Value: Chain, All: true}},
		Params: method.Encode(struct{}{})}
	switch d.Stage {
	case stageSample:
		p := d.params()
		if p.Adapt {
			s.Phase = "burn-in"
		}
		tasks.Items, tasks.Count, tasks.Op, tasks.Writes = Chains, d.Chains, OpSample, []string{Chain}
		tasks.Reads = []method.Read{{Value: Chain}}
		tasks.Params = method.Encode(p)
		p.Iterations = 1
		tasks.Late = method.Encode(p)
	case stageCompare:
		s.Phase, tasks.Op = OpCompare, OpCompare
	case stageEvaluate, stageEmit:
		s.Emit, s.Show = d.Stage == stageEmit, d.Stage == stageEvaluate
		s.Phase, tasks.Op = OpEmit, OpEmit
	default:
		return method.Step{}, false
	}
	s.Tasks = []method.Tasks{tasks}
	return s, true
}

var errNotFinite = errors.New("the posterior's density is not finite where the chains stand: scale the " +
	"instances to unit length")

// Commit implements method.Driver.
func (d *driver) Commit(all []method.Sums) (method.Outcome, error) {
	switch d.Stage {
	case stageSample:
		var sweep [Figures]float64
		for _, s := range all {
			for k, x := range s { // of a task that was left out: none
				sweep[k] += x
			}
		}
		if sweep[SumIterations] == 0 { // the time was up before it began
			d.Sweep--
			d.StoppedBy, d.Stage = method.StoppedByMaxTime, stageCompare
			return method.Outcome{}, nil
		}
		if d.Energy = sweep[SumEnergy] / sweep[SumIterations]; d.Energy-d.Energy != 0 {
			return method.Outcome{}, errNotFinite
		}
		d.Sampled = true
		for k, x := range sweep {
			d.Figures[k] += x
		}
		if d.evalEvery > 0 && d.Sweep%d.evalEvery == 0 {
			d.Stage = stageEvaluate
			return method.Outcome{}, nil
		}
		return d.endSweep(), nil
	case stageEvaluate:
		return d.endSweep(), nil
	case stageCompare:
		for k := SumRHat; k < Figures; k++ {
			d.Figures[k] = all[0][k]
		}
		if d.Compared, d.Stage = true, stageEmit; d.Figures[SumDraws] > 0 {
			d.Energy = all[0][SumEnergy]
		}
		if d.StoppedBy == method.StoppedByStationary && !d.agree() {
			d.StoppedBy = method.StoppedByMaxSweeps // all sweeps of --x iterations are done
		}
	case stageEmit:
		d.Stage = stageEnd
	}
	return method.Outcome{}, nil
}

// agree says whether the chains agree.
func (d *driver) agree() bool { return d.Figures[SumRHat] > 0 && d.Figures[SumRHat] <= Agreed }

// endSweep commits the sweep, and ends the job or goes to the next one.
func (d *driver) endSweep() method.Outcome {
	if d.stop() {
		d.Stage = stageCompare
	} else {
		d.Sweep, d.Stage = d.Sweep+1, stageSample
	}
	return method.Outcome{SweepDone: true, Certified: true, Phase: OpSample}
}

func (d *driver) stop() bool {
	if d.StoppedBy = method.StoppedByStationary; d.Sweep < d.sweeps {
		d.StoppedBy = method.StoppedBy(false, d.Sweep, d.maxSweeps, d.state.TimeUp, false)
	}
	return d.StoppedBy != ""
}

// TimeUp implements method.Driver. A sweep that no worker has begun is left out, but the first
// one is only shortened.
func (d *driver) TimeUp(up bool) method.Late {
	d.state.TimeUp = up
	switch {
	case !up || d.Stage != stageSample:
		return method.LateRun
	case d.Sweep > 1:
		return method.LateLeave
	}
	return method.LateShort
}

// Resume implements method.Driver.
func (d *driver) Resume(bool) {
	if d.Stage < stageCompare || d.Sweep >= d.sweeps || !method.ByCriteria(d.StoppedBy) {
		return
	}
	if d.StoppedBy = ""; !d.stop() {
		d.Sweep, d.Stage, d.Compared = d.Sweep+1, stageSample, false
	}
}

// Progress implements method.Driver.
func (d *driver) Progress() method.Progress {
	p := method.Progress{Sweep: d.Sweep, StoppedBy: d.StoppedBy, MaxSweeps: d.sweeps}
	if d.maxSweeps > 0 {
		p.MaxSweeps = min(p.MaxSweeps, d.maxSweeps)
	}
	if d.Sampled {
		p.Certificate = &method.Certificate{Objective: d.Energy, PrimalOnly: true, Kind: method.Stationarity}
	}
	if d.Compared {
		p.Report = method.Encode(d.report())
	}
	return p
}

// report is what the method's report has of its own.
func (d *driver) report() any {
	known := func(k int) *float64 {
		if d.Figures[k] > 0 {
			return &d.Figures[k]
		}
		return nil
	}
	r := struct {
		RHat       *float64 `json:"r_hat_max"`
		ESS        *float64 `json:"ess_min"`
		Samples    float64  `json:"samples"`
		Draws      float64  `json:"draws"`
		Acceptance float64  `json:"acceptance"`
		Gradients  float64  `json:"gradients"`
		Diverged   float64  `json:"diverged"`
		Warning    string   `json:"warning,omitempty"`
	}{known(SumRHat), known(SumESS), d.Figures[SumKept], d.Figures[SumDraws],
		d.Figures[SumAccepted] / d.Figures[SumIterations], d.Figures[SumGradients], d.Figures[SumDiverged], ""}
	switch {
	case r.RHat == nil:
		r.Warning = "the chains have too few draws to tell whether they agree: predictions may be far from the " +
			"posterior's; give more iterations"
	case !d.agree():
		r.Warning = fmt.Sprintf("the chains do not agree yet: R-hat is up to %.3f, above %g; give more iterations", *r.RHat,
			Agreed)
	}
	return r
}
