package recursive

import (
	"math"

	"taxon/coordinator/method"
)

// certify closes the sums of a pricing sweep.
func (o *driver) certify() error {
	if o.noBound { // what the inner solves aim at follows from their own gaps
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
	now := method.Certificate{Objective: o.Primal, Dual: o.Dual, Gap: gap, PrimalOnly: o.noBound}
	if limit := o.p.StationaryShare * math.Abs(now.Objective); o.Certified &&
		math.Abs(now.Objective-o.Last.Objective) <= limit && math.Abs(now.Dual-o.Last.Dual) <= limit {
		o.Stationary++
	} else {
		o.Stationary = 0
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

// aim expects the gap to go on falling as it fell since the last certificate, and notes the
// sweep, one of the next three, at which it would be below the tolerance. Roots alone, as
// they are rounded alike everywhere; what fell over three sweeps is taken to have over four.
func (o *driver) aim(gap float64) {
	o.Aim = 0
	if !o.Certified || o.LastSweep == 0 || !(gap < o.Last.Gap) || o.Sweep < o.p.AimFrom {
		return
	}
	ratio := gap / o.Last.Gap
	for span := o.Sweep - o.LastSweep; span > 1; span = (span + 1) / 2 {
		ratio = math.Sqrt(ratio)
	}
	for n := uint32(1); n <= 3; n++ {
		if gap *= ratio; gap <= float64(o.p.AimShare*o.gap) {
			o.Aim = o.Sweep + n
			return
		}
	}
}

// adapt sets how hard the inner solves of the coming sweeps try, D having risen by so much.
func (o *driver) adapt(rise float64) {
	if o.noBound {
		o.Precise = o.Precise || o.gap < o.p.PreciseBelow && o.Sweep > o.p.SettleSweeps || o.Stationary > 0
		return
	}
	// A warm start prices more sweeps than others: the bound would run away.
	if o.Inner > o.p.SlowShare*(o.Primal-o.Dual) && o.Sweep > o.p.SlowFrom && (regular(o.Sweep) || !o.WarmStarted) {
		o.MaxInner = min(2*max(o.MaxInner, o.p.MaxEpochs), o.p.EpochLimit)
	}
	if o.Best == 0 || o.Last.Gap < 0.8*o.Best {
		o.Best, o.BestSweep, o.Worst = o.Last.Gap, o.Sweep, 0
	}
	o.Worst = max(o.Worst, o.Last.Gap)
	since := o.Sweep - o.BestSweep
	if !o.Safeguarded && (since >= o.p.CycleSweeps && o.Worst > o.p.CycleWorse*o.Best || since >= o.p.Patience) {
		o.Safeguarded, o.BestSweep = true, o.Sweep
	}
	wanted := o.gap < o.p.PreciseBelow && o.Last.Gap <= o.p.PreciseFrom && o.Sweep >= o.p.PreciseSweep
	patience := o.p.StandSweeps
	if o.Best <= o.p.PreciseFrom {
		patience = o.p.CloseSweeps
	}
	gap := o.Primal - o.Dual
	stands := o.p.StandRise > 0 && rise < float64(o.p.StandRise*gap)
	drifted := o.p.DriftBelow > 0 && o.Last.Gap <= o.p.DriftBelow && o.Inner > o.p.DriftShare*gap
	if wanted || stands || drifted || o.Stationary > 0 || o.Sweep >= o.BestSweep+patience {
		o.Precise = true
	}
}

// stop applies the stopping rules to a priced sweep, the tolerance first.
func (o *driver) stop() bool {
	switch {
	case o.noBound && o.primalSettled():
		o.StoppedBy = method.StoppedByStationary
	case !o.noBound && o.Last.Gap <= o.gap:
		o.StoppedBy = method.StoppedByGap
	case o.maxSweeps > 0 && o.Sweep >= o.maxSweeps:
		o.StoppedBy = method.StoppedByMaxSweeps
	case o.state.TimeUp:
		o.StoppedBy = method.StoppedByMaxTime
	case o.Stationary >= o.p.StationarySweeps, o.Sweep >= o.BestSweep+o.p.GiveUpSweeps && o.Sweep >= 2*o.BestSweep:
		o.StoppedBy = method.StoppedByStationary
	default:
		return false
	}
	return true
}

// primalSettled says, where no bound is known, whether P has all but stopped moving.
func (o *driver) primalSettled() bool {
	if o.Sweep < o.MarkSweep+o.p.SettleSweeps {
		return false
	}
	moved := math.Abs(o.Mark - o.Last.Objective)
	o.Mark, o.MarkSweep = o.Last.Objective, o.Sweep
	return moved < float64(o.p.SettleShare*o.gap*o.Last.Objective)
}

// stalled compares the gap with the one that was priced o.p.StallEvery sweeps ago, or a little
// earlier: sweeps that are priced for an evaluation do not hasten the verdict.
func (o *driver) stalled() bool {
	if o.noBound || o.Sweep < o.MarkSweep+o.p.StallEvery {
		return false
	}
	mark := o.Mark
	o.Mark, o.MarkSweep = o.Last.Gap, o.Sweep
	return mark > 0 && o.Last.Gap > o.p.StallShare*mark && o.Sweep >= o.p.StallFrom
}
