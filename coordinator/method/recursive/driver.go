package recursive

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"taxon/coordinator/method"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
)

// priced says whether a sweep passes over all data in float64 and yields a certificate:
// the first ones often, as their working sets are guesses, then every fourth, and the one
// that is expected to reach the tolerance.
func (o *driver) priced(sweep uint32) bool {
	switch {
	case sweep == o.Aim:
		return true
	case o.WarmStarted:
		return sweep <= o.p.WarmPriced || regular(sweep)
	case sweep < o.p.FirstPriced:
		return false
	case o.p.SparsePricing && o.sampled:
		return sweep == 2 || sweep%4 == 0
	}
	return regular(sweep)
}

// regular says whether a job from nothing prices the sweep, whatever its gap.
func regular(sweep uint32) bool {
	return sweep <= 4 || sweep <= 8 && sweep%2 == 0 || sweep%4 == 0
}

// band is the width of the working sets that the sweep's pricing draws.
func (o *driver) band() float64 {
	switch {
	case o.Safeguarded:
		return math.MaxFloat64
	case o.WarmStarted && o.Sweep <= o.p.WarmBands:
		return o.p.WarmBand
	case o.Sweep <= o.p.FirstBands:
		return o.p.FirstBand
	}
	return o.p.Band
}

// stage is the place of a step within its sweep.
type stage uint8

const (
	stageSolve     stage = iota // twoblock, flat: MAP of all blocks
	stageReduce                 // twoblock: exact solve for the internals at what stageSolve wrote
	stageSafeguard              // twoblock: stageReduce again with the curvature of whole families, as P rose
	stageSet                    // parity, colour, jacobi: MAP and REDUCE of one independent set
	stagePrice                  // parity, colour, jacobi, and when the time is up: MAP without epochs, only priced
	stageCertify                // behind it: sums of the internals, nothing moves
	stageEvaluate               // the weights of the sweep under way are written, to be evaluated
	stageEmit                   // the final weights are written
	stageEnd                    // nothing is left to do
)

// phases are the stages as users see them (JobStatus.phase, SweepRecord.phase).
var phases = [...]string{"solve", "reduce", "guard", "sweep", "price", "certify", "evaluate", "emit", "end"}

// state is the iteration between two steps: what a checkpoint holds of it.
type state struct {
	Sweep       uint32  // under way, from 1
	Stage       stage   // of the step under way
	Set         uint32  // independent set, in stageSet
	Price       bool    // the sweep under way is priced
	TimeUp      bool    `json:",omitempty"` // nothing is solved any more, the job prices and ends: see timeup.go
	T           float64 // FISTA's t
	Beta        float64 // momentum of the point y = x + Beta (x - x_prev) of this sweep
	Rises       uint32  // pricing sweeps in a row whose P lay above Accepted
	Accepted    float64 // P of the last accepted pricing sweep
	MaxInner    uint32  // bound on inner epochs, once it has been raised
	Precise     bool    // descend in float64
	Best        float64 // smallest gap that was a fifth below the one before it
	BestSweep   uint32
	Mark        float64 // gap that stalled compares with
	MarkSweep   uint32
	Worst       float64 // largest gap since BestSweep
	Safeguarded bool    `json:",omitempty"` // steps use the full curvature, whose model bounds P from above, and working sets hold every row: slower, but it cannot cycle
	WarmStarted bool    `json:",omitempty"` // the terminals began at duals that were given
	Family      bool    // steps take the curvature of whole families: see Policy.StallShare
	Primal      float64 // running sums of the certificate under way
	Dual        float64
	Inner       float64 // and of the inner gaps
	Certified   bool    // Last is set
	LastSweep   uint32  `json:",omitempty"` // the sweep that Last is of
	Aim         uint32  `json:",omitempty"` // sweep expected to reach the tolerance, if that is soon: see aim
	Last        method.Certificate
	Stationary  uint32 // priced sweeps in a row that changed neither P nor D
	StoppedBy   string
}

