package recursive

import (
	"math"

	"taxon/coordinator/method"
)

// certify closes the sums of a pricing sweep.
func (d *driver) certify() error {
	if d.noBound { // what the inner solves aim at follows from their own gaps
		d.Dual = d.Primal - max(d.Inner, float64(d.gap*d.Primal))
	}
	gap := 0.0
	if d.Primal != d.Dual {
		// Rounding may put the dual a few units above the primal; a gap is never negative.
		gap = max((d.Primal-d.Dual)/d.Primal, 0)
	}
	if math.IsNaN(gap) || math.IsInf(gap, 0) || math.IsInf(d.Primal, 0) {
		return errNotFinite
	}
	now := method.Certificate{Objective: d.Primal, Dual: d.Dual, Gap: gap, PrimalOnly: d.noBound}
	if limit := d.p.StationaryShare * math.Abs(now.Objective); d.Certified &&
		math.Abs(now.Objective-d.Last.Objective) <= limit && math.Abs(now.Dual-d.Last.Dual) <= limit {
		d.Stationary++
	} else {
		d.Stationary = 0
	}
	d.aim(gap)
	rise := math.Inf(1)
	if d.Certified {
		rise = now.Dual - d.Last.Dual
	}
	d.Last, d.LastSweep = now, d.Sweep
	d.Certified = true
	d.adapt(rise)
	return nil
}

// aim expects the gap to go on falling as it fell since the last certificate, and notes the
// sweep, one of the next three, at which it would be below the tolerance. Roots alone, as
// they are rounded alike everywhere; what fell over three sweeps is taken to have over four.
func (d *driver) aim(gap float64) {
	d.Aim = 0
	if !d.Certified || d.LastSweep == 0 || !(gap < d.Last.Gap) || d.Sweep < d.p.AimFrom {
		return
	}
	ratio := gap / d.Last.Gap
	for span := d.Sweep - d.LastSweep; span > 1; span = (span + 1) / 2 {
		ratio = math.Sqrt(ratio)
	}
	for n := uint32(1); n <= 3; n++ {
		if gap *= ratio; gap <= float64(d.p.AimShare*d.gap) {
			d.Aim = d.Sweep + n
			return
		}
	}
}

// adapt sets how hard the inner solves of the coming sweeps try, D having risen by so much.
func (d *driver) adapt(rise float64) {
	if d.noBound {
		d.Precise = d.Precise || d.gap < d.p.PreciseBelow && d.Sweep > d.p.NoBoundSweeps || d.Stationary > 0
		return
	}
	// A warm start prices more sweeps than others: the bound would run away.
	if d.Inner > d.p.SlowShare*(d.Primal-d.Dual) && d.Sweep > d.p.SlowFrom && (regular(d.Sweep) || !d.WarmStarted) {
		d.MaxInner = min(2*max(d.MaxInner, d.p.MaxEpochs), d.p.EpochLimit)
	}
	if d.Best == 0 || d.Last.Gap < 0.8*d.Best {
		d.Best, d.BestSweep, d.Worst = d.Last.Gap, d.Sweep, 0
	}
	d.Worst = max(d.Worst, d.Last.Gap)
	since := d.Sweep - d.BestSweep
	if !d.Safeguarded && (since >= d.p.CycleSweeps && d.Worst > d.p.CycleWorse*d.Best || since >= d.p.SafeguardSweeps) {
		d.Safeguarded, d.BestSweep = true, d.Sweep
	}
	wanted := d.gap < d.p.PreciseBelow && d.Last.Gap <= d.p.PreciseFrom && d.Sweep >= d.p.PreciseSweep
	stallSweeps := d.p.PreciseStall
	if d.Best <= d.p.PreciseFrom {
		stallSweeps = d.p.PreciseStallNear
	}
	gap := d.Primal - d.Dual
	dualStalled := d.p.PreciseRise > 0 && rise < float64(d.p.PreciseRise*gap)
	drifted := d.p.PreciseInnerBelow > 0 && d.Last.Gap <= d.p.PreciseInnerBelow && d.Inner > d.p.PreciseInnerShare*gap
	if wanted || dualStalled || drifted || d.Stationary > 0 || d.Sweep >= d.BestSweep+stallSweeps {
		d.Precise = true
	}
}

// stop applies the stopping rules to a priced sweep, the tolerance first.
func (d *driver) stop() bool {
	switch {
	case d.noBound && d.primalSettled():
		d.StoppedBy = method.StoppedByStationary
	case !d.noBound && d.Last.Gap <= d.gap:
		d.StoppedBy = method.StoppedByGap
	case d.maxSweeps > 0 && d.Sweep >= d.maxSweeps:
		d.StoppedBy = method.StoppedByMaxSweeps
	case d.state.TimeUp:
		d.StoppedBy = method.StoppedByMaxTime
	case d.Stationary >= d.p.StationarySweeps, d.Sweep >= d.BestSweep+d.p.GiveUpSweeps && d.Sweep >= 2*d.BestSweep:
		d.StoppedBy = method.StoppedByStationary
	default:
		return false
	}
	return true
}

// primalSettled says, where no bound is known, whether P has all but stopped moving.
func (d *driver) primalSettled() bool {
	if d.Sweep < d.MarkSweep+d.p.NoBoundSweeps {
		return false
	}
	moved := math.Abs(d.Mark - d.Last.Objective)
	d.Mark, d.MarkSweep = d.Last.Objective, d.Sweep
	return moved < float64(d.p.NoBoundShare*d.gap*d.Last.Objective)
}

// stalled compares the gap with the one that was priced Policy.StallEvery sweeps ago, or a little
// earlier: sweeps that are priced for an evaluation do not hasten the verdict.
func (d *driver) stalled() bool {
	if d.noBound || d.Sweep < d.MarkSweep+d.p.StallEvery {
		return false
	}
	mark := d.Mark
	d.Mark, d.MarkSweep = d.Last.Gap, d.Sweep
	return mark > 0 && d.Last.Gap > d.p.StallShare*mark && d.Sweep >= d.p.StallFrom
}
