package plan

// Policy holds the constants of the iteration. They change its path, never the optimum: a job ends
// by its certificate, whatever they are.
//
// Without them the iteration would be this. A sweep solves every terminal over all rows, in
// float64 and until its inner gap is zero, with the internals fixed. Then it takes the internals to
// the exact minimum of the model in which every terminal resists every move with its full
// curvature. That model bounds P from above, so P falls in each sweep, and the gap goes to zero
// from any start (majorisation and minimisation). Each sweep ends with a full pass and hence with a
// certificate. No constant is needed for any of this, but it is slow: each sweep visits all
// rows, most of which matter to no class; the bound makes steps short, and the internals dense.
//
// The constants buy speed where that gives up a guarantee, and say when to take the guarantee back:
//
//   - Working sets with a band, and full passes in some sweeps only, in place of all rows.
//     Where a set misses rows, the next certificate shows it.
//   - A few epochs in float32 in place of exact inner solves. Inner aims follow the gap, and
//     descents become precise where float32 stands still.
//   - Momentum in place of plain steps. It restarts when a step turns back or P rises.
//   - The curvature on the support in place of the full one. It falls back to that of families,
//     then to the full one, as certificates show that P rises or the gap stalls.
//   - Safeguarded mode, which is the plain iteration with the full curvature and all rows in
//     the working sets, if all else runs in circles.
//
// A comment below says which rule a constant follows from. Some values follow from none and are
// called a choice: each is the best of a few that were measured, or one without a measurement on
// record. The measurements are in docs/decisions/0016-policy.md and in the decisions that the
// comments name.
//
// Without internals a sweep is one solve of the terminals and always has a full pass. Fields that
// deal with internals, or with sweeps without a full pass, have no effect there. P and D are
// the primal and the dual objective, and the gap is (P-D)/P.
type Policy struct {
	// These fields say which sweeps are priced, that is, have a full pass. A full pass visits all
	// data, costs about as much as one epoch, ends in a certificate and draws new working sets.

	// FirstPriced is the first sweep that is priced. With the squared hinge it is 2: before the
	// biases of a sampled first sweep have settled, a full pass would list a third of all (row,
	// class) pairs (decision 10). With the other losses it is 1, because a working set holds all
	// rows until it is drawn.
	FirstPriced uint32

	// PriceAll is the last of the first sweeps that are all priced: their working sets are guesses,
	// and what they miss would be carried on. The value 4 is a choice.
	PriceAll uint32

	// PriceSecond is the sweep up to which every second one is priced. It makes the change from all
	// to few gradual. From it on the gap's rate of descent is extrapolated to price the sweep that
	// should reach the tolerance (see aim): earlier rates are no guide, as the working sets still
	// change. The value 8 is a choice.
	PriceSecond uint32

	// PriceEvery is the distance between priced sweeps after PriceSecond, and the number of sweeps
	// over which a stall is measured. The value 4 is a choice: of 1, 2 and 4, with bands that suit
	// each, 4 took the least CPU time, and 8 gained nothing (decision 8). A full pass costs an
	// epoch, but what a band misses between two of them costs sweeps.
	PriceEvery uint32

	// SparsePriced applies to data of at least SampledFrom rows. If above 0, this sweep is priced
	// and then one in PriceEvery, in place of PriceAll and PriceSecond. The squared hinge predicts
	// how far biases fall after a sampled sweep (decision 10), and the logistic loss has no working
	// sets to draw, so both do without the passes between. If it is 0, all data are treated alike.
	SparsePriced uint32

	// WarmPriced is the sweep up to which a warm start prices all sweeps: it may reach its
	// tolerance in any of them, and an unpriced sweep cannot end a job. The value 8 is a choice.
	WarmPriced uint32

	// WarmDuals says that a warm start may give the terminals duals to begin at, so that the fields
	// named Warm apply. The logistic loss has no sparse duals. A warm start takes over its v
	// instead, and its sweeps follow the rules for a job without a warm start.
	WarmDuals bool

	// AimShare is the share of the tolerance that an extrapolated gap must fall below for its sweep
	// to be priced (see aim). It leaves a margin for the extrapolation's error, since a wrong guess
	// costs a full pass. The value 0.95 is a choice.
	AimShare float64

	// These fields say what the working sets hold. A full pass keeps the rows with a margin below 1
	// + band: those that may need a dual before the next full pass, after the scores have moved.

	// FirstBand is the band of the first sweeps. It is narrow, because the internals' biases are
	// still falling: half of all rows lie within 0.15 of their margin then, and few of them will
	// need a dual. The value 0.02 is a choice.
	FirstBand float64

	// FirstBands is the number of sweeps with FirstBand. The hinge takes 1 and the squared hinge 3,
	// after which its biases have settled; with the hinge 3 let P rise (decision 10).
	FirstBands uint32

	// SampleBand, if below 0, is the band of a first sweep that solved a sample of the rows. A
	// sample of one row in k pulls a bias down one k-th as hard as all rows do, so scores have yet
	// to fall, and rows that are now short of the margin by less than this will reach it. The hinge
	// takes -0.03 (decision 54). If it is 0, the first sweep takes FirstBand.
	SampleBand float64

	// Band is the band of later sweeps. The rule would be the largest change of a score between two
	// full passes, which is not known in advance. The values were measured for each loss: at 0
	// unpriced sweeps diverge, and twice the value visits three times the rows for the same gaps.
	// Without internals it is 0, because every sweep is priced.
	Band float64

	// WarmBand is the band of a warm start's first sweeps. Its biases are nearly right, so the
	// reason for FirstBand is gone, and what a narrow band misses made the gap jump (decision 17).
	// It is the hinge's Band.
	WarmBand float64

	// WarmBands is the number of sweeps with WarmBand. The value 3 is a choice.
	WarmBands uint32

	// These fields say how many epochs the inner solve of a block runs, and to which gap.

	// Epochs is the least number of epochs in a sweep, if the options name none. One epoch stalls
	// at a gap of 5e-2 (decision 16). With two a job takes as many sweeps as with three, and a
	// seventh more CPU time (decision 8).
	Epochs uint32

	// RoughEpochs is the number of epochs of the first RoughSweeps sweeps. Zero stands for Epochs.
	// The squared hinge takes 1, as its first working sets are guesses; later it costs sweeps
	// (decision 10).
	RoughEpochs uint32

	// RoughSweeps is the number of first sweeps that run exactly RoughEpochs epochs, without an
	// inner aim: the internals are far off, and their terminals need not be solved well for them.
	// It is 2 with internals, and 0 without, where nothing else moves. The value 2 is a choice.
	RoughSweeps uint32

	// FirstEpochs is the most epochs until a gap is known, without internals. The certificate after
	// the first solve costs about an epoch and says how much is left. Of 4, 5, 6 and 8, 6 took the
	// fewest epochs in all (decision 10). Zero stands for MaxEpochs.
	FirstEpochs uint32

	// MaxEpochs is the most epochs in a sweep. It keeps one slow block from holding up a step; a
	// descent that ends there continues in the next sweep. The value 50 is a choice.
	MaxEpochs uint32

	// MinMaxEpochs raises MaxEpochs once there is a certificate. Without internals it is 400: on
	// dense data long descents cost less than the full passes between them (5 % of CLEF's time). If
	// it is 0, MaxEpochs stays as it is.
	MinMaxEpochs uint32

	// EpochLimit is the greatest value that MaxEpochs doubles to while the inner gaps are too
	// large. It is a bound against running for ever and is hardly reached: 6400 is seven doublings
	// of 50.
	EpochLimit uint32

	// SlowShare is the share of the whole gap above which the inner gaps are too large, so that
	// MaxEpochs doubles after each regularly priced sweep. It lies well above InnerShare, which
	// inner solves aim at: a sum beyond it means that descents end by MaxEpochs. The value 0.3 is a
	// choice.
	SlowShare float64

	// SlowFrom is the sweep after which MaxEpochs may double. It is the last of RoughSweeps, whose
	// descents are short on purpose.
	SlowFrom uint32

	// WarmEpochs is the most epochs in the first sweep of a warm start. Duals recovered from
	// margins need more than a rough sweep. 3 and 8 were no better, and 4 took 57 sweeps in place
	// of 21 on CLEF (decision 17). If it is 0, the first sweep is like later ones. Without
	// internals FirstEpochs counts.
	WarmEpochs uint32

	// InnerShare is the share of the whole gap that the inner gaps aim at together, divided evenly
	// over the terminals. A solve beyond the accuracy of the internals is wasted, and a coarse one
	// holds the gap up: 0.1 took 40 sweeps in place of 36 (decision 16).
	InnerShare float64

	// WarmInnerShare is InnerShare for a warm start. It has few sweeps, so coarse inner solves
	// cannot hold it up for long: 0.02 took more sweeps than 0.08 on new classes (decision 17).
	WarmInnerShare float64

	// ToleranceShare, without internals, is the share of the tolerance that the inner gaps aim at:
	// the gap is the sum of the inner gaps, so one solve should reach it. The rest is for rows
	// outside of the working sets, and for the estimate's lag. 0.8 and 1 differ by 5 %, 0.5 costs a
	// tenth. If it is 0, inner gaps aim at InnerShare.
	ToleranceShare float64

	// FirstInnerShare says that, until a gap is known, each terminal aims at ToleranceShare times
	// the tolerance times its own loss. The logistic loss uses it without internals, where Newton's
	// steps are few, and one solve to the aim is nearly the whole job.
	FirstInnerShare bool

	// These fields say when descents become precise. Float32 descents move duals in steps of their
	// rounding and so leave a gap of 1e-5 to 2e-4 at C = 100. Descents in float64 take about twice
	// as long. A job changes to them for good in the first sweep in which one of the following
	// holds, or in which P and D did not move. The logistic loss's solver has no float64 descent
	// and ignores this.

	// PreciseBelow is the tolerance below which a job is expected to end in float64: float32's
	// residual gaps begin there. Such a job changes over once PreciseFrom and PreciseSweep are
	// reached.
	PreciseBelow float64

	// PreciseFrom is the gap at which a job with a tolerance below PreciseBelow changes over. Far
	// above it float32 is as good and twice as fast. The value 1e-2 is a choice.
	PreciseFrom float64

	// PreciseSweep is the first sweep after which such a job may change over. Without internals it
	// is 2, so that the second sweep, which aims at the tolerance, is in float32: it often gets
	// there at half the cost.
	PreciseSweep uint32

	// PreciseStall is the number of sweeps without a fall of the gap (see BestShare) after which
	// descents become precise, whatever the tolerance. 60 in place of 16 took 216 sweeps in place
	// of 32 on NEWS20. Half as many count where the gap is at most PreciseFrom, as float32 is the
	// likelier cause there. The half is a choice.
	PreciseStall uint32

	// PreciseInnerBelow is the gap at which a large share of inner gaps is put down to float32: in
	// long descents the tile drifts from y + v by its roundings, and the estimates do not see it. 0
	// disables this test and PreciseInnerRise's.
	PreciseInnerBelow float64

	// PreciseInnerShare is the share of the whole gap above which the inner gaps are called most of
	// it. In exact arithmetic they would be InnerShare. With 0.9 CLEF took 17 sweeps to 1e-4 in
	// place of 32.
	PreciseInnerShare float64

	// PreciseInnerRise applies while the gap is above PreciseInnerBelow. If D rose by less than
	// this share of the gap, and the inner gaps are most of it, float32 is what holds D. At C =
	// 1000 a job stood at a gap of 0.4 without it (decision 16).
	PreciseInnerRise float64

	// PreciseRise, without internals, is the share of the gap that D must rise by in a sweep; less
	// is put down to float32. Nothing but the descents moves D there, so a standing D has no other
	// cause. 0 disables it.
	PreciseRise float64

	// These fields determine the momentum.

	// MomentumFrom is the number of the first sweep that momentum counts from. The steps before it
	// have no momentum: working sets and biases are unsettled, and momentum would carry their
	// errors on. With 3 in place of 4 wordnet took 34 sweeps in place of 36, with 2 it took 56
	// (decision 59). The logistic loss has no working sets to settle and takes 1.
	MomentumFrom uint32

	// WarmMomentumFrom is MomentumFrom for a warm start: its working sets and biases are settled.
	WarmMomentumFrom uint32

	// WarmPlainAbove is the gap above which a warm start takes plain steps: its start is not near
	// the optimum then, as where classes are new. Of 1, 0.25 and 0.1 it does best on the whole
	// (decision 17).
	WarmPlainAbove float64

	// JacobiDamping is the share of the way to the mean that the schedule jacobi moves internals.
	// Undamped, a tree, which is bipartite, can alternate between two states. The value 0.8 is a
	// choice.
	JacobiDamping float64

	// These fields choose the curvature of the internals' step with the schedule twoblock. The
	// support's curvature counts a terminal only on features where it has support. It makes long
	// steps and keeps the internals sparse, but does not bound P. The curvature of families counts
	// all terminals of a node where anything below it has support. The full curvature counts all
	// everywhere: it never raises P, but makes the internals dense. A step that raised P is done
	// again with that of families, which later steps keep.

	// Climbs is the number of certificates in a row in which P rose, for any reason, after which a
	// job keeps to families. One rise may come from unfinished inner solves, two in a row hardly
	// (decision 58). 0 disables the test.
	Climbs uint32

	// StallShare is the share that the gap must fall below in PriceEvery sweeps. Otherwise the job
	// keeps to families, with which momentum can carry on. 240 sweeps to 1e-4 became 88 (decision
	// 8). It applies to gaps of at most StallNear.
	StallShare float64

	// StallFar is StallShare for a gap above StallNear, where the support's steps gain more, if
	// slowly. The hinge takes 0.8, with which wordnet took 46 sweeps in place of 58; it cost the
	// squared hinge sweeps (decision 8).
	StallFar float64

	// StallNear is the gap below which a job is in its tail, where families gain more than the
	// support does. The value 1e-2 is a choice.
	StallNear float64

	// StallFrom is the first sweep in which a stall counts: before it gaps do not fall evenly.
	// Families from sweep 8 on were slower at first, and from sweep 20 on soon level (decision 8).
	// The value 16 is a choice.
	StallFrom uint32

	// FullAfter is the number of priced sweeps in a row with P above the best accepted one after
	// which steps take the full curvature, until P is below. It is the last resort, because it
	// makes the internals dense: gigabytes on 17 thousand classes. The value 4 is a choice.
	FullAfter uint32

	// AnewAbove is the gap above which the internals begin again at zero when P rose. What bold
	// steps left in them shrinks slowly, and while hardly anything is proven zero is nearer
	// (decision 58). The value 0.5 is a choice. If it is 0, they never begin again.
	AnewAbove float64

	// Follower is the curvature of a terminal without support on a feature, in a step by the
	// support's curvature, before the first certificate and while the gap is above 1. Below, it is
	// multiplied by the gap's square root: as internals move less, fewer followers get support, and
	// the gap goes with the square of a move. A warm start has none before its first certificate,
	// as it may begin at the optimum. 0.01 did best among the values tried (decision 59). If it is
	// 0, the curvature of followers does not count.
	Follower float64

	// Share, of the logistic loss, is the share of the curvature's bound that counts at first. The
	// bound, by row sums, is tight in one direction alone. Nesterov's momentum beta is stable up to
	// a curvature of (2+2 beta)/(1+2 beta) times the model's, 1.4 at 0.75, hence 0.7. It doubles
	// when P rises. Zero stands for the whole bound (decision 50).
	Share float64

	// These fields end jobs that do not get to their tolerance, or change them to safeguarded mode.
	// Their rule is that no job may run for ever. The numbers are far beyond what a job with
	// progress takes.

	// BestShare is the share of the smallest gap so far that a gap must fall below to count as a
	// new smallest one. It tells progress from noise for the five tests that count sweeps without
	// progress. The value 0.8 is a choice.
	BestShare float64

	// CycleSweeps is the number of sweeps without progress after which a gap that also rose, see
	// CycleWorse, is taken to run in circles: a step activates rows that the working sets do not
	// have, and the next one goes back. Tiny problems do so. The value 40 is a choice.
	CycleSweeps uint32

	// CycleWorse is the multiple of the smallest gap that the gap must have exceeded meanwhile. It
	// tells a cycle from a slow descent. The value 1.5 is a choice.
	CycleWorse float64

	// SafeguardSweeps is the number of sweeps without progress after which a job becomes
	// safeguarded even if its gap did not rise. The value 300 is a choice.
	SafeguardSweeps uint32

	// GiveUpSweeps is the number of sweeps without progress after which a job ends as stationary,
	// provided that they are half of all its sweeps: a job that was slow all along may be slow at
	// the end. The value 1000 is a choice.
	GiveUpSweeps uint32

	// StationarySweeps is the number of priced sweeps in a row without a change of P and D after
	// which a job ends as stationary: float64 has no more digits. The first such sweep makes
	// descents precise, the others leave time for that to show. The value 8 is a choice.
	StationarySweeps uint32

	// StationaryShare is the share of P up to which a change of P or D counts as none, and a rise of
	// P as rounding. It is about ten thousand of float64's roundings, which is what sums over very
	// many rows may lose.
	StationaryShare float64

	// NoBoundSweeps is the number of sweeps over which P is observed in jobs without a bound D
	// (graphs without an anchor), which cannot end by a gap. After as many sweeps such a job
	// descends in float64 if its tolerance is below PreciseBelow. The value 10 is a choice.
	NoBoundSweeps uint32

	// NoBoundShare times the tolerance is the change of P, relative to P, below which a job without
	// a bound ends after NoBoundSweeps sweeps. If P falls by a constant factor a sweep, the rest of
	// its fall is then a small multiple of the last one. The value 0.01 is a choice.
	NoBoundShare float64
}

