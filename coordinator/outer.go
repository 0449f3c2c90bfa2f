package coordinator

import (
	"errors"
	"math"

	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
)

// Constants of the outer iteration. They change the path, never the optimum.
const (
	// innerShare: inner solves aim at this share of the last certified gap, spread evenly
	// over the terminals. Shrinking makes further inner epochs cheap against a sweep's fixed
	// costs, and 0.1 held the outer gap up (569 classes, C = 1: 40 sweeps to 1e-3, not 36).
	innerShare = 0.02
	// defaultEpochs is the least number of inner epochs of a sweep when the options name
	// none: one stalls at a gap of 5e-2, two or three do not (methods.md 1).
	defaultEpochs = 3
	// squaredRough: of the squared hinge one is enough in the first sweeps, while its working
	// sets are guesses. Fewer than three later cost sweeps (clef, C = 10: 40 to 1e-3, not 12).
	squaredRough = 1
	// maxEpochs bounds an inner solve that does not reach its aim; the next sweep goes on.
	// Where the inner gaps stay above slowShare of the whole one (unnormalised data, large
	// C), the bound doubles, up to mostEpochs.
	maxEpochs  = 50
	mostEpochs = 6400
	slowShare  = 0.3
	// preciseBelow and preciseFrom: float32 descents leave gaps of 1e-5 to 2e-4 on problems
	// with C = 100, as duals move in steps of their rounding. A job that asks for less than
	// preciseBelow descends in float64 once its gap is below preciseFrom; so does one whose
	// gap has not fallen by a fifth in standSweeps, below preciseFrom in closeSweeps (to 1e-4,
	// C = 1, sweeps and CPU s: news20 32 and 8, clef 31 and 19; with 60 for both 216 and 27, 44 and 32).
	preciseBelow = 5e-5
	preciseFrom  = 1e-2
	standSweeps  = 16
	closeSweeps  = 8
	// driftShare, driftBelow: and one below that gap whose terminals make up that share of it, as float32
	// drifts from y + v unseen (clef to 1e-4 17 sweeps, not 32); flatRise: a flat one whose D rises by less of it.
	driftShare = 0.9
	driftBelow = 1e-3
	flatRise   = 1e-3
	// A job whose gap has not fallen by a fifth in cycleSweeps and was meanwhile cycleWorse
	// times the best runs in circles between steps that are too bold and working sets that
	// miss what they stir up (seen on tiny problems); one that has not in patience sweeps is
	// stuck somehow. Both go on in earnest: full stiffness, which always majorises, and every
	// row in the working sets.
	cycleSweeps = 40
	cycleWorse  = 1.5
	patience    = 300
	// A job ends as stationary if its gap has not fallen by a fifth over giveUpSweeps and
	// half of all its sweeps.
	giveUpSweeps = 1000
	// roughSweeps: the first sweeps do the least number of epochs, as the internals are still
	// far from where they will be.
	roughSweeps = 2
	// aimFrom, aimShare: from this sweep on a sweep is also priced if the gap, falling as it
	// did, would reach this share of the tolerance there.
	aimFrom  = 8
	aimShare = 0.95
	// begunEpochs: a job that begins at another model's weights has duals that were drawn from
	// margins. Their small errors add up over the rows, so its first sweep solves longer; what
	// it solves at, the internals, is nearly right.
	begunEpochs = 20
	// begunShare and begunPriced: its inner solves aim at this share of the gap, not innerShare, as
	// few sweeps are left in which coarse ones could hold the gap up, and its sweeps up to
	// this one are all priced: it may be done after any. Momentum begins at once, as working sets
	// and biases are settled; above a gap of unsettled they are not, as where classes are new (decision 18), and
	// working sets are wide from the start, as internals that are right but for what is new move little (news20, C = 0.1, 1, 10, each from the one before, to 1e-2: 6, 6, 4 sweeps
	// and 2.2 G visits without these, now 4, 5, 4 and 1.8 G; from nothing 6, 6, 8 and 2.7 G).
	begunShare  = 0.08
	begunPriced = 8
	unsettled   = 0.25
	// riseTolerance is the relative rise of P that is not taken for rounding.
	riseTolerance = 1e-12
	// A job whose P and D both move by less than stillTolerance of P over stillSweeps pricing
	// sweeps in a row has come to rest above its tolerance, for want of digits:
	// more sweeps change nothing.
	stillTolerance = 1e-12
	stillSweeps    = 8
	// flatShare is that share for flat problems, of the gap asked for: rows outside the
	// working sets and the estimate's lag take the rest. news20 to 1e-2 .. 1e-3, hinge, five gaps:
	// 1.50, 1.42, 1.42 CPU s with 0.8, 0.9, 1; clef 2.15, 2.17, 2.30; 0.5 takes a tenth longer.
	flatShare = 0.9
	// A smooth loss's Newton steps get there in one sweep, each terminal to that share of its own loss.
	// flatEpochs bounds a flat problem's first solve, before any gap is known: the
	// certificate behind it costs about as much as an epoch and says how much is left.
	flatEpochs = 6
	// flatMost bounds its later solves: where they are slow (dense data) they cost less than the
	// passes over all rows between them (clef to 4e-3 and 1e-3: 5 % less than with 50).
	flatMost = 400
	// flatPreciseFrom: a flat problem aims at its gap in its second sweep, which float32 often
	// reaches at half the cost; only those behind it are precise.
	flatPreciseFrom = 2
	// momentumFrom: sweeps before this one take plain steps. Working sets and biases are
	// still unsettled there, and momentum carries their errors on (wordnet-freq, C = 1:
	// gap 1e-2 after 28 sweeps instead of 48). Where the squared hinge's C is at most softC its
	// duals and biases move less, and momentum may begin at once (C = 0.15, positives weighted
	// 8: gap 3.8e-2 after 12 sweeps instead of 6.6e-2; at C = 1 it would cost 12 sweeps of 36).
	momentumFrom     = 4
	softMomentumFrom = 2
	softC            = 0.3
	// stallShare: support-aware steps that shrink the gap by less than this in stallEvery
	// sweeps have done what they can: momentum carries on what their bold metric overlooks.
	// From then on every step takes the stiffness of whole families, under which momentum
	// may build up (wordnet-freq, C = 1: gap 1e-4 after 88 sweeps, not 240).
	stallShare = 0.7
	stallEvery = 4
	// stallFrom: not before this sweep.
	stallFrom = 16
	// familyAfter and fullAfter: from this many pricing sweeps in a row above the best
	// accepted P on, every sweep uses the stiffness of whole families, then of all terminals,
	// until P is below it. Full stiffness always majorises, but makes the internals dense:
	// gigabytes on 17 k classes.
	familyAfter = 2
	fullAfter   = 4
	// workingBand: rows within this of their margin's bound join the working sets that a
	// pricing pass draws; at 0 unpriced sweeps diverge, 0.3 visits three times the rows of
	// 0.15 for the same gaps. firstBand is the first sweep's: half of all rows lie within
	// 0.15 of their margin before the hierarchy's bias has settled. The squared hinge holds many
	// more then, so its first sweep stays on its sample and narrowSweeps draw by firstBand
	// (wordnet-freq, C = 0.15, positives weighted 8: 18 CPU s for 12 sweeps instead of 22). Without a hierarchy every
	// sweep is priced and nothing moves but a block's own duals: no band (wordnet-freq, C = 1:
	// 5.2 CPU s for a gap of 4e-3; 6.0, 7.4, 11.6 with 0.005, 0.02, 0.15). Behind them the squared
	// hinge does with squaredBand: half the working sets of 0.15, the same gaps.
	workingBand  = 0.15
	squaredBand  = 0.05
	firstBand    = 0.02
	narrowSweeps = 3
	// jacobiDamping: share of the way to the mean that jacobi's internals go.
	jacobiDamping = 0.8
)