// driver is the scalar part of the iteration: which step is next and with what parameters.
type driver struct {
	state
	plan      *Plan
	schedule  string
	p         Policy
	internals bool // else terminals are independent problems, and a sweep is one step
	sampled   bool // fresh blocks begin on a sample of the rows
	smooth    bool // logistic loss: the blocks' state is v, not duals
	noBound   bool // of P no lower bound is known: see jobspec.Uncertified
	support   bool // support-aware curvature
	momentum  bool
	terminals uint32
	gap       float64
	maxSweeps uint32
	evalEvery uint32 // sweeps between two evaluations; 0: none
	report    json.RawMessage
}

// newDriver stands before the first sweep.
func newDriver(spec *taxonv1.JobSpec, plan *Plan, internals bool) *driver {
	o := spec.GetOptions()
	d := &driver{
		plan:      plan,
		schedule:  o.GetSchedule(),
		p:         policyOf(o, internals),
		internals: internals,
		sampled:   spec.GetData().GetInstances() >= SampledFrom,
		smooth:    o.GetLoss() == "logistic",
		noBound:   internals && jobspec.Uncertified(spec),
		support:   o.GetStiffness() != "full",
		momentum:  o.GetMomentum() != "none",
		terminals: uint32(len(plan.BlockTerminals)),
		gap:       o.GetGap(),
		maxSweeps: o.GetMaxSweeps(),
		evalEvery: o.GetEvalEvery(),
	}
	if spec.GetStructure().GetGraph() {
		figures := struct {
			Anchor  float64 `json:"anchor"`
			Colours uint32  `json:"colours,omitempty"` // independent sets of a sweep
		}{Anchor: o.GetAnchor()}
		if d.schedule == jobspec.ScheduleColour {
			figures.Colours = plan.Sets
		}
		d.report = method.Encode(figures)
	}
	d.T = 1
	d.openSweep(1)
	return d
}

// State implements method.Driver.
func (o *driver) State() method.State { return method.Encode(&o.state) }

// restore goes to a state that State gave.
func (o *driver) restore(s method.State) error {
	var read state
	if err := json.Unmarshal(s, &read); err != nil {
		return err
	}
	if read.Stage > stageEnd {
		return fmt.Errorf("it stands at stage %d, which this version does not know", read.Stage)
	}
	o.state = read
	return nil
}

// Progress implements method.Driver.
func (o *driver) Progress() method.Progress {
	p := method.Progress{Sweep: o.Sweep, StoppedBy: o.StoppedBy, Tolerance: o.gap, MaxSweeps: o.maxSweeps, Report: o.report}
	if o.Certified {
		last := o.Last
		p.Certificate = &last
	}
	return p
}

// twoblock says whether sweeps are a MAP step and a REDUCE step.
func (o *driver) twoblock() bool { return o.schedule == jobspec.ScheduleTwoblock || o.schedule == "" }

// openSweep goes to the first step of a sweep.
func (o *driver) openSweep(sweep uint32) {
	o.Sweep, o.Set = sweep, 0
	o.Primal, o.Dual, o.Inner = 0, 0, 0
	o.Price = o.mustPrice()
	o.Stage = stageSet
	if !o.internals || o.twoblock() {
		o.Stage = stageSolve
	}
	if o.state.TimeUp {
		o.Stage = stagePrice
	}
}

// WarmStart implements method.Driver. What the terminals of a smooth loss begin with are no
// duals: such a job goes on as if from nothing.
func (o *driver) WarmStart(families []string) {
	o.WarmStarted = !o.smooth && slices.Contains(families, Dual)
	o.openSweep(1)
}

// mustPrice says whether the sweep under way is priced. A job always ends on a priced
// sweep: the last one allowed is, and so is the one after time ran out.
func (o *driver) mustPrice() bool {
	return !o.internals || o.state.TimeUp || o.shows() || o.maxSweeps > 0 && o.Sweep >= o.maxSweeps || o.priced(o.Sweep)
}

// Next implements method.Driver.
func (o *driver) Next() (method.Step, bool) {
	o.shorten()
	return o.Step()
}