// SampledFrom is the number of instances from which on fresh blocks begin on at most half
// of them. It is twice mapper.StartRows, the size of such a sample.
const SampledFrom = 2 * 8192

// softC is the largest C at which momentum begins early with the squared hinge, because its duals
// and biases move little: at C = 0.15 it gained, at C = 1 it cost 12 sweeps of 36 (decision 10).
// The value between is a choice.
const softC = 0.3

// joint holds the constants for the hinge with internals, from which all others derive.
var joint = Policy{
	FirstPriced: 1, PriceAll: 4, PriceSecond: 8, PriceEvery: 4, WarmPriced: 8, WarmDuals: true, AimShare: 0.95,
	FirstBand: 0.02, FirstBands: 1, Band: 0.15, WarmBand: 0.15, WarmBands: 3,
	Epochs: 3, RoughSweeps: 2, MaxEpochs: 50, EpochLimit: 6400, SlowShare: 0.3, SlowFrom: 2, WarmEpochs: 20,
	InnerShare: 0.02, WarmInnerShare: 0.08,
	PreciseBelow: 5e-5, PreciseFrom: 1e-2, PreciseStall: 16, PreciseInnerBelow: 1e-3,
	PreciseInnerShare: 0.9, PreciseInnerRise: 0.01,
	MomentumFrom: 3, WarmMomentumFrom: 1, WarmPlainAbove: 0.25, JacobiDamping: 0.8,
	FullAfter: 4, Follower: 0.01, Climbs: 2, AnewAbove: 0.5, StallFrom: 16, StallShare: 0.7, StallFar: 0.7,
	StallNear: 1e-2,
	BestShare: 0.8, CycleSweeps: 40, CycleWorse: 1.5, SafeguardSweeps: 300, GiveUpSweeps: 1000, StationarySweeps: 8,
	StationaryShare: 1e-12,
	NoBoundSweeps:   10, NoBoundShare: 0.01,
}

