package plan

import (
	"math"

	"taxon/coordinator/method"
)

// stage is the place of a step within its sweep.
type stage uint8

const (
	stageMove     stage = iota // a trial point is made
	stageScore                 // its losses and gradient contributions
	stageGather                // it is accepted
	stageEvaluate              // its weights are written, to be evaluated
	stageEmit                  // the final weights are written
	stageEnd                   // nothing is left to do
)

// phases are the stages as users see them.
var phases = [...]string{"move", "score", "gather", "evaluate", "emit", "end"}

const (
	// armijo is the share of the decrease predicted by the slope that a step must reach.
	armijo = 1e-4
	// rounding is the relative error that P, a sum over all instances, may have.
	rounding = 1e-14
	// maxTries bounds the steps that a line search tries before it gives up its direction.
	maxTries = 30
	// stationarySweeps is the number of sweeps in a row after which a job ends if none changes
	// the gap by a tenth or P by more than its rounding.
	stationarySweeps = 20
)

// state is the iteration between two steps: what a checkpoint holds of it.
type state struct {
	Sweep  uint32 // under way, from 1
	Stage  stage  // of the step under way
	TimeUp bool   `json:",omitempty"`
	// accepted points that values tell of, the current one included
	Points     int
	History    history
	Length     float64   // t of the trial
	U, S       []float64 `json:",omitempty"` // the direction: see Move
	Slope      float64   // along it
	Tries      uint32    // steps tried along it
	Norm       float64   // ||W||^2 of the trial
	Losses     float64   // C times its losses
	Certified  bool      // Last is set
	Last       method.Certificate
	Best       float64 // smallest gap that was a tenth below the one before it
	StallCount uint32  // sweeps in a row that changed nothing
	StoppedBy  string
}

// driver is the scalar part of the iteration.
type driver struct {
	state
	Settings
	rows, ranges uint32
}

// newDriver makes a driver at the first sweep.
func newDriver(o Settings, plan *method.Plan) *driver {
	return &driver{
		state: state{Sweep: 1, Stage: stageScore}, Settings: o, rows: uint32(plan.Items[Rows].Count),
		ranges: uint32(plan.Items[Ranges].Count),
	}
}

// State implements method.Driver.
func (d *driver) State() method.State { return method.Encode(&d.state) }

// Progress implements method.Driver.
func (d *driver) Progress() method.Progress {
	p := method.Progress{Sweep: d.Sweep, StoppedBy: d.StoppedBy, Tolerance: d.Gap, MaxSweeps: d.MaxSweeps}
	if d.Certified {
		last := d.Last
		p.Certificate = &last
	}
	return p
}

// Next implements method.Driver.
func (d *driver) Next() (method.Step, bool) {
	if d.state.TimeUp && d.leaves() {
		d.giveUp(method.StoppedByMaxTime)
	}
	return d.Step()
}

// Step implements method.Driver.
func (d *driver) Step() (method.Step, bool) {
	s := method.Step{Sweep: d.Sweep, Phase: phases[min(d.Stage, stageEnd)]}
	ranges := method.Tasks{Items: Ranges, Count: d.ranges, Timed: true}
	switch d.Stage {
	case stageMove:
		ranges.Op, ranges.Params = OpMove, method.Encode(Move{Step: d.Length, U: d.U, S: d.S})
		ranges.Reads, ranges.Writes = points(len(d.U)), []string{Trial}
		s.Tasks = []method.Tasks{ranges}
	case stageScore:
		s.Tasks = []method.Tasks{{Op: OpScore, Items: Rows, Count: d.rows, Timed: true,
			Params: method.Encode(struct{}{}), Reads: []method.Read{{Value: Trial, All: true}}, Writes: []string{V}}}
	case stageGather:
		past := min(d.Points, Memory)
		ranges.Op, ranges.Params = OpGather, method.Encode(Gather{Past: past})
		ranges.Reads = append([]method.Read{{Value: V, All: true}, {Value: Trial}}, points(past)...)
		ranges.Writes = []string{W, G}
		s.Tasks = []method.Tasks{ranges}
	case stageEvaluate, stageEmit:
		s.Emit, s.Show = d.Stage == stageEmit, d.Stage == stageEvaluate
		ranges.Op, ranges.Params, ranges.Reads = OpEmit, method.Encode(struct{}{}), []method.Read{{Value: W}}
		s.Tasks = []method.Tasks{ranges}
	default:
		return method.Step{}, false
	}
	return s, true
}

// points reads the last n points and their gradients.
func points(n int) (reads []method.Read) {
	for back := range n {
		reads = append(reads, method.Read{Value: W, Back: back}, method.Read{Value: G, Back: back})
	}
	return reads
}

