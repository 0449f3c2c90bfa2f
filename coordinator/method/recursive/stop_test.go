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

// TestStall: steps take the curvature of whole families once the gap has all but stopped falling. A gap
// that rises far is another matter.
func TestStall(t *testing.T) {
	for _, c := range []struct {
		gap  float64 // from sweep 16 on; 0.3 before
		want bool
	}{{0.2, false}, {0.25, true}, {0.35, true}, {0.5, false}, {5, false}} {
		d := testDriver(nil)
		for d.Sweep <= 16 {
			gap := 0.3
			if d.Sweep == 16 {
				gap = c.gap
			}
			commitOK(t, d, figures{Primal: 1, Dual: 1 - gap})
			if d.Stage == stageReduce {
				commitOK(t, d, figures{Restart: -1})
			}
		}
		if d.Family != c.want {
			t.Errorf("gap 0.3, then %v: family %v", c.gap, d.Family)
		}
	}
}
