package plan

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// priced says whether a sweep passes over all data in float64 and yields a certificate. The first
// sweeps are priced often, because their working sets are guesses. Later every PriceEvery-th is,
// and the one that is expected to reach the tolerance.
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

// regular says whether a job without a warm start prices the sweep, whatever its gap.
func (p *Policy) regular(sweep uint32) bool {
	return sweep <= p.PriceAll || sweep <= p.PriceSecond && sweep%2 == 0 || sweep%p.PriceEvery == 0
}

// band is the width of the working sets that the sweep's pricing pass draws.
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

// stage is the place of a step within its sweep.
type stage uint8

const (
	stageSolve     stage = iota // twoblock, flat: MAP of all blocks
	stageReduce                 // twoblock: exact solve for the internals at what stageSolve wrote
	stageSafeguard              // twoblock: stageReduce again, with more caution, as P rose
	stageSet                    // parity, colour, jacobi: MAP and REDUCE of one independent set
	stagePrice                  // parity, colour, jacobi, and when the time is up: MAP without epochs, only priced
	stageCertify                // after stagePrice: sums of the internals, nothing moves
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
	Piece       uint32  `json:",omitempty"` // of the blocks, in stageSolve
	Price       bool    // the sweep under way is priced
	TimeUp      bool    `json:",omitempty"` // nothing is solved any more, the job prices and ends: see stop.go
	T           float64 // FISTA's t
	Beta        float64 // momentum of the point y = x + Beta (x - x_prev) of this sweep
	RiseCount   uint32  // pricing sweeps in a row whose P lay above Accepted
	Climbs      uint32  `json:",omitempty"` // certificates in a row whose P lay above the one before
	Accepted    float64 // P of the last accepted pricing sweep
	MaxInner    uint32  // bound on inner epochs, once it has been raised
	Precise     bool    // descend in float64
	Share       float64 `json:",omitempty"` // Policy.Share, as often doubled as P rose; 0: all
	Best        float64 // smallest gap, as Policy.BestShare counts
	BestSweep   uint32
	Mark        float64 // gap that stalled compares with
	MarkSweep   uint32
	Worst       float64 // largest gap since BestSweep
	Safeguarded bool    `json:",omitempty"` // steps use the full curvature, whose model bounds P from above, and working sets hold every row: slower, but it cannot cycle
	WarmStarted bool    `json:",omitempty"` // the terminals began at given duals
	Family      bool    // steps take the curvature of whole families: see stop.go
	Anew        bool    `json:",omitempty"` // in stageSafeguard: the internals begin again at zero
	Primal      float64 // running sums of the certificate under way
	Dual        float64
	Inner       float64 // of the inner gaps
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
	noBound   bool // of P no lower bound is known: see uncertified
	support   bool // support-aware curvature
	momentum  bool
	terminals uint32
	pieces    uint32 // steps in which a sweep solves its blocks
	gap       float64
	maxSweeps uint32
	evalEvery uint32 // sweeps between two evaluations; 0: none
	report    json.RawMessage
}

// A sweep of at least piecesFrom dense numbers solves its blocks in so many steps. Each step's
// values take the place of the old ones, so that both overlap for one step's blocks alone.
const (
	piecesFrom = 1 << 26
	pieces     = 4
)

// newDriver makes a driver at the first sweep.
func newDriver(spec *taxonv1.JobSpec, plan *Plan, internals bool) *driver {
	o := spec.GetOptions()
	d := &driver{
		plan:      plan,
		schedule:  o.GetSchedule(),
		p:         policyOf(o, internals),
		internals: internals,
		sampled:   spec.GetData().GetInstances() >= SampledFrom,
		noBound:   internals && uncertified(spec),
		support:   o.GetStiffness() != "full",
		momentum:  o.GetMomentum() != "none",
		terminals: uint32(len(plan.BlockTerminals)),
		gap:       o.GetGap(),
		maxSweeps: o.GetMaxSweeps(),
		evalEvery: o.GetEvalEvery(),
	}
	d.pieces = 1
	if internals && o.GetLoss() == "logistic" && spec.GetData().GetFeatures()*uint64(d.terminals) >= piecesFrom {
		d.pieces = pieces
	}
	if spec.GetStructure().GetGraph() {
		figures := struct {
			Anchor  float64 `json:"anchor"`
			Colours uint32  `json:"colours,omitempty"` // independent sets of a sweep
		}{Anchor: o.GetAnchor()}
		if d.schedule == ScheduleColour {
			figures.Colours = plan.Sets
		}
		d.report = method.Encode(figures)
	}
	if d.T = 1; !d.noBound { // a rise of P, which is seen at once, is all that shows too short a share
		d.Share = d.p.Share
	}
	d.openSweep(1)
	return d
}

// State implements method.Driver.
func (d *driver) State() method.State { return method.Encode(&d.state) }

// restore sets a state that State returned.
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
	p := method.Progress{Sweep: d.Sweep, StoppedBy: d.StoppedBy, Tolerance: d.gap, MaxSweeps: d.maxSweeps, Report: d.report}
	if d.Certified {
		last := d.Last
		p.Certificate = &last
	}
	return p
}

// twoblock says whether sweeps are a MAP step and a REDUCE step.
func (d *driver) twoblock() bool { return d.schedule == ScheduleTwoblock || d.schedule == "" }

// openSweep goes to the first step of a sweep.
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

// WarmStart implements method.WarmStarter. A job whose terminals do not begin at duals continues as if
// without a warm start.
func (d *driver) WarmStart(families []string) {
	d.WarmStarted = d.p.WarmDuals && slices.Contains(families, Dual)
	d.openSweep(1)
}

