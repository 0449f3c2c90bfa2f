package coordinator

import "math"

// certify closes the sums of a pricing sweep.
func (o *outer) certify() error {
	if o.primal { // what the inner solves aim at follows from their own gaps
		o.Dual = o.Primal - max(o.Inner, float64(o.gap*o.Primal))
	}
	gap := 0.0
	if o.Primal != o.Dual {
		// Rounding may put the dual a few units above the primal; a gap is never negative.
		gap = max((o.Primal-o.Dual)/o.Primal, 0)
	}
	if math.IsNaN(gap) || math.IsInf(gap, 0) || math.IsInf(o.Primal, 0) {
		return errNotFinite
	}
	now := certificate{Objective: o.Primal, Dual: o.Dual, Gap: gap, PrimalOnly: o.primal}
	if limit := stillTolerance * math.Abs(now.Objective); o.Certified &&
		math.Abs(now.Objective-o.Last.Objective) <= limit && math.Abs(now.Dual-o.Last.Dual) <= limit {
		o.Still++
	} else {
		o.Still = 0
	}
	o.aim(gap)
	rise := math.Inf(1)
	if o.Certified {
		rise = now.Dual - o.Last.Dual
	}
	o.Last, o.LastSweep = now, o.Sweep
	o.Certified = true
	o.adapt(rise)
	return nil
}

// priced says whether a sweep passes over all data in float64 and yields a certificate:
// the first ones often, as their working sets are guesses, then every fourth, and the one
// that is expected to reach the tolerance. Large data's first guesses of the squared hinge
// foresee the biases (mapper/sample.go): the third and sixth sweep do without.
func (o *outer) priced(sweep uint32) bool {
	if sweep == o.Aim {
		return true
	}
	if o.squared && !o.Begun {
		if sweep == 1 {
			return false
		}
		if o.sampled {
			return sweep == 2 || sweep%4 == 0
		}
	}
	return o.Begun && sweep <= begunPriced || regular(sweep)
}

// regular says whether a job from nothing prices the sweep, whatever its gap.
func regular(sweep uint32) bool {
	return sweep <= 4 || sweep <= 8 && sweep%2 == 0 || sweep%4 == 0
}

// aim expects the gap to go on falling as it fell since the last certificate, and notes the
// sweep, one of the next three, at which it would be below the tolerance. Roots alone, as
// they are rounded alike everywhere; what fell over three sweeps is taken to have over four.
func (o *outer) aim(gap float64) {
	o.Aim = 0
	if !o.Certified || o.LastSweep == 0 || !(gap < o.Last.Gap) || o.Sweep < aimFrom {
		return
	}
	ratio := gap / o.Last.Gap
	for span := o.Sweep - o.LastSweep; span > 1; span = (span + 1) / 2 {
		ratio = math.Sqrt(ratio)
	}
	for n := uint32(1); n <= 3; n++ {
		if gap *= ratio; gap <= float64(aimShare*o.gap) {
			o.Aim = o.Sweep + n
			return
		}
	}
}

// adapt sets how hard the inner solves of the coming sweeps try, D having risen by so much.
func (o *outer) adapt(rise float64) {
	if o.primal {
		o.Precise = o.Precise || o.gap < preciseBelow && o.Sweep > restSweeps || o.Still > 0
		return
	}
	// A begun job prices more sweeps than others: the bound would run away.
	if o.Inner > slowShare*(o.Primal-o.Dual) && o.Sweep > roughSweeps && (regular(o.Sweep) || !o.Begun) {
		o.MaxInner = min(2*max(o.MaxInner, maxEpochs), mostEpochs)
	}
	if o.Best == 0 || o.Last.Gap < 0.8*o.Best {
		o.Best, o.BestSweep, o.Worst = o.Last.Gap, o.Sweep, 0
	}
	o.Worst = max(o.Worst, o.Last.Gap)
	since := o.Sweep - o.BestSweep
	if !o.Earnest && (since >= cycleSweeps && o.Worst > cycleWorse*o.Best || since >= patience) {
		o.Earnest, o.BestSweep = true, o.Sweep
	}
	wanted := o.gap < preciseBelow && o.Last.Gap <= preciseFrom && (!o.flat || o.Sweep >= flatPreciseFrom)
	patience := uint32(standSweeps)
	if o.Best <= preciseFrom {
		patience = closeSweeps
	}
	gap := o.Primal - o.Dual
	drifted := !o.smooth && (o.flat && rise < float64(flatRise*gap) || !o.flat && o.Last.Gap <= driftBelow && o.Inner > driftShare*gap)
	if wanted || drifted || o.Still > 0 || o.Sweep >= o.BestSweep+patience {
		o.Precise = true
	}
}

// stop applies the stopping rules to a priced sweep, the tolerance first.
func (o *outer) stop() bool {
	switch {
	case o.primal && o.rests():
		o.StoppedBy = o.atRest()
	case !o.primal && o.Last.Gap <= o.gap:
		o.StoppedBy = stoppedByGap
	case o.maxSweeps > 0 && o.Sweep >= o.maxSweeps:
		o.StoppedBy = stoppedBySweeps
	case o.Force:
		o.StoppedBy = stoppedByTime
	case o.Still >= stillSweeps, o.Sweep >= o.BestSweep+giveUpSweeps && o.Sweep >= 2*o.BestSweep:
		o.StoppedBy = o.atRest()
	default:
		return false
	}
	return true
}

// atRest is the reason why a job ends that more sweeps would hardly change. Where P has no least value it only falls ever more slowly, while a component's weights grow.
func (o *outer) atRest() string {
	if o.drift {
		return stoppedByDrift
	}
	return stoppedByRest
}

// restSweeps and restShare: a job without a certificate ends when P moved by less than
// this share of the tolerance over so many sweeps.
const (
	restSweeps = 10
	restShare  = 0.01
)

// rests says so of a job without a certificate, at its priced sweeps.
func (o *outer) rests() bool {
	if o.Sweep < o.MarkSweep+restSweeps {
		return false
	}
	moved := math.Abs(o.Mark - o.Last.Objective)
	o.Mark, o.MarkSweep = o.Last.Objective, o.Sweep
	return moved < float64(restShare*o.gap*o.Last.Objective)
}

// stalled compares the gap with the one that was priced stallEvery sweeps ago, or a little
// earlier: sweeps that are priced for an evaluation do not hasten the verdict.
func (o *outer) stalled() bool {
	if o.primal || o.Sweep < o.MarkSweep+stallEvery {
		return false
	}
	mark := o.Mark
	o.Mark, o.MarkSweep = o.Last.Gap, o.Sweep
	return mark > 0 && o.Last.Gap > stallShare*mark && o.Sweep >= stallFrom
}