// Step implements method.Driver.
func (o *driver) Step() (method.Step, bool) {
	s := method.Step{Sweep: o.Sweep, Phase: phases[o.Stage]}
	switch o.Stage {
	case stageSolve:
		s.Tasks = []method.Tasks{o.mapTasks(allSets, o.Price)}
	case stageReduce:
		s.Tasks = []method.Tasks{o.reduceTasks(Reduce{Rule: o.rule(), Certify: o.Price})}
	case stageSafeguard:
		s.Tasks = []method.Tasks{o.reduceTasks(Reduce{Rule: "family"})}
	case stageSet:
		if o.schedule == jobspec.ScheduleJacobi {
			s.Tasks = []method.Tasks{o.mapTasks(allSets, false), o.reduceTasks(Reduce{Rule: "jacobi", Damping: o.p.JacobiDamping})}
		} else {
			s.Tasks = []method.Tasks{o.mapTasks(int(o.Set), false), o.reduceTasks(Reduce{Rule: "mean", Set: o.Set})}
		}
	case stagePrice:
		s.Tasks = []method.Tasks{o.tasks(OpMap, allSets, Map{Price: true, Precise: o.Precise, Band: o.band(), Beta: o.Beta})}
	case stageCertify:
		s.Tasks = []method.Tasks{o.reduceTasks(Reduce{Rule: "none", Certify: true})}
	case stageEvaluate, stageEmit:
		s.Emit, s.Show = o.Stage == stageEmit, o.Stage == stageEvaluate
		emit := o.tasks(OpEmitMap, allSets, Emit{Beta: o.Beta})
		emit.Writes = nil
		s.Tasks = []method.Tasks{emit}
		if o.internals {
			s.Tasks = append(s.Tasks, method.Tasks{Op: OpEmitReduce, Items: Ranges, Count: o.ranges(), Params: method.Encode(Emit{Beta: o.Beta}),
				Reads: []method.Read{{Value: X}, {Value: X, Back: 1}}, Timed: true})
		}
	default:
		return method.Step{}, false
	}
	return s, true
}

// allSets stands for the blocks of all independent sets.
const allSets = -1

func (o *driver) ranges() uint32 { return uint32(len(o.plan.RangeBegin) - 1) }

// tasks are those of an operation on the blocks of a set. They write all that a solved block
// leaves, and read that and the internals.
func (o *driver) tasks(op string, set int, params any) method.Tasks {
	t := method.Tasks{Op: op, Items: Blocks, Count: uint32(len(o.plan.BlockSet)), Params: method.Encode(params),
		Reads: []method.Read{{Value: Dual}, {Value: X, All: true}, {Value: X, Back: 1, All: true}}, Writes: []string{Dual, V}}
	if set != allSets { // the plan numbers blocks set by set
		lo, _ := slices.BinarySearch(o.plan.BlockSet, uint32(set))
		hi, _ := slices.BinarySearch(o.plan.BlockSet, uint32(set)+1)
		t.First, t.Count = uint32(lo), uint32(hi-lo)
	}
	return t
}

// mapTasks solve the blocks of a set, and price them.
func (o *driver) mapTasks(set int, price bool) method.Tasks {
	m := Map{Epochs: o.p.Epochs, MaxEpochs: max(o.MaxInner, o.p.MaxEpochs, o.p.LeastMaxEpochs, o.p.Epochs), InnerGap: o.innerGap(), Price: price,
		Precise: o.Precise, Band: o.band(), Beta: o.Beta}
	switch {
	case !o.Certified && o.p.FirstInnerShare:
		m.InnerShare = float64(o.p.ToleranceShare * o.gap)
	case !o.Certified && o.p.FirstEpochs > 0:
		m.MaxEpochs = max(o.p.FirstEpochs, o.p.Epochs)
	case o.WarmStarted && o.Sweep == 1 && o.p.WarmEpochs > 0:
		m.MaxEpochs = max(o.p.WarmEpochs, o.p.Epochs)
	case !o.WarmStarted && o.Sweep <= o.p.RoughSweeps:
		m.Epochs = cmp.Or(o.p.RoughEpochs, o.p.Epochs)
		m.MaxEpochs = m.Epochs
	}
	t := o.tasks(OpMap, set, m)
	t.Timed = m.Epochs > 0
	if o.cuts() {
		m.Epochs, m.MaxEpochs, m.InnerGap, m.InnerShare = 0, 0, 0, 0
		t.Late = method.Encode(m)
	}
	return t
}

