package main

import (
	"fmt"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/model"
)

// capsThen says until when a training had which caps.
func capsThen(c model.PastCaps) string {
	s := fmt.Sprintf("--gap %g", c.Gap)
	if c.MaxSweeps > 0 {
		s += fmt.Sprintf(" --max-sweeps %d", c.MaxSweeps)
	}
	if c.MaxSeconds > 0 {
		s += fmt.Sprintf(" --max-time %g", c.MaxSeconds)
	}
	return s + fmt.Sprintf(" up to sweep %d", c.Sweep)
}

// midst says how an earlier sweep can have been better.
const midst = "the time was up in the midst of a later one"

// aboveGap says why a training ended above the gap asked for, and what to do: more says how
// to raise a flag and go on.
func aboveGap(r *model.Report, gap float64, more func(flag string) string) string {
	what := ""
	switch r.StoppedBy {
	case "max_sweeps":
		what = more("--max-sweeps")
	case "max_time":
		what = more("--max-time")
	case "stationary":
		what = "the gap had stopped falling, so more sweeps would not help; the model is complete, and the gap told is its own; a smaller C, unit-length instances, or --schedule parity may reach a lower one"
	}
	if r.Gap == nil {
		return fmt.Sprintf("stopped by %s: %s", r.StoppedBy, what)
	}
	if b := r.Better; b != nil {
		what = fmt.Sprintf("sweep %d had %.3g, and %s, so a little more time does better: %s", b.Sweep, b.Gap, midst, what)
	}
	return fmt.Sprintf("stopped by %s at gap %.3g, above the %.3g asked for: %s", r.StoppedBy, *r.Gap, gap, what)
}

// moreOf says how to go on with a finished model: the duals that it had reached are gone.
func (o *trainOptions) moreOf(flag string) string {
	if o.Threshold > 0 || !registry.Has(o.Job.GetMethod(), method.WarmStart.Name) {
		return "to train anew raise " + flag + " and add --force"
	}
	return fmt.Sprintf("to begin at its weights raise %s, add --warm-start %s and choose another --out; --force trains anew", flag, o.Out)
}
