package train

import (
	"fmt"

	"taxon/coordinator/machine"
	"taxon/coordinator/method/registry"
	"taxon/internal/engine"
	"taxon/internal/exit"
	"taxon/internal/model"
)

// goOn takes over what a checkpoint says, with the caps that are given now, and tells what
// that is, to be said once its values are there.
func (t *Training) goOn(from *engine.Checkpoint) (told string, err error) {
	r, err := from.UpdateStopCriteria(machine.StopCriteriaOf(t.Spec.GetOptions()))
	if err != nil {
		return "", err
	}
	if t.o.Elsewhere == nil { // whose tasks the coordinator counts all
		if t.usage.before = from.Spent; t.usage.before == 0 { // of an earlier release
			t.usage.before = r.CPUSeconds
		}
	}
	if r.Changed != "" {
		r.Changed = "; " + r.Changed
	}
	return fmt.Sprintf("%s: goes on after sweep %d%s", t.o.Out, r.Sweep, r.Changed), nil
}

// otherCaps refuses a finished model, in dir, of the same training with another gap, or another
// bound on sweeps or time: the duals that it could have gone on from are gone, its weights are not.
func (t *Training) otherCaps(m *model.Manifest, dir string) error {
	now := t.modelOptions()
	diff := optionsDiffer(m.Options, now, true)
	if diff == "" || optionsDiffer(m.Options, now, false) != "" {
		return nil
	}
	how := "to begin at its weights add --warm-start " + dir + " and choose another --out"
	switch {
	case dir != t.o.Out:
		how = "use the same, for its cut-offs are still to be fitted"
	case t.o.Warm != "" || m.Pruned != nil || !registry.Has(t.o.Job.Method, "warm-start"):
		how = "choose another --out"
	}
	return exit.Usagef("%s: holds this training, finished with another cap (%s; stopped by %s): %s, or use --force to train anew",
		t.o.Out, diff, m.Report.StoppedBy, how)
}