// reduceTasks move the internals by a rule, or only add up the certificate.
func (o *driver) reduceTasks(r Reduce) method.Tasks {
	r.Beta = o.Beta
	t := method.Tasks{Op: OpReduce, Items: Ranges, Count: o.ranges(), Params: method.Encode(r), Timed: true,
		Reads: []method.Read{{Value: V, All: true}, {Value: X}, {Value: X, Back: 1}}}
	if r.Rule != "none" {
		t.Writes = []string{X}
	}
	return t
}

// Ahead implements method.Lookahead: the exact solve behind the blocks' step does not depend
// on what they report. A priced one may be done again, with more caution.
func (o *driver) Ahead() (next method.Step, again, known bool) {
	if o.Stage != stageSolve || !o.internals {
		return method.Step{}, false, false
	}
	after := *o
	if _, err := after.Commit(nil); err != nil {
		return method.Step{}, false, false
	}
	next, _ = after.Next()
	return next, after.Price, after.Stage == stageReduce
}

// rule is the curvature of twoblock's exact solve.
func (o *driver) rule() string {
	switch {
	case !o.support || o.Rises >= o.p.FullAfter || o.Safeguarded:
		return "full"
	case o.Rises >= o.p.FamilyAfter || o.Family:
		return "family"
	}
	return "support"
}

// innerGap is the absolute gap per terminal that inner solves aim at; 0: none known yet.
// Below that share of the tolerance itself there is nothing to gain.
func (o *driver) innerGap() float64 {
	if !o.Certified || o.terminals == 0 {
		return 0
	}
	if share := o.p.ToleranceShare; share > 0 { // nothing but the inner gaps make up the gap
		return share * o.gap * o.Last.Objective / float64(o.terminals)
	}
	total := max(o.Last.Objective-o.Last.Dual, o.gap*o.Last.Objective)
	if o.WarmStarted {
		return o.p.WarmInnerShare * total / float64(o.terminals)
	}
	return o.p.InnerShare * total / float64(o.terminals)
}

// errNotFinite is a training that left the range of numbers.
var errNotFinite = errors.New("the objective is not finite: scale the instances to unit length or lower C")

// Commit implements method.Driver.
func (o *driver) Commit(all []method.Sums) (method.Outcome, error) {
	restart, certifies := 0.0, o.certifies()
	for _, s := range all {
		if s == nil {
			continue
		}
		restart += s[SumRestart]
		if certifies {
			o.Primal += s[SumPrimal]
			o.Dual += s[SumDual]
			o.Inner += s[SumInnerGap]
		}
	}
	switch o.Stage {
	case stageSolve, stagePrice:
		if o.state.TimeUp && !o.Price {
			o.priceNow()
			return method.Outcome{}, nil
		}
		if o.shows() && !o.state.TimeUp {
			o.Stage = stageEvaluate
			return method.Outcome{}, nil
		}
		return o.measured()
	case stageEvaluate:
		return o.measured()
	case stageReduce:
		return o.commitReduce(restart > 0)
	case stageSafeguard:
		if o.state.TimeUp { // the certificate is of what the step began with
			o.StoppedBy, o.Stage = method.StoppedByMaxTime, stageEmit
			return method.Outcome{Drop: dropX, SweepDone: true, Certified: true}, nil
		}
		o.advance(true)
		return method.Outcome{SweepDone: true, Certified: true}, nil
	case stageSet:
		return o.commitSet(), nil
	case stageCertify:
		return o.endPriced()
	case stageEmit:
		o.Stage = stageEnd
	}
	return method.Outcome{}, nil
}

// dropX is what a step drops whose internals are not taken.
var dropX = []string{X}

// certifies says whether the sums of the step under way are shares of the certificate.
func (o *driver) certifies() bool {
	switch o.Stage {
	case stageSolve, stageReduce:
		return o.Price
	}
	return o.Stage == stagePrice || o.Stage == stageCertify
}

// shows says whether the weights of the sweep under way are wanted for an evaluation.
// They are written between the terminals' pricing and the internals' step, which is when
// the vectors at hand are those that the certificate is about.
func (o *driver) shows() bool { return o.evalEvery > 0 && o.Sweep%o.evalEvery == 0 }

