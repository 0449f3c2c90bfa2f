package machine

import (
	"math"

	taxonv1 "taxon/proto/taxon/v1"
)

// The remaining time of a job is extrapolated from its certificates. Two lines are fitted to those
// of the last half of the sweeps. The first assumes that the gap falls by the same factor in each
// sweep (a line through its logarithm), the second that it falls as a power of the number of sweeps
// (a line through both logarithms). Convergence slows down, but rarely as far as the power law, so
// the first fit gives the low end of the estimate and the second the high end. Both give sweeps,
// which are taken to last as long as recent ones.

// point is a certificate: the gap, or what was left, after a number of sweeps and seconds.
type point struct{ sweep, seconds, gap float64 }

// left is an estimate of the seconds until a job ends. The zero value means that there is no
// estimate.
type left struct{ low, likely, high float64 }

// vague is the largest ratio of the ends of a range. A wider range is of no use and is not shown.
const vague = 12

// between returns the range with these ends. The likely value is their geometric mean.
func between(low, high float64) left {
	return left{low: low, likely: math.Sqrt(low * high), high: high}
}

// atMost returns the range with each value at most seconds. The zero range becomes seconds itself.
func (l left) atMost(seconds float64) left {
	seconds = max(seconds, 0)
	if l == (left{}) {
		return left{seconds, seconds, seconds}
	}
	return left{min(l.low, seconds), min(l.likely, seconds), min(l.high, seconds)}
}

// after returns what is left of a range when some seconds of it have passed. Its ends do not fall
// below the floors given, because the job is not done yet.
func (l left) after(seconds, low, high float64) left {
	if l == (left{}) {
		return l
	}
	return between(max(l.low-seconds, low), max(l.high-seconds, high))
}

// extrapolate estimates the time from the last point until the gap is at most target. The points
// are in order of their sweeps.
func extrapolate(points []point, target float64) left {
	recent := latest(points)
	if len(recent) < 3 {
		return left{}
	}
	last, before := recent[len(recent)-1], recent[len(recent)-2]
	each := perSweep(recent)
	if last.gap <= target { // what follows is the writing of the weights
		return between(each/4, each)
	}
	var sweeps, logSweeps, logGaps []float64
	for _, p := range recent {
		sweeps, logSweeps, logGaps = append(sweeps, p.sweep), append(logSweeps, math.Log(p.sweep)),
			append(logGaps, math.Log(p.gap))
	}
	factor, power := slope(sweeps, logGaps), slope(logSweeps, logGaps)
	if factor >= 0 || power >= 0 {
		return left{}
	}
	down := math.Log(target / last.gap)
	low, high := down/factor, last.sweep*math.Expm1(down/power)
	// The gap is known every so many sweeps only, and the weights are written in the end.
	priced := last.sweep - before.sweep
	low, high = max(math.Ceil(low), 1), math.Ceil(high/priced)*priced+1
	if high > vague*low {
		return left{}
	}
	return between(low*each, high*each)
}

// latest returns the points of the last half of the sweeps, and at least three.
func latest(points []point) []point {
	from := max(len(points)-3, 0)
	for from > 0 && points[from-1].sweep >= points[len(points)-1].sweep/2 {
		from--
	}
	return points[from:]
}

// perSweep estimates the seconds of one sweep: the mean of the recent sweeps or of the last two
// intervals between certificates, whichever is longer.
func perSweep(recent []point) float64 {
	each := func(a, b point) float64 { return (b.seconds - a.seconds) / (b.sweep - a.sweep) }
	n := len(recent)
	return max(each(recent[0], recent[n-1]), each(recent[n-3], recent[n-1]))
}

// slope returns the slope of the least-squares line through (x, y). It is 0 if all x are equal.
func slope(x, y []float64) float64 {
	n := float64(len(x))
	var mx, my, xx, xy float64
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
	}
	if xx == 0 {
		return 0
	}
	return xy / xx
}

// eta estimates the seconds until a job ends. There is no estimate while the job waits or can do
// nothing.
func (m *Machine) eta(j *job, now Tick) left {
	if j.State != taxonv1.JobState_JOB_STATE_RUNNING || m.waitsFor(j) != "" {
		return left{}
	}
	points, spent := j.certified(), j.spentAt(now).Seconds()
	switch j.stage {
	case stageDigest:
		// reading the weights takes about as long as writing them did
		wrote := spent
		if n := len(points); n > 0 {
			wrote -= points[n-1].seconds
		}
		return between(wrote/4, 2*wrote).after((now - j.pausedAt).Seconds(), wrote/10, wrote/2)
	case stageTrain, stageEvaluate:
	default:
		return left{}
	}
	p := j.progress()
	out, each := extrapolate(points, p.Tolerance), 0.0
	if n := len(points); n > 0 {
		each = spent / max(float64(j.Committed), 1)
		out = out.after(spent-points[n-1].seconds, each/8, each/2)
	}
	if cap := p.MaxSweeps; cap > 0 && j.Committed > 0 {
		out = out.atMost(float64(cap-min(j.Committed, cap)+1) * spent / float64(j.Committed))
	}
	if limit := j.run.MaxSeconds; limit > 0 {
		out = out.atMost(limit - spent + each)
	}
	return out
}

// certified returns the certificates of the job's trace. For those without a gap it uses what was
// left.
func (j *job) certified() (out []point) {
	for n := range j.Trace {
		c := j.Trace[n].Certificate
		if c == nil {
			continue
		}
		gap := c.Gap
		if c.PrimalOnly {
			gap = c.Left
		}
		if gap > 0 {
			out = append(out, point{float64(j.Trace[n].Sweep), j.Trace[n].Seconds, gap})
		}
	}
	return out
}
