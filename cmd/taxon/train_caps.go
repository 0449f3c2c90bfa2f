package main

import (
	"fmt"
	"slices"

	"taxon/coordinator"
	"taxon/coordinator/method/registry"
	"taxon/internal/engine"
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
	if o.threshold > 0 || !o.startsWarm() {
		return "to train anew raise " + flag + " and add --force"
	}
	return fmt.Sprintf("to begin at its weights raise %s, add --warm-start %s and choose another --out; --force trains anew", flag, o.out)
}

// startsWarm says whether the method can begin at a model's weights.
func (o *trainOptions) startsWarm() bool {
	return !slices.Contains(registry.Refused(o.method), "warm-start")
}

// goOn takes over what a checkpoint says, with the caps that are given now, and tells what
// that is, to be said once its values are there.
func (t *training) goOn(from *engine.Checkpoint) (told string, err error) {
	r, err := from.UpdateStopCriteria(coordinator.StopCriteriaOf(t.spec.GetOptions()))
	if err != nil {
		return "", err
	}
	if !t.o.mr.on() { // whose tasks the coordinator counts all
		if t.usage.before = from.Spent; t.usage.before == 0 { // of an earlier release
			t.usage.before = r.CPUSeconds
		}
	}
	if r.Changed != "" {
		r.Changed = "; " + r.Changed
	}
	return fmt.Sprintf("%s: goes on after sweep %d%s", t.o.out, r.Sweep, r.Changed), nil
}

// withoutCaps are a training's options but for those that say when it ends: they may be
// others when it goes on from its checkpoint.
func withoutCaps(o model.Options) model.Options {
	o.Gap, o.MaxSweeps, o.MaxSeconds = 0, 0, 0
	return o
}

// otherCaps refuses a finished model, in dir, of the same training with another gap, or another
// bound on sweeps or time: the duals that it could have gone on from are gone, its weights are not.
func (t *training) otherCaps(m *model.Manifest, dir string) error {
	now := t.modelOptions()
	diff := optionsDiffer(m.Options, now)
	if diff == "" || optionsDiffer(withoutCaps(m.Options), withoutCaps(now)) != "" {
		return nil
	}
	how := "to begin at its weights add --warm-start " + dir + " and choose another --out"
	switch {
	case dir != t.o.out:
		how = "use the same, for its cut-offs are still to be fitted"
	case t.o.warm != "" || m.Pruned != nil || !t.o.startsWarm():
		how = "choose another --out"
	}
	return usagef("%s: holds this training, finished with another cap (%s; stopped by %s): %s, or use --force to train anew",
		t.o.out, diff, m.Report.StoppedBy, how)
}
