package plan

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// priced reports whether a sweep ends with a full pass and hence a certificate. Most of the first
// sweeps do, because their working sets are guesses. Later every PriceEvery-th sweep does, and the
// sweep that is expected to reach the tolerance.
func (d *driver) priced(sweep uint32) bool {
	switch {
	case sweep == d.Aim:
		return true
	case d.WarmStarted:
		return sweep <= d.p.WarmPriced || d.p.regular(sweep)
	case sweep < d.p.FirstPriced:
		return false
	case d.p.SparsePriced > 0 && d.sampled:
		return sweep == d.p.SparsePriced || sweep%d.p.PriceEvery == 0
	}
	return d.p.regular(sweep)
}

// regular reports whether a job without a warm start prices the sweep independently of its gap.
func (p *Policy) regular(sweep uint32) bool {
	return sweep <= p.PriceAll || sweep <= p.PriceSecond && sweep%2 == 0 || sweep%p.PriceEvery == 0
}

// band returns the width of the band of margins from which the sweep's full pass draws working
// sets. In safeguarded mode it is the greatest float64, so that all rows are in them.
func (d *driver) band() float64 {
	switch {
	case d.Safeguarded:
		return math.MaxFloat64
	case d.WarmStarted && d.Sweep <= d.p.WarmBands:
		return d.p.WarmBand
	case d.Sweep == 1 && d.sampled && d.p.SampleBand < 0:
		return d.p.SampleBand
	case d.Sweep <= d.p.FirstBands:
		return d.p.FirstBand
	}
	return d.p.Band
}

// stage is the place of a step within its sweep. Twoblock has the stages solve, reduce and, when P rose, safeguard,
// and a job without internals solve alone. The other schedules repeat stageSet, and price and certify at the end.
type stage uint8

const (
	// stageSolve solves all blocks, and prices them if the sweep is priced.
	stageSolve stage = iota
	// stageReduce solves for the internals exactly, given the v that stageSolve wrote.
	stageReduce
	// stageSafeguard repeats stageReduce with the curvature of families, or sets the internals to
	// zero. It follows if P rose.
	stageSafeguard
	// stageSet solves the blocks of one independent set and moves the internals of that set.
	stageSet
	// stagePrice prices all blocks without solving them. It also follows when the time is up.
	stagePrice
	// stageCertify adds up the internals' share of the certificate after stagePrice. Nothing moves.
	stageCertify
	// stageEvaluate writes the weights of the current sweep for an evaluation on held-out data.
	stageEvaluate
	stageEmit // writes the final weights
	stageEnd  // the job is over
)

// phases are the names of the stages as users see them (JobStatus.phase, SweepRecord.phase).
var phases = [...]string{"solve", "reduce", "guard", "sweep", "price", "certify", "evaluate", "emit", "end"}

// state is the iteration between two steps, as a checkpoint holds it. P and D are the primal and
// the dual objective.
type state struct {
	Sweep     uint32  // the current sweep, from 1
	Stage     stage   // the stage of the current step
	Set       uint32  // the current independent set, in stageSet
	Piece     uint32  `json:",omitempty"` // the current piece of the blocks, in stageSolve
	Price     bool    // the current sweep ends with a full pass
	TimeUp    bool    `json:",omitempty"` // the job only runs full passes and ends: see stop.go
	T         float64 // momentum variable t of FISTA: see advance
	Beta      float64 // momentum of this sweep
	RiseCount uint32  // priced sweeps in a row with P > Accepted
	Climbs    uint32  `json:",omitempty"` // certificates in a row with a rise of P
	Accepted  float64 // least accepted P: see objectiveRose
	MaxInner  uint32  // raised Policy.MaxEpochs, or 0
	Precise   bool    // descents are in float64
	// Share is Policy.Share, doubled each time that P rose. 0 stands for the whole bound.
	Share     float64 `json:",omitempty"`
	Best      float64 // smallest gap, by Policy.BestShare
	BestSweep uint32  // the sweep that Best is of
	Mark      float64 // the gap that stalled compares with
	MarkSweep uint32  // the sweep that Mark is of
	Worst     float64 // largest gap since BestSweep
	// Safeguarded says that steps use the full curvature, whose model bounds P from above, and that
	// working sets hold every row. This is slower but cannot cycle.
	Safeguarded bool    `json:",omitempty"`
	WarmStarted bool    `json:",omitempty"` // the terminals began at given duals
	Family      bool    // steps keep to families' curvature
	Anew        bool    `json:",omitempty"` // stageSafeguard begins at zero
	Primal      float64 // running sums of the certificate
	Dual        float64
	Inner       float64
	Certified   bool   // Last is set
	LastSweep   uint32 `json:",omitempty"` // the sweep that Last is of
	Aim         uint32 `json:",omitempty"` // expected to reach the tolerance, or 0
	Last        method.Certificate
	Stationary  uint32 // priced sweeps in a row without change
	StoppedBy   string
}