// band is the width of the working sets that the sweep's pricing draws.
func (o *outer) band() float64 {
	switch {
	case o.Earnest:
		return math.MaxFloat64
	case o.flat:
		return 0
	case o.Begun && o.Sweep <= narrowSweeps:
		return workingBand
	case o.Sweep == 1, o.squared && o.Sweep <= narrowSweeps:
		return firstBand
	case o.squared:
		return squaredBand
	}
	return workingBand
}

// SampledFrom is the number of instances from which on fresh blocks begin on at most half
// of them: twice mapper.StartRows.
const SampledFrom = 2 * 8192

// Reasons why a job stopped (JobStatus.stopped_by).
const (
	stoppedByGap       = "gap"
	stoppedBySweeps    = "max_sweeps"
	stoppedByTime      = "max_time"
	stoppedByRest      = "stationary"
	stoppedByDrift     = "drift"
	stoppedByCancelled = "cancelled"
)

// stage is the place of a step within its sweep.
type stage uint8

const (
	stageSolve   stage = iota // twoblock, flat: MAP of all blocks
	stageReduce               // twoblock: exact solve for the internals at what stageSolve wrote
	stageGuard                // twoblock: stageReduce again with the stiffness of whole families, as P rose
	stageSet                  // parity, colour, jacobi: MAP and REDUCE of one independent set
	stagePrice                // parity, colour, jacobi, and when the time is up: MAP without epochs, only priced
	stageCertify              // behind it: sums of the internals, nothing moves
	stageShow                 // the weights of the sweep under way are written, to be evaluated
	stageEmit                 // the final weights are written
	stageEnd                  // nothing is left to do
)

