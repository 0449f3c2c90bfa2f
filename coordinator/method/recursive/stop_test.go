package recursive

import (
	"testing"

	"taxon/coordinator/method"
)

// TestPrimalRests: a job without a bound ends once P moves by less than --gap/100 over ten sweeps.
func TestPrimalRests(t *testing.T) {
	o := testDriver(nil)
	o.noBound, o.gap = true, 1e-2
	for o.StoppedBy == "" && o.Sweep < 1000 { // P falls like 1/sweep towards 1
		commitOK(t, o, figures{Primal: 1 + 1/float64(o.Sweep)})
		if o.Stage == stageReduce {
			commitOK(t, o, figures{Restart: -1})
		}
	}
	if o.StoppedBy != method.StoppedByStationary || o.Sweep < 200 || o.Sweep > 600 || !o.Last.PrimalOnly {
		t.Errorf("stopped by %q after %d sweeps, %+v", o.StoppedBy, o.Sweep, o.Last)
	}
}
