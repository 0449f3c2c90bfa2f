package recursive

import (
	"testing"

	"taxon/coordinator/method"
)

// TestDriftEnds: a job without a certificate ends once P moves by less than --gap/100 over
// ten sweeps, and says that it drifts if its specification does.
func TestDriftEnds(t *testing.T) {
	for drift, want := range map[bool]string{false: method.StoppedByStationary, true: method.StoppedByDrift} {
		o := testDriver(nil)
		o.primal, o.drift, o.gap = true, drift, 1e-2
		for o.StoppedBy == "" && o.Sweep < 1000 { // P falls like 1/sweep towards 1
			commitOK(t, o, figures{Primal: 1 + 1/float64(o.Sweep)})
			if o.Stage == stageReduce {
				commitOK(t, o, figures{Restart: -1})
			}
		}
		if o.StoppedBy != want || o.Sweep < 200 || o.Sweep > 600 || !o.Last.PrimalOnly {
			t.Errorf("drift %v: stopped by %q after %d sweeps, %+v", drift, o.StoppedBy, o.Sweep, o.Last)
		}
	}
}