// Commit implements method.Driver.
func (d *driver) Commit(all []method.Sums) (method.Outcome, error) {
	total := make(method.Sums, sumProducts)
	var products Products
	for _, s := range all {
		if s == nil {
			continue
		}
		for i := range total {
			total[i] += s[i]
		}
		products.add(s)
	}
	if d.state.TimeUp && d.leaves() {
		return d.giveUp(method.StoppedByMaxTime), nil
	}
	switch d.Stage {
	case stageMove:
		d.Norm, d.Stage = total[SumNorm], stageScore
	case stageScore:
		d.Losses = total[SumLoss]
		if d.Sweep > 1 && !d.goodEnough() {
			return d.shorten(), nil
		}
		d.Stage = stageGather
	case stageGather:
		d.History.accept(&products, min(d.Points, Memory))
		d.Points = d.History.Older + 1
		if err := d.certify(total[SumNorm], total[SumGradient]); err != nil {
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

// objective is P at the trial point.
func (d *driver) objective() float64 { return 0.5*d.Norm + d.Losses }

// goodEnough is Armijo's condition on the trial point.
func (d *driver) goodEnough() bool {
	last := d.Last.Objective
	return d.objective() <= last+float64(armijo*float64(d.Length*d.Slope))+float64(rounding*last)
}

// shorten tries a smaller step: the minimum of the parabola through the known values, within
// bounds. If no step along a direction is good, the negative gradient replaces it. If that has no
// good step either, float64 has no more digits to offer.
func (d *driver) shorten() method.Outcome {
	if d.Tries++; d.Tries >= maxTries {
		if d.History.Older == 0 {
			return d.giveUp(method.StoppedByStationary)
		}
		d.History.forget()
		d.Points = 1
		d.aim()
		return method.Outcome{Drop: dropTrial}
	}
	linear := float64(d.Length * d.Slope)
	share := -linear / (2 * (d.objective() - d.Last.Objective - linear))
	if !(share >= 0.1) { // also not a number
		share = 0.1
	}
	d.Length *= min(share, 0.5)
	d.Stage = stageMove
	return method.Outcome{Drop: dropTrial}
}

// dropTrial drops the figures of a trial point that is not accepted.
var dropTrial = []string{Trial, V}

// giveUp ends the job at the last accepted point. Its sweep was the last one.
func (d *driver) giveUp(reason string) method.Outcome {
	d.Sweep--
	d.StoppedBy, d.Stage = reason, stageEmit
	return method.Outcome{Drop: dropTrial}
}

// certify takes the certificate of the accepted point.
func (d *driver) certify(norm, gradient float64) error {
	d.Norm = norm // of the start it was not known
	p := d.objective()
	dual, gap := p-0.5*gradient, 0.0
	if gradient > 0 {
		gap = 0.5 * gradient / p
	}
	if d.Certified && d.Last.Dual > dual { // a bound once found holds
		dual = d.Last.Dual
		gap = max((p-dual)/p, 0)
	}
	if err := method.CheckFinite(p, gap); err != nil {
		return err
	}
	moved := math.Abs(p - d.Last.Objective)
	switch {
	case !d.Certified || gap < 0.9*d.Best:
		d.Best, d.StallCount = gap, 0
	case moved > float64(rounding*p):
		d.StallCount = 0
	default:
		d.StallCount++
	}
	d.Last, d.Certified = method.Certificate{Objective: p, Dual: dual, Gap: gap}, true
	return nil
}

// endSweep commits the sweep, and ends the job or goes to the next one.
func (d *driver) endSweep() method.Outcome {
	if d.stop() {
		d.Stage = stageEmit
	} else {
		d.openSweep()
	}
	return method.Outcome{SweepDone: true, Certified: true, Phase: phases[stageGather]}
}

// stop applies the stopping rules, the tolerance first.
func (d *driver) stop() bool {
	d.StoppedBy = method.StoppedBy(d.Last.Gap <= d.Gap, d.Sweep, d.MaxSweeps, d.state.TimeUp,
		d.StallCount >= stationarySweeps)
	return d.StoppedBy != ""
}

// openSweep goes to the first step of the next sweep.
func (d *driver) openSweep() {
	d.Sweep++
	d.aim()
}

// aim sets the direction from the current point, and a whole step along it.
func (d *driver) aim() {
	d.U, d.S, d.Slope = d.History.direction()
	if !(d.Slope < 0) { // rounding ate the curvature
		d.History.forget()
		d.Points = 1
		d.U, d.S, d.Slope = d.History.direction()
	}
	d.Length, d.Tries, d.Stage = 1, 0, stageMove
}

// leaves says whether nothing depends on the point of the current step. The first sweep's point
// is needed: without it there is no certificate.
func (d *driver) leaves() bool {
	return d.Sweep > 1 && (d.Stage == stageMove || d.Stage == stageScore)
}

// TimeUp implements method.Driver. A trial point that is not accepted yet is dropped.
func (d *driver) TimeUp(up bool) method.Late {
	d.state.TimeUp = up
	if up && d.leaves() {
		return method.LateLeave
	}
	return method.LateRun
}

// Resume implements method.Driver.
func (d *driver) Resume(bool) {
	if d.Stage < stageEmit || !method.ByCriteria(d.StoppedBy) {
		return
	}
	if d.StoppedBy = ""; !d.stop() {
		d.openSweep()
	}
}