// phases are the stages as users see them (JobStatus.phase, SweepRecord.phase).
var phases = [...]string{"solve", "reduce", "guard", "sweep", "price", "certify", "evaluate", "emit", "end"}

// outerState is the outer iteration between two steps: what a checkpoint holds of it.
type outerState struct {
	Sweep     uint32  // under way, from 1
	Stage     stage   // of the step under way
	Set       uint32  // independent set, in stageSet
	Price     bool    // the sweep under way is priced
	Force     bool    // the time is up: price and stop as soon as possible
	Short     bool    `json:",omitempty"` // and nothing is solved any more: see timeup.go
	T         float64 // FISTA's t
	Beta      float64 // momentum of the point y = x + Beta (x - x_prev) of this sweep
	Rises     uint32  // pricing sweeps in a row whose P lay above Accepted
	Accepted  float64 // P of the last accepted pricing sweep
	MaxInner  uint32  // bound on inner epochs, maxEpochs or more
	Precise   bool    // descend in float64
	Best      float64 // smallest gap that was a fifth below the one before it
	BestSweep uint32
	Mark      float64 // gap that stalled compares with
	MarkSweep uint32
	Worst     float64 // largest gap since BestSweep
	Earnest   bool    // full stiffness and all rows: see cycleSweeps
	Begun     bool    `json:",omitempty"` // at another model's weights, terminals and all
	Family    bool    // steps take the stiffness of whole families: see stallShare
	Primal    float64 // running sums of the certificate under way
	Dual      float64
	Inner     float64 // and of the inner gaps
	Certified bool    // Last is set
	LastSweep uint32  `json:",omitempty"` // the sweep that Last is of
	Aim       uint32  `json:",omitempty"` // sweep expected to reach the tolerance, if that is soon: see aim
	Last      certificate
	Still     uint32 // pricing sweeps in a row that changed neither P nor D
	StoppedBy string
}

// certificate holds the exact sums of one pricing sweep; Gap is (P-D)/P.
// Without an anchor on a graph there is no D: PrimalOnly, and Dual and Gap mean nothing.
type certificate struct {
	Objective, Dual, Gap float64
	PrimalOnly           bool `json:",omitempty"`
}