// mustPrice says whether the sweep under way is priced. A job always ends on a priced
// sweep: the last one allowed is, and so is the one after time ran out.
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
			s.Tasks = []method.Tasks{d.mapTasks(allSets, false), d.reduceTasks(Reduce{Rule: "jacobi", Damping: d.p.JacobiDamping})}
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
			s.Tasks = append(s.Tasks, method.Tasks{Op: OpEmitReduce, Items: Ranges, Count: d.ranges(), Params: method.Encode(Emit{Beta: d.Beta}),
				Reads: []method.Read{{Value: X}, {Value: X, Back: 1}}, Timed: true})
		}
	default:
		return method.Step{}, false
	}
	return s, true
}

// allSets means the blocks of all independent sets.
const allSets = -1

func (d *driver) ranges() uint32 { return uint32(len(d.plan.RangeBegin) - 1) }

// tasks are those of an operation on the blocks of a set. They read the internals and what a
// solved block keeps, and write the latter.
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

// mapTasks solve the blocks of a set, and price them.
func (d *driver) mapTasks(set int, price bool) method.Tasks {
	m := Map{Epochs: d.p.Epochs, MaxEpochs: max(d.MaxInner, d.p.MaxEpochs, d.p.MinMaxEpochs, d.p.Epochs), InnerGap: d.innerGap(), Price: price,
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

// reduceTasks move the internals by a rule, or only add up the certificate.
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

// rule is the curvature of twoblock's exact solve.
func (d *driver) rule() string {
	switch {
	case !d.support || d.RiseCount >= d.p.FullAfter || d.Safeguarded:
		return "full"
	case d.Family:
		return "family"
	}
	return "support"
}

// follower is the curvature of a terminal without support in twoblock's exact solve. As internals
// move less, fewer of them get support: the gap goes with the square of a move.
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

// innerGap is the absolute gap per terminal that inner solves aim at. 0: not known yet. It does
// not fall below a share of the tolerance itself, where nothing would be gained.
func (d *driver) innerGap() float64 {
	if !d.Certified || d.terminals == 0 {
		return 0
	}
	if share := d.p.ToleranceShare; share > 0 { // the gap consists of the inner gaps alone
		return share * d.gap * d.Last.Objective / float64(d.terminals)
	}
	total := max(d.Last.Objective-d.Last.Dual, d.gap*d.Last.Objective)
	if d.WarmStarted {
		return d.p.WarmInnerShare * total / float64(d.terminals)
	}
	return d.p.InnerShare * total / float64(d.terminals)
}

// clearSums begins a certificate.
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
		if d.state.TimeUp { // the certificate describes the weights at the beginning of the step
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

// dropX drops the internals' values of a step that was not accepted.
var dropX = []string{X}

// certifies says whether the sums of the current step are shares of the certificate.
func (d *driver) certifies() bool {
	switch d.Stage {
	case stageSolve, stageReduce:
		return d.Price
	}
	return d.Stage == stagePrice || d.Stage == stageCertify
}

// shows says whether an evaluation wants the weights of the current sweep. They are written
// between the terminals' pricing and the internals' step, when the vectors are those that the
// certificate describes.
func (d *driver) shows() bool { return d.evalEvery > 0 && d.Sweep%d.evalEvery == 0 }

// measured continues from the pricing of the terminals.
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
	if shown { // without internals: the sweep itself was over before
		out.Phase = phases[stageSolve]
	}
	return out, nil
}

// commitReduce ends twoblock's REDUCE step. If the job stops here, the new internals are dropped.
// The certificate describes the y at which the terminals were solved, and EMIT writes the same.
// If P rose, the step runs again from the same inputs with the curvature of whole families, as do all
// later ones, and the momentum restarts. If P stays above, full curvature is used until it has fallen.
// A rise that unfinished inner solves explain only restarts the momentum: steps that make so many rows
// active outside of the working sets go too far. Where steps led astray, the internals begin again at zero.
func (d *driver) commitReduce(restart bool) (method.Outcome, error) {
	if d.state.TimeUp && !d.Price { // the terminals have been solved at the old internals
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

// stepAgain says whether a step by the support's curvature is to run again with more caution. If it is
// to begin at zero, P is compared with what comes after that.
func (d *driver) stepAgain(support bool) bool {
	rose := d.objectiveRose()
	if d.Anew = support && d.astray(); d.Anew {
		d.RiseCount, d.Accepted = 0, 0
	}
	return support && rose || d.Anew
}

// commitSet goes to the next independent set. After the last one it goes to the pricing steps or
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

// objectiveRose says whether P rose above the best accepted one. Unfinished inner solves raise P
// too, by at most their gap, which comes mostly from rows outside of the working sets. That part
// is not counted, because the internals' step did not cause it.
func (d *driver) objectiveRose() bool {
	low := d.Last.Objective - d.Inner
	if d.RiseCount == 0 && d.Accepted == 0 || low <= d.Accepted+float64(d.p.RiseTolerance*math.Abs(d.Accepted)) {
		if d.Accepted == 0 || d.Last.Objective < d.Accepted {
			d.Accepted = d.Last.Objective
		}
		d.RiseCount = 0
		return false
	}
	if d.Share > 0 { // the curvature may count for too little: more of it comes first
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

// Flat drives the terminals of one block as a problem of their own, on data of this many
// instances. Its steps are OpMap, whose sums have the figures named here, and an emitting step at
// the end. Other methods use it for blocks of theirs, which then end as a flat job does.
func Flat(o *taxonv1.Options, terminals int, instances uint64) method.Driver {
	spec := &taxonv1.JobSpec{Options: o, Data: &taxonv1.Data{Instances: instances}}
	return newDriver(spec, &Plan{BlockTerminals: make([]uint32, terminals), BlockSet: []uint32{0}}, false)
}
