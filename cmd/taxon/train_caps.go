package main

import "taxon/internal/model"

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
	case t.o.warm != "" || m.Pruned != nil:
		how = "choose another --out"
	}
	return usagef("%s: holds this training, finished with another cap (%s; stopped by %s): %s, or use --force to train anew",
		t.o.out, diff, m.Report.StoppedBy, how)
}