// outer is the scalar part of the outer iteration: which step is next and with what
// parameters. Vectors stay with the workers, references to them with job.
type outer struct {
	outerState
	schedule  string
	flat      bool // no internals: terminals are independent problems
	squared   bool // squared hinge
	smooth    bool // logistic loss
	soft      bool // and C at most softC
	sampled   bool // fresh blocks begin on a sample of the rows
	primal    bool // no certificate: see jobspec.Uncertified
	drift     bool // P has no least value: see JobSpec.drifting
	support   bool // support-aware stiffness
	momentum  bool
	sets      uint32
	terminals uint32
	gap       float64
	maxSweeps uint32
	epochs    uint32
	rough     uint32 // epochs of the first sweeps; 0: as many
	evalEvery uint32 // sweeps between two evaluations; 0: none
}

// newOuter stands before the first sweep.
func newOuter(o *taxonv1.Options, plan *taxonv1.Plan, flat bool) *outer {
	t := &outer{
		schedule:  o.GetSchedule(),
		flat:      flat,
		squared:   o.GetLoss() == "squared-hinge",
		smooth:    o.GetLoss() == "logistic",
		soft:      o.GetLoss() == "squared-hinge" && o.GetC() <= softC,
		support:   o.GetStiffness() != "full",
		momentum:  o.GetMomentum() != "none",
		sets:      max(plan.GetSets(), 1),
		terminals: uint32(len(plan.GetBlockTerminals())),
		gap:       o.GetGap(),
		maxSweeps: o.GetMaxSweeps(),
		epochs:    o.GetInnerEpochs(),
		evalEvery: o.GetEvalEvery(),
	}
	if t.epochs == 0 {
		t.epochs = defaultEpochs
		if t.squared {
			t.rough = squaredRough
		}
	}
	t.T = 1
	t.openSweep(1)
	return t
}

// twoblock says whether sweeps are a MAP step and a REDUCE step.
func (o *outer) twoblock() bool { return o.schedule == jobspec.ScheduleTwoblock || o.schedule == "" }

// openSweep goes to the first step of a sweep.
func (o *outer) openSweep(sweep uint32) {
	o.Sweep, o.Set = sweep, 0
	o.Primal, o.Dual, o.Inner = 0, 0, 0
	o.Price = o.mustPrice()
	o.Stage = stageSet
	if o.flat || o.twoblock() {
		o.Stage = stageSolve
	}
	if o.Short {
		o.Stage = stagePrice
	}
}

// begin says, before the first sweep, whether the terminals begin at another model's weights.
func (o *outer) begin(terminals bool) {
	o.Begun = terminals
	o.openSweep(1)
}

// mustPrice says whether the sweep under way is priced. A job always ends on a priced
// sweep: the last one allowed is, and so is the one after time ran out.
func (o *outer) mustPrice() bool {
	return o.flat || o.Force || o.shows() || o.maxSweeps > 0 && o.Sweep >= o.maxSweeps || o.priced(o.Sweep)
}

// stepSpec says what the tasks of a step do. At most one of the map kinds and one of the
// reduce rules is set; a step may have both (parity).
type stepSpec struct {
	Sweep     uint32
	Phase     string
	Map       taxonv1.TaskKind // MAP, EMIT_MAP or unspecified: no such tasks
	Reduce    taxonv1.TaskKind // REDUCE, EMIT_REDUCE or unspecified
	Set       int              // only blocks of this set; -1: all
	Epochs    uint32
	MaxEpochs uint32
	Precise   bool
	Band      float64
	InnerGap  float64
	// InnerShare is what terminals aim at where no gap is known: see MapTask.inner_share.
	InnerShare float64
	Price      bool
	Certify    bool
	Rule       string
	Damping    float64
	Beta       float64
}