// driver is the scalar part of the iteration. It decides which step is next and with which
// parameters.
type driver struct {
	state
	plan     *Plan
	schedule string
	p        Policy
	// whether there are internals; without them a sweep is one step
	internals bool
	sampled   bool // fresh blocks begin on a sample
	noBound   bool // see uncertified
	support   bool // steps may use the support's curvature
	momentum  bool
	terminals uint32
	pieces    uint32 // steps that solve a sweep's blocks
	gap       float64
	maxSweeps uint32
	evalEvery uint32 // sweeps between two evaluations, or 0
	report    json.RawMessage
}

// A sweep of at least piecesFrom dense numbers solves its blocks in `pieces` steps. Each step's
// values replace the old ones, so that both exist for one step's blocks alone.
const (
	piecesFrom = 1 << 26
	pieces     = 4
)

// newDriver returns a driver at the first sweep of a job.
func newDriver(o Settings, spec *taxonv1.JobSpec, plan *Plan, internals bool) *driver {
	d := &driver{
		plan:      plan,
		schedule:  o.Schedule,
		p:         policyOf(&o, internals),
		internals: internals,
		sampled:   spec.GetData().GetInstances() >= SampledFrom,
		noBound:   internals && spec.GetStructure().GetGraph() && o.Anchor == 0,
		support:   o.Stiffness != "full",
		momentum:  o.Momentum != "none",
		terminals: uint32(len(plan.BlockTerminals)),
		gap:       o.Gap,
		maxSweeps: o.MaxSweeps,
		evalEvery: o.EvalEvery,
	}
	d.pieces = 1
	if internals && o.Loss == "logistic" && spec.GetData().GetFeatures()*uint64(d.terminals) >= piecesFrom {
		d.pieces = pieces
	}
	if spec.GetStructure().GetGraph() {
		figures := struct {
			Anchor  float64 `json:"anchor"`
			Colours uint32  `json:"colours,omitempty"` // number of independent sets of a sweep
		}{Anchor: o.Anchor}
		if d.schedule == ScheduleColour {
			figures.Colours = plan.Sets
		}
		d.report = method.Encode(figures)
	}
	if d.T = 1; !d.noBound { // a certificate shows too small a share
		d.Share = d.p.Share
	}
	d.openSweep(1)
	return d
}

// State implements method.Driver.
func (d *driver) State() method.State { return method.Encode(&d.state) }

// restore sets the driver to a state that State returned.
func (d *driver) restore(s method.State) error {
	var read state
	if err := method.Restore(s, &read, &read.Stage, stageEnd); err != nil {
		return err
	}
	d.state = read
	return nil
}

// Progress implements method.Driver.
func (d *driver) Progress() method.Progress {
	p := method.Progress{Sweep: d.Sweep, StoppedBy: d.StoppedBy, Tolerance: d.gap, MaxSweeps: d.maxSweeps,
		Report: d.report}
	if d.Certified {
		last := d.Last
		p.Certificate = &last
	}
	return p
}

