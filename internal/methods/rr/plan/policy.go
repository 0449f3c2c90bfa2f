package plan

import taxonv1 "taxon/proto/taxon/v1"

// Policy holds the constants of the iteration. They change its path, never the optimum. Where
// each comes from is in docs/decisions/0016-policy.md.
type Policy struct {
	// Pricing: a priced sweep passes over all data and ends in a certificate.
	FirstPriced  uint32  // the first priced sweep
	PriceAll     uint32  // all sweeps up to this one are priced, as their working sets are guesses
	PriceSecond  uint32  // then every second one up to this
	PriceEvery   uint32  // then one in so many
	SparsePriced uint32  // on large data: price this sweep, then one in PriceEvery, and none between; 0: as on others
	WarmPriced   uint32  // a warm start prices every sweep up to this one, as it may be done after any
	WarmDuals    bool    // terminals of a warm start begin at duals; else its sweeps are those of a job from nothing
	AimFrom      uint32  // from this sweep on, also price a sweep that is expected to reach the tolerance
	AimShare     float64 // "reach" means to fall below this share of the tolerance

	// Working sets: a pricing pass keeps rows whose margin is within a band of the hinge's corner.
	FirstBand  float64 // band of the first sweeps, in which the internals' biases still move
	FirstBands uint32  // number of sweeps with FirstBand
	SampleBand float64 // below 0: of the first sweep, where it solved a sample of the rows; rows little short of the margin stay out, too, as biases have yet to fall
	Band       float64 // band of later sweeps
	WarmBand   float64 // band of a warm start's first sweeps, in which most internals hardly move
	WarmBands  uint32  // number of sweeps with WarmBand

	// Inner solves: how many epochs a block's descent runs, and to which gap.
	Epochs          uint32  // minimum, if the options name none
	RoughEpochs     uint32  // epochs of the first sweeps; 0: Epochs
	RoughSweeps     uint32  // number of sweeps with exactly RoughEpochs: the internals are still far off
	FirstEpochs     uint32  // maximum until a gap is known; 0: MaxEpochs
	MaxEpochs       uint32  // maximum later; a descent that ends there continues in the next sweep
	MinMaxEpochs    uint32  // MaxEpochs is raised to this after the first certificate
	EpochLimit      uint32  // MaxEpochs doubles, up to this, while the inner gaps are too large:
	SlowShare       float64 // larger than this share of the whole gap
	SlowFrom        uint32  // it doubles only after this sweep
	WarmEpochs      uint32  // maximum in the first sweep of a warm start, whose duals were guessed from margins
	InnerShare      float64 // inner gaps aim at this share of the whole gap, divided evenly over the terminals
	WarmInnerShare  float64 // the same for a warm start, which has few sweeps left
	ToleranceShare  float64 // without internals: inner gaps aim at this share of the tolerance; 0: at InnerShare
	FirstInnerShare bool    // until a gap is known, each terminal aims at ToleranceShare of its own loss

	// Precise descents: in float64, from the first sweep on at which one of these holds.
	PreciseBelow      float64 // the tolerance is below this, and PreciseFrom and PreciseSweep are reached
	PreciseFrom       float64 // the gap is at most this
	PreciseSweep      uint32  // the sweep is at least this
	PreciseStall      uint32  // or: the gap has not fallen in this many sweeps
	PreciseStallNear  uint32  // or: the same in this many sweeps, with the gap at most PreciseFrom
	PreciseInnerBelow float64 // or: the gap is at most this, and the inner gaps are most of it:
	PreciseInnerShare float64 // more than this share
	PreciseInnerRise  float64 // or: the inner gaps are most of it, and the dual rose by less than this share of the gap
	PreciseRise       float64 // or: the dual rose by less than this share of the gap; 0: not tested

	// Momentum.
	MomentumFrom     uint32  // sweeps before this one take plain steps
	WarmMomentumFrom uint32  // the same for a warm start
	WarmPlainAbove   float64 // a warm start takes plain steps while the gap is above this
	JacobiDamping    float64 // schedule jacobi: internals go this share of the way to the mean

	// Curvature of the internals' solve: on the support; of families for the rest of the job, once
	// P rose or one of these holds; full while P stays above the best accepted one.
	Climbs     uint32  // P rose in so many certificates in a row, for any reason; 0: not tested
	StallEvery uint32  // in this many sweeps the gap fell too little:
	StallShare float64 // to more than this share of what it was
	StallFar   float64 // the same while the gap is above StallNear
	StallNear  float64 // below it families gain more than the support
	StallFrom  uint32  // the last three are tested from this sweep on
	FullAfter  uint32  // full after this many priced sweeps: it never raises P, but makes the internals dense
	AnewAbove  float64 // the internals begin again at zero, if P rose with the gap above this; 0: never
	Follower   float64 // curvature of a terminal without support, while the gap is above 1; less below
	Share      float64 // of the bound of the curvature that counts at first (logistic loss); it doubles when P rises; 0: all

	// The end of a job, and the change to safeguarded mode.
	BestShare        float64 // the gap counts as fallen when it is below this share of the smallest so far
	CycleSweeps      uint32  // safeguarded: the gap has not fallen in this many sweeps, and
	CycleWorse       float64 // was meanwhile above the best times this
	SafeguardSweeps  uint32  // safeguarded: the gap has not fallen in this many sweeps
	GiveUpSweeps     uint32  // stationary: the same in so many sweeps, and in half of all sweeps
	StationarySweeps uint32  // stationary: in this many priced sweeps P and D have moved
	StationaryShare  float64 // by less than this share of P
	NoBoundSweeps    uint32  // without a bound, stationary: in this many sweeps P has moved
	NoBoundShare     float64 // by less than this share of the tolerance
	RiseTolerance    float64 // a rise of P by at most this share counts as rounding
}