// flat holds the constants for the hinge without internals, where each terminal is a problem of its own.
var flat = joint.with(func(p *Policy) {
	// Every sweep is priced, and nothing moves but a block's own duals.
	p.FirstBand, p.Band, p.WarmBand = 0, 0, 0
	p.RoughSweeps, p.FirstEpochs, p.MinMaxEpochs = 0, 6, 400
	p.ToleranceShare = 0.9
	p.PreciseSweep, p.PreciseInnerBelow, p.PreciseRise = 2, 0, 1e-3
})

// policies holds the constants by loss, and by whether there are internals.
var policies = map[string]struct{ joint, flat Policy }{
	"hinge": {joint.with(func(p *Policy) { p.SampleBand, p.StallFar = -0.03, 0.8 }), flat},
	"squared-hinge": {
		joint.with(func(p *Policy) {
			p.FirstPriced, p.SparsePriced = 2, 2 // its first sweep stays on a sample
			p.FirstBands, p.Band = 3, 0.05
			p.RoughEpochs = 1
		}),
		flat,
	},
	"logistic": {
		joint.with(func(p *Policy) {
			p.Follower, p.Climbs, p.AnewAbove, p.SparsePriced, p.WarmDuals = 0, 0, 0, 2, false
			// With half of the bound momentum from the start lets P rise.
			p.Share, p.MomentumFrom = 0.7, 1
		}),
		flat.with(func(p *Policy) {
			p.FirstInnerShare, p.MinMaxEpochs, p.WarmDuals = true, 0, false // Newton's steps are few
		}),
	},
}

// with returns a copy that change has edited.
func (p Policy) with(change func(*Policy)) Policy {
	change(&p)
	return p
}

// policyOf returns the constants for a job's options. An unknown loss gets the hinge's.
func policyOf(o *Settings, internals bool) Policy {
	by := policies["hinge"]
	if known, ok := policies[o.Loss]; ok {
		by = known
	}
	p := by.flat
	if internals {
		p = by.joint
	}
	if o.Loss == "squared-hinge" && o.C <= softC {
		p.MomentumFrom = 2
	}
	if epochs := o.InnerEpochs; epochs > 0 {
		p.Epochs, p.RoughEpochs = epochs, 0
	}
	return p
}
