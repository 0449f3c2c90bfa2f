package plan

import (
	"math"

	"taxon/coordinator/method"
)

// stage identifies a step within its sweep.
type stage uint8

const (
	stageMove     stage = iota // computes a trial point
	stageScore                 // computes its losses and gradient contributions
	stageGather                // accepts it
	stageEvaluate              // the weights of the point are written, to be evaluated
	stageEmit                  // the final weights are written
	stageEnd                   // nothing is left to do
)

// phases are the names of the stages in progress reports.
var phases = [...]string{"move", "score", "gather", "evaluate", "emit", "end"}

const (
	// armijo is the share of the decrease predicted by the slope that a step must achieve.
	armijo = 1e-4

	// rounding is the possible relative error of P, which is a sum over all instances.
	rounding = 1e-14

	// maxTries bounds the steps that a line search tries before it drops the direction.
	maxTries = 30

	// stationarySweeps is the number of consecutive sweeps without progress after which a job ends.
	// A sweep makes progress if it lowers the gap by a tenth or changes P by more than its rounding
	// error.
	stationarySweeps = 20
)

// state is the iteration between two steps, and the driver's part of a checkpoint.
type state struct {
	Sweep  uint32 // the current sweep, from 1
	Stage  stage  // the stage of the current step
	TimeUp bool   `json:",omitempty"`

	// Points is the number of accepted points with stored values, the current one included.
	Points     int
	History    history
	Length     float64   // t of the trial point
	U, S       []float64 `json:",omitempty"` // coefficients of the direction: see Move
	Slope      float64   // slope along the direction
	Tries      uint32    // steps tried along the direction
	Norm       float64   // ||W||^2 of the trial point
	Losses     float64   // C times the losses of the trial point
	Certified  bool      // whether Last is set
	Last       method.Certificate
	Best       float64 // the last gap below 0.9 of the best before it
	StallCount uint32  // consecutive sweeps without progress
	StoppedBy  string
}

// driver is the scalar part of the iteration. The vectors stay in the store.
type driver struct {
	state
	Settings
	rows, ranges uint32
}

// newDriver returns a driver at the first sweep.
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

// points returns the reads of the last n points and their gradients.
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

// objective returns P at the trial point.
func (d *driver) objective() float64 { return 0.5*d.Norm + d.Losses }

// goodEnough reports whether the trial point satisfies Armijo's condition.
func (d *driver) goodEnough() bool {
	last := d.Last.Objective
	return d.objective() <= last+float64(armijo*float64(d.Length*d.Slope))+float64(rounding*last)
}

// shorten tries a smaller step: the minimum of the parabola through the known values, within
// limits. If no step along a direction is good enough, the negative gradient replaces the
// direction. If the gradient has no good step either, the precision of float64 is exhausted and the
// job ends.
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
	if !(share >= 0.1) { // also if it is NaN
		share = 0.1
	}
	d.Length *= min(share, 0.5)
	d.Stage = stageMove
	return method.Outcome{Drop: dropTrial}
}

// dropTrial lists the values of a trial point that is not accepted, which are dropped.
var dropTrial = []string{Trial, V}

// giveUp ends the job at the last accepted point, whose sweep was the last one.
func (d *driver) giveUp(reason string) method.Outcome {
	d.Sweep--
	d.StoppedBy, d.Stage = reason, stageEmit
	return method.Outcome{Drop: dropTrial}
}

// certify sets the certificate of the accepted point.
func (d *driver) certify(norm, gradient float64) error {
	d.Norm = norm // the norm of the initial point was unknown
	p := d.objective()
	dual, gap := p-0.5*gradient, 0.0
	if gradient > 0 {
		gap = 0.5 * gradient / p
	}
	if d.Certified && d.Last.Dual > dual { // an earlier, better bound stays valid
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

// endSweep commits the sweep. It ends the job or begins the next sweep.
func (d *driver) endSweep() method.Outcome {
	if d.stop() {
		d.Stage = stageEmit
	} else {
		d.openSweep()
	}
	return method.Outcome{SweepDone: true, Certified: true, Phase: phases[stageGather]}
}

// stop applies the stopping criteria, the tolerance first.
func (d *driver) stop() bool {
	d.StoppedBy = method.StoppedBy(d.Last.Gap <= d.Gap, d.Sweep, d.MaxSweeps, d.state.TimeUp,
		d.StallCount >= stationarySweeps)
	return d.StoppedBy != ""
}

// openSweep begins the first step of the next sweep.
func (d *driver) openSweep() {
	d.Sweep++
	d.aim()
}

// aim sets the direction from the current point, and a step of length 1 along it.
func (d *driver) aim() {
	d.U, d.S, d.Slope = d.History.direction()
	if !(d.Slope < 0) { // rounding has spoilt the curvature
		d.History.forget()
		d.Points = 1
		d.U, d.S, d.Slope = d.History.direction()
	}
	d.Length, d.Tries, d.Stage = 1, 0, stageMove
}

// leaves reports whether the current step may be left out, because nothing depends on its point.
// The first sweep's point is required, because without it there is no certificate.
func (d *driver) leaves() bool {
	return d.Sweep > 1 && (d.Stage == stageMove || d.Stage == stageScore)
}

// TimeUp implements method.Driver. A trial point that has not been accepted is dropped.
func (d *driver) TimeUp(up bool) method.DeadlinePolicy {
	d.state.TimeUp = up
	if up && d.leaves() {
		return method.Skip
	}
	return method.RunFull
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