// SampledFrom is the number of instances from which on fresh blocks begin on at most half
// of them: twice mapper.StartRows.
const SampledFrom = 2 * 8192

// softC is the largest C at which the duals and biases of the squared hinge move little.
const softC = 0.3

var joint = Policy{
	FirstPriced: 1, PriceAll: 4, PriceSecond: 8, PriceEvery: 4, WarmPriced: 8, WarmDuals: true, AimFrom: 8, AimShare: 0.95,
	FirstBand: 0.02, FirstBands: 1, Band: 0.15, WarmBand: 0.15, WarmBands: 3,
	Epochs: 3, RoughSweeps: 2, MaxEpochs: 50, EpochLimit: 6400, SlowShare: 0.3, SlowFrom: 2, WarmEpochs: 20, InnerShare: 0.02, WarmInnerShare: 0.08,
	PreciseBelow: 5e-5, PreciseFrom: 1e-2, PreciseStall: 16, PreciseStallNear: 8, PreciseInnerBelow: 1e-3, PreciseInnerShare: 0.9, PreciseInnerRise: 0.01,
	MomentumFrom: 3, WarmMomentumFrom: 1, WarmPlainAbove: 0.25, JacobiDamping: 0.8,
	FullAfter: 4, Follower: 0.01, Climbs: 2, AnewAbove: 0.5, StallFrom: 16, StallShare: 0.7, StallFar: 0.7, StallNear: 1e-2, StallEvery: 4,
	BestShare: 0.8, CycleSweeps: 40, CycleWorse: 1.5, SafeguardSweeps: 300, GiveUpSweeps: 1000, StationarySweeps: 8, StationaryShare: 1e-12,
	NoBoundSweeps: 10, NoBoundShare: 0.01, RiseTolerance: 1e-12,
}

// flat is joint for jobs without internals: terminals are problems of their own.
var flat = joint.with(func(p *Policy) {
	p.FirstBand, p.Band, p.WarmBand = 0, 0, 0 // every sweep is priced, and nothing moves but a block's own duals
	p.RoughSweeps, p.WarmEpochs, p.FirstEpochs, p.MinMaxEpochs = 0, 0, 6, 400
	p.ToleranceShare = 0.9
	p.PreciseSweep, p.PreciseInnerBelow, p.PreciseRise = 2, 0, 1e-3
})

// Policies by loss, and by whether there are internals.
var policies = map[string]struct{ joint, flat Policy }{
	"hinge": {joint.with(func(p *Policy) { p.SampleBand, p.StallFar = -0.03, 0.8 }), flat},
	"squared-hinge": {
		joint.with(func(p *Policy) {
			p.FirstPriced, p.SparsePriced = 2, 2 // its first sweep stays on a sample
			p.FirstBands, p.Band = 3, 0.05
			p.RoughEpochs = 1
		}),
		flat.with(func(p *Policy) { p.FirstPriced, p.SparsePriced = 2, 2 }),
	},
	"logistic": {
		joint.with(func(p *Policy) {
			p.PreciseInnerBelow, p.Follower, p.Climbs, p.AnewAbove, p.SparsePriced, p.WarmDuals = 0, 0, 0, 0, 2, false
			p.Share, p.MomentumFrom = 0.7, 1 // with half of the bound momentum from the start lets P rise
		}),
		flat.with(func(p *Policy) {
			p.FirstInnerShare, p.FirstEpochs, p.MinMaxEpochs = true, 0, 0 // Newton's steps are few
			p.PreciseRise, p.WarmDuals = 0, false
		}),
	},
}

// with is a changed copy.
func (p Policy) with(change func(*Policy)) Policy {
	change(&p)
	return p
}

// policyOf is that of a job's options.
func policyOf(o *taxonv1.Options, internals bool) Policy {
	by := policies["hinge"]
	if known, ok := policies[o.GetLoss()]; ok {
		by = known
	}
	p := by.flat
	if internals {
		p = by.joint
	}
	if o.GetLoss() == "squared-hinge" && o.GetC() <= softC {
		p.MomentumFrom = 2
	}
	if epochs := o.GetInnerEpochs(); epochs > 0 {
		p.Epochs, p.RoughEpochs = epochs, 0
	}
	return p
}