// twoblock reports whether sweeps consist of a MAP step and a REDUCE step.
func (d *driver) twoblock() bool { return d.schedule == ScheduleTwoblock || d.schedule == "" }

// openSweep moves to the first step of a sweep.
func (d *driver) openSweep(sweep uint32) {
	d.Sweep, d.Set, d.Piece = sweep, 0, 0
	d.clearSums()
	d.Price = d.mustPrice()
	d.Stage = stageSet
	if !d.internals || d.twoblock() {
		d.Stage = stageSolve
	}
	if d.state.TimeUp {
		d.Stage = stagePrice
	}
}

// WarmStart implements method.WarmStarter. A job whose terminals do not begin at duals runs like
// one without a warm start.
func (d *driver) WarmStart(families []string) {
	d.WarmStarted = d.p.WarmDuals && slices.Contains(families, Dual)
	d.openSweep(1)
}

// mustPrice reports whether the current sweep must end with a full pass. The last sweep of a job
// always does.
func (d *driver) mustPrice() bool {
	return !d.internals || d.state.TimeUp || d.shows() || d.maxSweeps > 0 && d.Sweep >= d.maxSweeps || d.priced(d.Sweep)
}

// Next implements method.Driver.
func (d *driver) Next() (method.Step, bool) {
	d.shorten()
	return d.Step()
}

// Step implements method.Driver.
func (d *driver) Step() (method.Step, bool) {
	s := method.Step{Sweep: d.Sweep, Phase: phases[d.Stage]}
	switch d.Stage {
	case stageSolve:
		t := d.mapTasks(allSets, d.Price)
		t.First, t.Count = t.Count*d.Piece/d.pieces, t.Count*(d.Piece+1)/d.pieces-t.Count*d.Piece/d.pieces
		s.Tasks = []method.Tasks{t}
	case stageReduce:
		s.Tasks = []method.Tasks{d.reduceTasks(Reduce{Rule: d.rule(), Follower: d.follower(), Certify: d.Price})}
	case stageSafeguard:
		rule := "family"
		if d.Anew {
			rule = "zero"
		}
		s.Tasks = []method.Tasks{d.reduceTasks(Reduce{Rule: rule})}
	case stageSet:
		if d.schedule == ScheduleJacobi {
			s.Tasks = []method.Tasks{d.mapTasks(allSets, false),
				d.reduceTasks(Reduce{Rule: "jacobi", Damping: d.p.JacobiDamping})}
		} else {
			s.Tasks = []method.Tasks{d.mapTasks(int(d.Set), false), d.reduceTasks(Reduce{Rule: "mean", Set: d.Set})}
		}
	case stagePrice:
		s.Tasks = []method.Tasks{d.tasks(OpMap, allSets, Map{Price: true, Precise: d.Precise, Band: d.band(), Beta: d.Beta})}
	case stageCertify:
		s.Tasks = []method.Tasks{d.reduceTasks(Reduce{Rule: "none", Certify: true})}
	case stageEvaluate, stageEmit:
		s.Emit, s.Show = d.Stage == stageEmit, d.Stage == stageEvaluate
		emit := d.tasks(OpEmitMap, allSets, Emit{Beta: d.Beta})
		emit.Writes = nil
		s.Tasks = []method.Tasks{emit}
		if d.internals {
			s.Tasks = append(s.Tasks, method.Tasks{Op: OpEmitReduce, Items: Ranges, Count: d.ranges(),
				Params: method.Encode(Emit{Beta: d.Beta}),
				Reads:  []method.Read{{Value: X}, {Value: X, Back: 1}}, Timed: true})
		}
	default:
		return method.Step{}, false
	}
	return s, true
}

// allSets means the blocks of all independent sets.
const allSets = -1

// ranges returns the number of feature ranges.
func (d *driver) ranges() uint32 { return uint32(len(d.plan.RangeBegin) - 1) }