// measured goes on from the pricing of the terminals.
func (o *driver) measured() (method.Outcome, error) {
	switch {
	case !o.internals:
		return o.endPriced()
	case o.twoblock() && o.Stage != stagePrice:
		o.Stage = stageReduce
	default:
		o.Stage = stageCertify
	}
	return method.Outcome{}, nil
}

// endPriced ends a priced sweep whose step moved no internals.
func (o *driver) endPriced() (method.Outcome, error) {
	shown := o.Stage == stageEvaluate
	if err := o.certify(); err != nil {
		return method.Outcome{}, err
	}
	if o.stop() {
		o.Stage = stageEmit
	} else {
		o.openSweep(o.Sweep + 1)
	}
	out := method.Outcome{SweepDone: true, Certified: true}
	if shown { // without internals: the sweep itself was over before
		out.Phase = phases[stageSolve]
	}
	return out, nil
}

// commitReduce ends twoblock's REDUCE step. If the job stops here the new internals are
// dropped: the certificate is about the y that the terminals were solved at, and so is
// what EMIT writes. If P rose, the step is done again from the same inputs with the
// curvature of whole families, and the momentum restarts; if P rises again, full curvature
// takes over until it has fallen.
func (o *driver) commitReduce(restart bool) (method.Outcome, error) {
	if o.state.TimeUp && !o.Price { // the terminals have been solved at the old internals
		o.priceNow()
		return method.Outcome{Drop: dropX}, nil
	}
	if !o.Price {
		o.advance(restart)
		return method.Outcome{SweepDone: true}, nil
	}
	support := o.rule() == "support"
	if err := o.certify(); err != nil {
		return method.Outcome{}, err
	}
	if o.stop() {
		o.Stage = stageEmit
		return method.Outcome{Drop: dropX, SweepDone: true, Certified: true}, nil
	}
	rose := o.judge()
	o.Family = o.Family || o.stalled()
	if support && rose {
		o.Stage = stageSafeguard
		return method.Outcome{Drop: dropX}, nil
	}
	o.advance(restart || rose)
	return method.Outcome{SweepDone: true, Certified: true}, nil
}

// commitSet goes to the next independent set, and behind the last one to the pricing
// steps or the next sweep.
func (o *driver) commitSet() method.Outcome {
	o.Set++
	if o.Set < max(o.plan.Sets, 1) && o.schedule != jobspec.ScheduleJacobi && !o.state.TimeUp {
		return method.Outcome{}
	}
	o.Set = 0
	if o.mustPrice() {
		o.Price, o.Stage = true, stagePrice
		return method.Outcome{}
	}
	o.openSweep(o.Sweep + 1)
	return method.Outcome{SweepDone: true}
}

// judge says whether P rose against the best accepted one. Unfinished inner solves raise
// P as well, by at most their gap (rows that the working sets missed, most of all): what
// they account for is no fault of the internals' step.
func (o *driver) judge() bool {
	low := o.Last.Objective - o.Inner
	if o.Rises == 0 && o.Accepted == 0 || low <= o.Accepted+float64(o.p.RiseTolerance*math.Abs(o.Accepted)) {
		if o.Accepted == 0 || o.Last.Objective < o.Accepted {
			o.Accepted = o.Last.Objective
		}
		o.Rises = 0
		return false
	}
	o.Rises++
	return true
}

// advance moves the momentum past a sweep whose internals were taken and opens the next.
//
// FISTA (Beck, Teboulle 2009): t+ = (1 + sqrt(1 + 4 t^2)) / 2, beta = (t - 1) / t+;
// gradient restart (O'Donoghue, Candes 2015) sets t = 1.
func (o *driver) advance(restart bool) {
	from, unsettled := o.p.MomentumFrom, false
	if o.WarmStarted {
		from, unsettled = o.p.WarmMomentumFrom, o.Last.Gap > o.p.WarmSettled
	}
	if restart || unsettled || !o.momentum || o.Sweep < from {
		o.T, o.Beta = 1, 0
	} else {
		next := (1 + math.Sqrt(1+4*float64(o.T*o.T))) / 2
		o.Beta = (o.T - 1) / next
		o.T = next
	}
	o.openSweep(o.Sweep + 1)
}
