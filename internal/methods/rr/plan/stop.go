package plan

import (
	"math"

	"taxon/coordinator/method"
)

// certify makes the sums of a priced sweep the last certificate, and adapts the inner solves to it.
// It returns an error if P or the gap is not finite.
func (d *driver) certify() error {
	// Without a bound, the gap that inner solves aim at follows from their own gaps.
	if d.noBound {
		d.Dual = d.Primal - max(d.Inner, float64(d.gap*d.Primal))
	}
	gap := method.RelativeGap(d.Primal, d.Dual)
	if err := method.CheckFinite(d.Primal, gap); err != nil {
		return err
	}
	now := method.Certificate{Objective: d.Primal, Dual: d.Dual, Gap: gap, PrimalOnly: d.noBound}
	if limit := d.p.StationaryShare * math.Abs(now.Objective); d.Certified &&
		math.Abs(now.Objective-d.Last.Objective) <= limit && math.Abs(now.Dual-d.Last.Dual) <= limit {
		d.Stationary++
	} else {
		d.Stationary = 0
	}
	if d.Certified && now.Objective > d.Last.Objective {
		d.Climbs++
	} else {
		d.Climbs = 0
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

// aim predicts the next gaps by the rate at which the gap fell since the last certificate, and sets
// Aim to the first of the next three sweeps that should get below the tolerance. It uses square
// roots only, because they are rounded alike on every machine, so a decrease over three sweeps
// counts as one over four.
func (d *driver) aim(gap float64) {
	d.Aim = 0
	if !d.Certified || d.LastSweep == 0 || !(gap < d.Last.Gap) || d.Sweep < d.p.PriceSecond {
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

// adapt sets how far the inner solves of the coming sweeps go. rise is the rise of D since the last
// certificate. It is infinite at the first one.
func (d *driver) adapt(rise float64) {
	if d.noBound {
		d.Precise = d.Precise || d.gap < d.p.PreciseBelow && d.Sweep > d.p.NoBoundSweeps || d.Stationary > 0
		return
	}
	// A warm start prices more sweeps than others, and the limit would grow without bound.
	if d.Inner > d.p.SlowShare*(d.Primal-d.Dual) && d.Sweep > d.p.SlowFrom && (d.p.regular(d.Sweep) || !d.WarmStarted) {
		d.MaxInner = min(2*max(d.MaxInner, d.p.MaxEpochs), d.p.EpochLimit)
	}
	if d.Best == 0 || d.Last.Gap < d.p.BestShare*d.Best {
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
		stallSweeps /= 2
	}
	gap := d.Primal - d.Dual
	dualStalled := d.p.PreciseRise > 0 && rise < float64(d.p.PreciseRise*gap)
	drifted := d.p.PreciseInnerBelow > 0 && d.Inner > d.p.PreciseInnerShare*gap &&
		(d.Last.Gap <= d.p.PreciseInnerBelow || d.Sweep > d.p.PriceSecond && rise < float64(d.p.PreciseInnerRise*gap))
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

// primalSettled reports whether P hardly falls any more, in a job without a bound.
func (d *driver) primalSettled() bool {
	if d.Sweep < d.MarkSweep+d.p.NoBoundSweeps {
		return false
	}
	moved := math.Abs(d.Mark - d.Last.Objective)
	d.Mark, d.MarkSweep = d.Last.Objective, d.Sweep
	return moved < float64(d.p.NoBoundShare*d.gap*d.Last.Objective)
}

// stalled reports whether the gap fell too little since Policy.PriceEvery sweeps ago, or a little
// earlier. A gap that rose by more than it should have fallen is no stall: the steps were too long,
// and the safeguard or a restart of the momentum deals with that. Additional sweeps that are priced
// for an evaluation do not count, so that the verdict does not come earlier by them.
func (d *driver) stalled() bool {
	if d.noBound || d.Sweep < d.MarkSweep+d.p.PriceEvery {
		return false
	}
	mark, share := d.Mark, d.p.StallShare
	if d.Last.Gap > d.p.StallNear {
		share = d.p.StallFar
	}
	d.Mark, d.MarkSweep = d.Last.Gap, d.Sweep
	return d.Sweep >= d.p.StallFrom && d.Last.Gap > share*mark && share*d.Last.Gap < mark
}

// climbed reports whether P rose so often in a row that the support's curvature must be too small.
func (d *driver) climbed() bool { return d.p.Climbs > 0 && d.Climbs >= d.p.Climbs }

// astray reports whether P rose, once because of the internals or repeatedly for any reason, while
// the gap is still near 1. What such steps left in the internals would shrink slowly by the
// curvature of families, and zero is nearer to the optimum.
func (d *driver) astray() bool {
	return d.p.AnewAbove > 0 && d.Last.Gap > d.p.AnewAbove && !d.WarmStarted && (d.RiseCount > 0 || d.climbed())
}

// When the time is up in the middle of a sweep, the tasks that no worker has begun are skipped or
// shortened, and the job ends with the certificate of its present weights. It overruns the limit by the
// running tasks, one full pass for each terminal, the sums of the internals, and the writing of
// the weights. What happens depends on the current step:
//
//	solve of a priced sweep   remaining tasks run a full pass without epochs; the sweep ends as usual
//	solve of another, set     remaining tasks are skipped and their blocks stay as they are; then all
//	                          terminals are priced at the internals that they were solved at
//	reduce of another         remaining ranges are skipped and the result is dropped; then as above
//	guard                     it is dropped, as the certificate of its sweep is known
//	any other                 it continues, and the job ends with it

// TimeUp implements method.Driver.
func (d *driver) TimeUp(up bool) method.DeadlinePolicy {
	d.state.TimeUp = up
	switch {
	case !up:
	case d.cuts():
		return method.RunReduced
	case d.leaves():
		return method.Skip
	}
	return method.RunFull
}

// cuts reports whether tasks of the current step can price without solving.
func (d *driver) cuts() bool { return d.Stage == stageSolve && d.Price }

// leaves reports whether tasks of the current step can be left out.
func (d *driver) leaves() bool {
	switch d.Stage {
	case stageSolve, stageReduce:
		return !d.Price
	case stageSet, stageSafeguard:
		return true
	}
	return false
}

// shorten makes a job whose time is up price its weights in place of a step that would solve more.
func (d *driver) shorten() {
	switch {
	case !d.state.TimeUp:
	case d.Stage == stageSolve, d.Stage == stageSet, d.Stage == stageReduce && !d.Price:
		d.priceNow()
	}
}

// priceNow moves to the pricing of the present terminals, in a sweep that was not to be priced.
func (d *driver) priceNow() {
	d.Stage, d.Price = stagePrice, true
	d.clearSums()
}

// Resume implements method.Driver. It decides again whether the sweep to come is priced. A job that
// had stopped by a criterion which is no longer met continues. retarget says that the tolerance
// changed.
func (d *driver) Resume(retarget bool) {
	if retarget {
		d.Aim = 0 // it belongs to another tolerance
	}
	switch {
	case d.Stage == stageSolve && d.Piece == 0, d.Stage == stageSet && d.Set == 0:
		d.Price = d.mustPrice()
		return
	case d.Stage < stageEmit || !method.ByCriteria(d.StoppedBy):
		return
	}
	if d.StoppedBy = ""; d.stop() {
		return
	}
	if !d.internals || !d.twoblock() {
		d.openSweep(d.Sweep + 1)
		return
	}
	// The internals' step was dropped, so it is done now.
	if d.stepAgain(d.rule() == "support") {
		d.Stage = stageSafeguard
		return
	}
	d.Stage, d.Price = stageReduce, false
}