// tasks returns the tasks of an operation on the blocks of a set.
func (d *driver) tasks(op string, set int, params any) method.Tasks {
	t := method.Tasks{Op: op, Items: Blocks, Count: uint32(len(d.plan.BlockSet)), Params: method.Encode(params),
		Reads: []method.Read{{Value: Dual}, {Value: X, All: true}, {Value: X, Back: 1, All: true}}, Writes: []string{Dual, V}}
	if set != allSets { // the plan numbers blocks set by set
		lo, _ := slices.BinarySearch(d.plan.BlockSet, uint32(set))
		hi, _ := slices.BinarySearch(d.plan.BlockSet, uint32(set)+1)
		t.First, t.Count = uint32(lo), uint32(hi-lo)
	}
	return t
}

// mapTasks returns the tasks that solve the blocks of a set, and price them if asked to.
func (d *driver) mapTasks(set int, price bool) method.Tasks {
	m := Map{Epochs: d.p.Epochs, MaxEpochs: max(d.MaxInner, d.p.MaxEpochs, d.p.MinMaxEpochs, d.p.Epochs),
		InnerGap: d.innerGap(), Price: price,
		Precise: d.Precise, Band: d.band(), Beta: d.Beta, Share: d.Share}
	switch {
	case !d.Certified && d.p.FirstInnerShare:
		m.InnerShare = float64(d.p.ToleranceShare * d.gap)
	case !d.Certified && d.p.FirstEpochs > 0:
		m.MaxEpochs = max(d.p.FirstEpochs, d.p.Epochs)
	case d.WarmStarted && d.Sweep == 1 && d.p.WarmEpochs > 0:
		m.MaxEpochs = max(d.p.WarmEpochs, d.p.Epochs)
	case !d.WarmStarted && d.Sweep <= d.p.RoughSweeps:
		m.Epochs = cmp.Or(d.p.RoughEpochs, d.p.Epochs)
		m.MaxEpochs = m.Epochs
	}
	t := d.tasks(OpMap, set, m)
	t.Timed = m.Epochs > 0
	if d.cuts() {
		m.Epochs, m.MaxEpochs, m.InnerGap, m.InnerShare = 0, 0, 0, 0
		t.Late = method.Encode(m)
	}
	return t
}

// reduceTasks returns the tasks that move the internals by a rule or that only add up the
// certificate.
func (d *driver) reduceTasks(r Reduce) method.Tasks {
	r.Beta = d.Beta
	t := method.Tasks{Op: OpReduce, Items: Ranges, Count: d.ranges(), Params: method.Encode(r), Timed: true,
		Reads: []method.Read{{Value: V, All: true}, {Value: X}, {Value: X, Back: 1}}}
	if r.Rule != "none" {
		t.Writes = []string{X}
	}
	return t
}

// Ahead implements method.Lookahead. The exact solve after the blocks' step does not depend on
// what the blocks report. A priced one may run again, with more caution.
func (d *driver) Ahead() (next method.Step, again, known bool) {
	if d.Stage != stageSolve || !d.internals {
		return method.Step{}, false, false
	}
	after := *d
	if _, err := after.Commit(nil); err != nil {
		return method.Step{}, false, false
	}
	next, _ = after.Next()
	return next, after.Price, after.Stage == stageReduce
}

// rule names the curvature of twoblock's exact solve.
func (d *driver) rule() string {
	switch {
	case !d.support || d.RiseCount >= d.p.FullAfter || d.Safeguarded:
		return "full"
	case d.Family:
		return "family"
	}
	return "support"
}

// follower returns the curvature of a terminal without support in twoblock's exact solve. As
// internals move less, fewer of them get support, and the gap goes with the square of a move.
func (d *driver) follower() float64 {
	if d.rule() != "support" {
		return 0
	}
	switch {
	case d.Certified:
		return d.p.Follower * math.Sqrt(min(d.Last.Gap, 1))
	case d.WarmStarted: // it may have begun at the optimum
		return 0
	}
	return d.p.Follower
}