// step describes the step under way.
func (o *outer) step() stepSpec {
	s := stepSpec{Sweep: o.Sweep, Phase: phases[o.Stage], Set: -1, Beta: o.Beta, Band: o.band()}
	mapping := func() {
		s.Map, s.Epochs, s.InnerGap = taxonv1.TaskKind_TASK_KIND_MAP, o.epochs, o.innerGap()
		s.MaxEpochs, s.Precise = max(o.MaxInner, maxEpochs, o.epochs), o.Precise
		switch {
		case o.flat && !o.Certified && o.smooth:
			s.InnerShare = float64(flatShare * o.gap)
		case o.flat && !o.Certified:
			s.MaxEpochs = max(flatEpochs, o.epochs)
		case o.flat && !o.smooth: // Newton's steps are few, and dear where float32 can't get there
			s.MaxEpochs = max(s.MaxEpochs, flatMost)
		case o.Begun && o.Sweep == 1:
			s.MaxEpochs = max(begunEpochs, o.epochs)
		case o.Sweep <= roughSweeps && !o.flat && !o.Begun:
			s.Epochs, s.MaxEpochs = o.roughEpochs(), o.roughEpochs()
		}
	}
	reducing := func(rule string) { s.Reduce, s.Rule = taxonv1.TaskKind_TASK_KIND_REDUCE, rule }
	switch o.Stage {
	case stageSolve:
		mapping()
		s.Price = o.Price
	case stageReduce:
		reducing(o.rule())
		s.Certify = o.Price
	case stageGuard:
		reducing("family")
	case stageSet:
		mapping()
		if o.schedule == jobspec.ScheduleJacobi {
			reducing("jacobi")
			s.Damping = jacobiDamping
		} else {
			s.Set = int(o.Set)
			reducing("mean")
		}
	case stagePrice:
		mapping()
		s.Epochs, s.MaxEpochs, s.InnerGap, s.Price = 0, 0, 0, true
	case stageCertify:
		reducing("none")
		s.Certify = true
	case stageShow, stageEmit:
		s.Map = taxonv1.TaskKind_TASK_KIND_EMIT_MAP
		if !o.flat {
			s.Reduce = taxonv1.TaskKind_TASK_KIND_EMIT_REDUCE
		}
	}
	return s
}

// roughEpochs is the number of inner epochs of the first sweeps.
func (o *outer) roughEpochs() uint32 {
	if o.rough > 0 {
		return o.rough
	}
	return o.epochs
}

// rule is the stiffness of twoblock's exact solve.
func (o *outer) rule() string {
	switch {
	case !o.support || o.Rises >= fullAfter || o.Earnest:
		return "full"
	case o.Rises >= familyAfter || o.Family:
		return "family"
	}
	return "support"
}

// innerGap is the absolute gap per terminal that inner solves aim at; 0: none known yet.
// Below innerShare of the tolerance itself there is nothing to gain.
func (o *outer) innerGap() float64 {
	if !o.Certified || o.terminals == 0 {
		return 0
	}
	if o.flat { // nothing but the inner gaps make up the gap
		return flatShare * o.gap * o.Last.Objective / float64(o.terminals)
	}
	total := max(o.Last.Objective-o.Last.Dual, o.gap*o.Last.Objective)
	if o.Begun {
		return begunShare * total / float64(o.terminals)
	}
	return innerShare * total / float64(o.terminals)
}

// outcome says what a committed step means for the vectors and for the log.
type outcome struct {
	Take      bool // the step's REDUCE values are the new internals
	SweepDone bool // the sweep that the step belongs to is committed
	Certified bool // ... and its certificate is outer.Last
}

// errNotFinite is a training that left the range of numbers.
var errNotFinite = errors.New("the objective is not finite: scale the instances to unit length or lower C")

// commit folds the sums of the step under way, in task order, and goes to the next step.
func (o *outer) commit(sums []Sums) (outcome, error) {
	step := o.step()
	restart := 0.0
	for _, s := range sums {
		restart += s.Restart
		if step.Price || step.Certify {
			o.Primal += s.Primal
			o.Dual += s.Dual
			o.Inner += s.InnerGap
		}
	}
	switch o.Stage {
	case stageSolve, stagePrice:
		if o.Short && !o.Price {
			o.priceNow()
			return outcome{}, nil
		}
		if o.shows() && !o.Short {
			o.Stage = stageShow
			return outcome{}, nil
		}
		return o.measured()
	case stageShow:
		return o.measured()
	case stageReduce:
		return o.commitReduce(restart > 0)
	case stageGuard:
		if o.Short { // the certificate is of what the step began with
			o.StoppedBy, o.Stage = stoppedByTime, stageEmit
			return outcome{SweepDone: true, Certified: true}, nil
		}
		o.advance(true)
		return outcome{Take: true, SweepDone: true, Certified: true}, nil
	case stageSet:
		return o.commitSet(), nil
	case stageCertify:
		return o.endPriced(false)
	case stageEmit:
		o.Stage = stageEnd
	}
	return outcome{}, nil
}

