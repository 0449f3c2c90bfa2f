package recursive

import "taxon/coordinator/method"

// When the time is up in the midst of a sweep, what nobody has begun is left out, and what
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
func (o *driver) TimeUp(up bool) method.Late {
	o.state.TimeUp = up
	switch {
	case !up:
	case o.cuts():
		return method.LateShort
	case o.leaves():
		return method.LateLeave
	}
	return method.LateRun
}

// cuts says whether tasks of the step under way can price without solving.
func (o *driver) cuts() bool { return o.Stage == stageSolve && o.Price }

// leaves says whether tasks of the step under way can be left out.
func (o *driver) leaves() bool {
	switch o.Stage {
	case stageSolve, stageReduce:
		return !o.Price
	case stageSet, stageSafeguard:
		return true
	}
	return false
}

// shorten has a job whose time is up, and that stands between two steps, solve nothing more.
func (o *driver) shorten() {
	switch {
	case !o.state.TimeUp:
	case o.Stage == stageSolve, o.Stage == stageSet, o.Stage == stageReduce && !o.Price:
		o.priceNow()
	}
}

// priceNow goes to the pricing of the terminals as they are, in a sweep that is not priced so far.
func (o *driver) priceNow() {
	o.Stage, o.Price = stagePrice, true
	o.Primal, o.Dual, o.Inner = 0, 0, 0
}

// Reopen implements method.Driver. A job that stands before a sweep may have to price it, or
// need not any more.
func (o *driver) Reopen(retarget bool) {
	if retarget {
		o.Aim = 0 // it was another tolerance's
	}
	switch {
	case o.Stage == stageSolve, o.Stage == stageSet && o.Set == 0:
		o.Price = o.mustPrice()
		return
	case o.Stage < stageEmit || !method.ByCriteria(o.StoppedBy):
		return
	}
	if o.StoppedBy = ""; o.stop() {
		return
	}
	if !o.internals || !o.twoblock() {
		o.openSweep(o.Sweep + 1)
		return
	}
	// The internals' step was dropped, so it is done now.
	if support := o.rule() == "support"; o.judge() && support {
		o.Stage = stageSafeguard
		return
	}
	o.Stage, o.Price = stageReduce, false
}