// innerGap returns the absolute gap per terminal that inner solves aim at, or 0 while it is not
// known. It does not fall below a share of the tolerance itself, where nothing would be gained.
func (d *driver) innerGap() float64 {
	if !d.Certified || d.terminals == 0 {
		return 0
	}
	if share := d.p.ToleranceShare; share > 0 { // the inner gaps are the gap
		return share * d.gap * d.Last.Objective / float64(d.terminals)
	}
	total := max(d.Last.Objective-d.Last.Dual, d.gap*d.Last.Objective)
	if d.WarmStarted {
		return d.p.WarmInnerShare * total / float64(d.terminals)
	}
	return d.p.InnerShare * total / float64(d.terminals)
}

// clearSums begins the sums of a certificate.
func (d *driver) clearSums() { d.Primal, d.Dual, d.Inner = 0, 0, 0 }

// Commit implements method.Driver.
func (d *driver) Commit(all []method.Sums) (method.Outcome, error) {
	restart, certifies := 0.0, d.certifies()
	for _, s := range all {
		if s == nil {
			continue
		}
		restart += s[SumRestart]
		if certifies {
			d.Primal += s[SumPrimal]
			d.Dual += s[SumDual]
			d.Inner += s[SumInnerGap]
		}
	}
	switch d.Stage {
	case stageSolve, stagePrice:
		if d.state.TimeUp && !d.Price {
			d.priceNow()
			return method.Outcome{}, nil
		}
		if d.Stage == stageSolve && d.Piece+1 < d.pieces {
			d.Piece++
			return method.Outcome{}, nil
		}
		if d.shows() && !d.state.TimeUp {
			d.Stage = stageEvaluate
			return method.Outcome{}, nil
		}
		return d.measured()
	case stageEvaluate:
		return d.measured()
	case stageReduce:
		return d.commitReduce(restart > 0)
	case stageSafeguard:
		if d.state.TimeUp { // drop what the step moved
			d.StoppedBy, d.Stage = method.StoppedByMaxTime, stageEmit
			return method.Outcome{Drop: dropX, SweepDone: true, Certified: true}, nil
		}
		d.Anew = false
		d.advance(true)
		return method.Outcome{SweepDone: true, Certified: true}, nil
	case stageSet:
		return d.commitSet(), nil
	case stageCertify:
		return d.endPriced()
	case stageEmit:
		d.Stage = stageEnd
	}
	return method.Outcome{}, nil
}

// dropX names the internals' values, which are dropped if their step was not accepted.
var dropX = []string{X}

// certifies reports whether the sums of the current step are shares of the certificate.
func (d *driver) certifies() bool {
	switch d.Stage {
	case stageSolve, stageReduce:
		return d.Price
	}
	return d.Stage == stagePrice || d.Stage == stageCertify
}

// shows reports whether an evaluation wants the weights of the current sweep. They are written between the
// terminals' pricing and the internals' step, when the vectors are those that the certificate describes.
func (d *driver) shows() bool { return d.evalEvery > 0 && d.Sweep%d.evalEvery == 0 }

// measured moves on from the pricing of the terminals.
func (d *driver) measured() (method.Outcome, error) {
	switch {
	case !d.internals:
		return d.endPriced()
	case d.twoblock() && d.Stage != stagePrice:
		d.Stage = stageReduce
	default:
		d.Stage = stageCertify
	}
	return method.Outcome{}, nil
}

// endPriced ends a priced sweep whose step moved no internals.
func (d *driver) endPriced() (method.Outcome, error) {
	shown := d.Stage == stageEvaluate
	if err := d.certify(); err != nil {
		return method.Outcome{}, err
	}
	if d.stop() {
		d.Stage = stageEmit
	} else {
		d.openSweep(d.Sweep + 1)
	}
	out := method.Outcome{SweepDone: true, Certified: true}
	if shown { // the sweep itself ended before
		out.Phase = phases[stageSolve]
	}
	return out, nil
}