// shows says whether the weights of the sweep under way are wanted for an evaluation.
// They are written between the terminals' pricing and the internals' step, which is when
// the vectors at hand are those that the certificate is about.
func (o *outer) shows() bool { return o.evalEvery > 0 && o.Sweep%o.evalEvery == 0 }

// measured goes on from the pricing of the terminals.
func (o *outer) measured() (outcome, error) {
	switch {
	case o.flat:
		return o.endPriced(false)
	case o.twoblock() && o.Stage != stagePrice:
		o.Stage = stageReduce
	default:
		o.Stage = stageCertify
	}
	return outcome{}, nil
}

// endPriced ends a priced sweep whose step moved nothing that could be taken back.
func (o *outer) endPriced(take bool) (outcome, error) {
	if err := o.certify(); err != nil {
		return outcome{}, err
	}
	if o.stop() {
		o.Stage = stageEmit
	} else {
		o.openSweep(o.Sweep + 1)
	}
	return outcome{Take: take, SweepDone: true, Certified: true}, nil
}

// commitReduce ends twoblock's REDUCE step. If the job stops here the new internals are
// dropped: the certificate is about the y that the terminals were solved at, and so is
// what EMIT writes. If P rose, the step is done again from the same inputs with the
// stiffness of whole families, and the momentum restarts; if P rises again, full stiffness
// takes over until it has fallen.
func (o *outer) commitReduce(restart bool) (outcome, error) {
	if o.Short && !o.Price { // the terminals have been solved at the old internals
		o.priceNow()
		return outcome{}, nil
	}
	if !o.Price {
		o.advance(restart)
		return outcome{Take: true, SweepDone: true}, nil
	}
	support := o.rule() == "support"
	if err := o.certify(); err != nil {
		return outcome{}, err
	}
	if o.stop() {
		o.Stage = stageEmit
		return outcome{SweepDone: true, Certified: true}, nil
	}
	rose := o.judge()
	o.Family = o.Family || o.stalled()
	if support && rose {
		o.Stage = stageGuard
		return outcome{}, nil
	}
	o.advance(restart || rose)
	return outcome{Take: true, SweepDone: true, Certified: true}, nil
}

// commitSet goes to the next independent set, and behind the last one to the pricing
// steps or the next sweep.
func (o *outer) commitSet() outcome {
	o.Set++
	if o.Set < o.sets && o.schedule != jobspec.ScheduleJacobi && !o.Short {
		return outcome{Take: true}
	}
	o.Set = 0
	if o.mustPrice() {
		o.Price, o.Stage = true, stagePrice
		return outcome{Take: true}
	}
	o.openSweep(o.Sweep + 1)
	return outcome{Take: true, SweepDone: true}
}

// judge says whether P rose against the best accepted one. Unfinished inner solves raise
// P as well, by at most their gap (rows that the working sets missed, most of all): what
// they account for is no fault of the internals' step.
func (o *outer) judge() bool {
	low := o.Last.Objective - o.Inner
	if o.Rises == 0 && o.Accepted == 0 || low <= o.Accepted+float64(riseTolerance*math.Abs(o.Accepted)) {
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
func (o *outer) advance(restart bool) {
	from := uint32(momentumFrom)
	switch {
	case o.Begun:
		from = 1
	case o.soft:
		from = softMomentumFrom
	}
	wait := o.Begun && o.Last.Gap > unsettled
	if restart || wait || !o.momentum || o.Sweep < from {
		o.T, o.Beta = 1, 0
	} else {
		next := (1 + math.Sqrt(1+4*float64(o.T*o.T))) / 2
		o.Beta = (o.T - 1) / next
		o.T = next
	}
	o.openSweep(o.Sweep + 1)
}
