package recursive

import "taxon/coordinator/method"

// When the time is up in the middle of a sweep, what nobody has begun is left out, and what
// is there is priced: the job ends with a certificate of the weights that it has by then. It
// overruns by the tasks that are under way, one pass over the data for each terminal without
// any epochs, the sums of the internals, and the writing of the weights.
//
// By the step that is under way:
//
//	solve of a priced sweep   tasks that nobody has only price; the sweep ends as it would
//	solve of another, set     they are left out, and their blocks stay as they were; then all
//	                          terminals are priced at the internals that they were solved at
//	reduce of another         its ranges are left out, its result is dropped; as above
//	guard                     dropped: the certificate of its sweep is known
//	all others                go on: they are what the job ends with

// TimeUp implements method.Driver.
func (d *driver) TimeUp(up bool) method.Late {
	d.state.TimeUp = up
	switch {
	case !up:
	case d.cuts():
		return method.LateShort
	case d.leaves():
		return method.LateLeave
	}
	return method.LateRun
}

// cuts says whether tasks of the step under way can price without solving.
func (d *driver) cuts() bool { return d.Stage == stageSolve && d.Price }

// leaves says whether tasks of the step under way can be left out.
func (d *driver) leaves() bool {
	switch d.Stage {
	case stageSolve, stageReduce:
		return !d.Price
	case stageSet, stageSafeguard:
		return true
	}
	return false
}

// shorten has a job whose time is up, and that stands between two steps, solve nothing more.
func (d *driver) shorten() {
	switch {
	case !d.state.TimeUp:
	case d.Stage == stageSolve, d.Stage == stageSet, d.Stage == stageReduce && !d.Price:
		d.priceNow()
	}
}

// priceNow goes to the pricing of the terminals as they are, in a sweep that is not priced so far.
func (d *driver) priceNow() {
	d.Stage, d.Price = stagePrice, true
	d.Primal, d.Dual, d.Inner = 0, 0, 0
}

// Resume implements method.Driver. A job that stands before a sweep may have to price it, or
// need not any more.
func (d *driver) Resume(retarget bool) {
	if retarget {
		d.Aim = 0 // it was another tolerance's
	}
	switch {
	case d.Stage == stageSolve, d.Stage == stageSet && d.Set == 0:
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
	if support := d.rule() == "support"; d.objectiveRose() && support {
		d.Stage = stageSafeguard
		return
	}
	d.Stage, d.Price = stageReduce, false
}