// commitReduce ends twoblock's REDUCE step. If the job stops here, the new internals are dropped: the
// certificate describes the y at which the terminals were solved, and EMIT writes the same.
//
// If P rose, the step is repeated from the same inputs with the curvature of whole families, which all
// later steps take as well, and the momentum restarts. A rise that unfinished inner solves explain
// only restarts the momentum: the step made many rows active that the working sets do not hold.
func (d *driver) commitReduce(restart bool) (method.Outcome, error) {
	if d.state.TimeUp && !d.Price { // v is of the old internals
		d.priceNow()
		return method.Outcome{Drop: dropX}, nil
	}
	if !d.Price {
		d.advance(restart)
		return method.Outcome{SweepDone: true}, nil
	}
	support := d.rule() == "support"
	if err := d.certify(); err != nil {
		return method.Outcome{}, err
	}
	if d.stop() {
		d.Stage = stageEmit
		return method.Outcome{Drop: dropX, SweepDone: true, Certified: true}, nil
	}
	again := d.stepAgain(support)
	d.Family = d.Family || d.stalled() || d.climbed()
	if again {
		d.Stage = stageSafeguard
		return method.Outcome{Drop: dropX}, nil
	}
	d.advance(restart || d.Climbs > 0)
	return method.Outcome{SweepDone: true, Certified: true}, nil
}

// stepAgain reports whether a step by the support's curvature must be repeated with a safer one. If
// it begins again at zero, later values of P are compared with the one after that.
func (d *driver) stepAgain(support bool) bool {
	rose := d.objectiveRose()
	if d.Anew = support && d.astray(); d.Anew {
		d.RiseCount, d.Accepted = 0, 0
	}
	return support && rose || d.Anew
}

// commitSet moves to the next independent set. After the last one it moves to the pricing steps or
// to the next sweep.
func (d *driver) commitSet() method.Outcome {
	d.Set++
	if d.Set < max(d.plan.Sets, 1) && d.schedule != ScheduleJacobi && !d.state.TimeUp {
		return method.Outcome{}
	}
	d.Set = 0
	if d.mustPrice() {
		d.Price, d.Stage = true, stagePrice
		return method.Outcome{}
	}
	d.openSweep(d.Sweep + 1)
	return method.Outcome{SweepDone: true}
}

// objectiveRose reports whether P rose above the best accepted one. Unfinished inner solves raise P
// too, by at most their gap, which comes mostly from rows outside of the working sets. That part is
// not counted, because the internals' step did not cause it.
func (d *driver) objectiveRose() bool {
	low := d.Last.Objective - d.Inner
	if d.RiseCount == 0 && d.Accepted == 0 || low <= d.Accepted+float64(d.p.StationaryShare*math.Abs(d.Accepted)) {
		if d.Accepted == 0 || d.Last.Objective < d.Accepted {
			d.Accepted = d.Last.Objective
		}
		d.RiseCount = 0
		return false
	}
	if d.Share > 0 { // it may be too small
		if d.Share *= 2; d.Share >= 1 {
			d.Share = 0
		}
		return true
	}
	d.RiseCount++
	d.Family = true
	return true
}

// advance updates the momentum after a sweep whose internals were accepted, and opens the next
// sweep.
//
// FISTA (Beck, Teboulle 2009): t+ = (1 + sqrt(1 + 4 t^2)) / 2, beta = (t - 1) / t+. Gradient
// restart (O'Donoghue, Candes 2015) sets t = 1.
func (d *driver) advance(restart bool) {
	from, warmPlain := d.p.MomentumFrom, false
	if d.WarmStarted {
		from, warmPlain = d.p.WarmMomentumFrom, d.Last.Gap > d.p.WarmPlainAbove
	}
	if restart || warmPlain || !d.momentum || d.Sweep < from {
		d.T, d.Beta = 1, 0
	} else {
		next := (1 + math.Sqrt(1+4*float64(d.T*d.T))) / 2
		d.Beta = (d.T - 1) / next
		d.T = next
	}
	d.openSweep(d.Sweep + 1)
}
