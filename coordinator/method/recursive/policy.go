package recursive

import taxonv1 "taxon/proto/taxon/v1"

// Policy holds the constants of the iteration. They change its path, never the optimum. Where
// each comes from is in docs/decisions/0016-policy.md.
type Policy struct {
	// Which sweeps are priced: pass over all data in float64 and yield a certificate.
	FirstPriced   uint32  // the first one
	SparsePricing bool    // on large data the second, and then every fourth, instead of more at first
	WarmPriced    uint32  // of a warm start, all up to this one: the job may be done after any
	AimFrom       uint32  // from this sweep on one is also priced if the gap should reach the tolerance there:
	AimShare      float64 // this share of it

	// Working sets that pricing draws: rows within a band of their margin's bound.
	FirstBand  float64 // of the first sweeps, while the hierarchy's biases have not settled
	FirstBands uint32  // so many
	Band       float64 // of later ones
	WarmBand   float64 // of the first sweeps of a warm start: internals that are right but for what is new move little
	WarmBands  uint32  // so many

	// Inner solves.
	Epochs          uint32  // least number of epochs, where the options name none
	RoughEpochs     uint32  // of the first sweeps; 0: Epochs
	RoughSweeps     uint32  // so many do RoughEpochs and no more: the internals are still far off
	FirstEpochs     uint32  // bound on those before any gap is known; 0: MaxEpochs
	MaxEpochs       uint32  // bound on the others at first; the next sweep goes on where one ends
	MinMaxEpochs    uint32  // and at least this one behind the first certificate
	EpochLimit      uint32  // MaxEpochs doubles up to this where the inner gaps stay above
	SlowShare       float64 // this share of the whole one,
	SlowFrom        uint32  // behind this sweep
	WarmEpochs      uint32  // bound in the first sweep of a warm start, whose duals were drawn from margins
	InnerShare      float64 // inner solves aim at this share of the gap, spread evenly over the terminals
	WarmInnerShare  float64 // the same of a warm start, which has few sweeps left
	ToleranceShare  float64 // without internals they aim at this share of the tolerance instead; 0: they don't
	FirstInnerShare bool    // before any gap is known each terminal aims at ToleranceShare of its own loss

	// Descents turn to float64 where float32 stands still.
	PreciseBelow float64 // a tolerance below this wants them
	PreciseFrom  float64 // once the gap is below this
	PreciseSweep uint32  // and from this sweep on
	StandSweeps  uint32  // a gap that has not fallen by a fifth in so many sweeps turns, too
	CloseSweeps  uint32  // or in so many, below PreciseFrom
	DriftBelow   float64 // so does one below this
	DriftShare   float64 // of which the terminals' own gaps are more than this share
	StandRise    float64 // or a dual bound that rises by less than this share of the gap

	// Momentum.
	MomentumFrom     uint32  // sweeps before this one take plain steps
	WarmMomentumFrom uint32  // of a warm start,
	WarmPlainAbove   float64 // those above this gap, too: what is new has not settled
	JacobiDamping    float64 // share of the way to the mean that jacobi's internals go

	// Curvature of the exact solve: on the support, of whole families, full.
	FamilyAfter uint32  // from so many priced sweeps in a row above the best accepted P on, of whole families
	FullAfter   uint32  // from so many on, full: it always majorises, but makes the internals dense
	StallFrom   uint32  // from this sweep on steps that shrink the gap
	StallShare  float64 // by less than this
	StallEvery  uint32  // in so many sweeps take that of whole families for good

	// What ends a job, or its boldness.
	CycleSweeps      uint32  // a gap that has not fallen by a fifth in so many sweeps
	CycleWorse       float64 // and was meanwhile so many times the best runs in circles: safeguarded from there on
	Patience         uint32  // as is one that has not in so many
	GiveUpSweeps     uint32  // stationary: it has not over so many, and half of all sweeps
	StationarySweeps uint32  // stationary: neither P nor D has moved over so many priced sweeps
	StationaryShare  float64 // by this share of P
	SettleSweeps     uint32  // without a bound: P has moved over so many sweeps
	SettleShare      float64 // by less than this share of the tolerance
	RiseTolerance    float64 // relative rise of P that is not taken for rounding
}

// SampledFrom is the number of instances from which on fresh blocks begin on at most half
// of them: twice mapper.StartRows.
const SampledFrom = 2 * 8192

// softC is the C up to which the duals and biases of the squared hinge move little.
const softC = 0.3

var joint = Policy{
	FirstPriced: 1, WarmPriced: 8, AimFrom: 8, AimShare: 0.95,
	FirstBand: 0.02, FirstBands: 1, Band: 0.15, WarmBand: 0.15, WarmBands: 3,
	Epochs: 3, RoughSweeps: 2, MaxEpochs: 50, EpochLimit: 6400, SlowShare: 0.3, SlowFrom: 2, WarmEpochs: 20, InnerShare: 0.02, WarmInnerShare: 0.08,
	PreciseBelow: 5e-5, PreciseFrom: 1e-2, StandSweeps: 16, CloseSweeps: 8, DriftBelow: 1e-3, DriftShare: 0.9,
	MomentumFrom: 4, WarmMomentumFrom: 1, WarmPlainAbove: 0.25, JacobiDamping: 0.8,
	FamilyAfter: 2, FullAfter: 4, StallFrom: 16, StallShare: 0.7, StallEvery: 4,
	CycleSweeps: 40, CycleWorse: 1.5, Patience: 300, GiveUpSweeps: 1000, StationarySweeps: 8, StationaryShare: 1e-12,
	SettleSweeps: 10, SettleShare: 0.01, RiseTolerance: 1e-12,
}

// flat is joint's where there are no internals: terminals are problems of their own.
var flat = joint.with(func(p *Policy) {
	p.FirstBand, p.Band, p.WarmBand = 0, 0, 0 // every sweep is priced, and nothing moves but a block's own duals
	p.RoughSweeps, p.WarmEpochs, p.FirstEpochs, p.MinMaxEpochs = 0, 0, 6, 400
	p.ToleranceShare = 0.9
	p.PreciseSweep, p.DriftBelow, p.StandRise = 2, 0, 1e-3
})

// Policies by loss, and by whether there are internals.
var policies = map[string]struct{ joint, flat Policy }{
	"hinge": {joint, flat},
	"squared-hinge": {
		joint.with(func(p *Policy) {
			p.FirstPriced, p.SparsePricing = 2, true // its first sweep stays on a sample
			p.FirstBands, p.Band = 3, 0.05
			p.RoughEpochs = 1
		}),
		flat.with(func(p *Policy) { p.FirstPriced, p.SparsePricing = 2, true }),
	},
	"logistic": {
		joint.with(func(p *Policy) { p.DriftBelow = 0 }),
		flat.with(func(p *Policy) {
			p.FirstInnerShare, p.FirstEpochs, p.MinMaxEpochs = true, 0, 0 // Newton's steps are few
			p.StandRise = 0
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
