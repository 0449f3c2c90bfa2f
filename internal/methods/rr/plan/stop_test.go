package plan

import (
	"testing"

	"taxon/coordinator/method"
)

// TestPrimalRests checks that a job without a bound ends once P moves by less than --gap/100 over
// ten sweeps.
func TestPrimalRests(t *testing.T) {
	o := testDriver(nil)
	o.noBound, o.gap = true, 1e-2
	for o.StoppedBy == "" && o.Sweep < 1000 { // P decreases like 1/sweep towards 1
		commitOK(t, o, figures{Primal: 1 + 1/float64(o.Sweep)})
		if o.Stage == stageReduce {
			commitOK(t, o, figures{Restart: -1})
		}
	}
	if o.StoppedBy != method.StoppedByStationary || o.Sweep < 200 || o.Sweep > 600 || !o.Last.PrimalOnly {
		t.Errorf("stopped by %q after %d sweeps, %+v", o.StoppedBy, o.Sweep, o.Last)
	}
}

// TestStall checks that steps use the curvature of whole families once the gap has almost stopped
// decreasing, with the hinge sooner near the optimum. A gap that increases far has another effect.
func TestStall(t *testing.T) {
	for _, c := range []struct {
		loss        string
		before, gap float64 // from sweep 16 on
		want        bool
	}{
		{"hinge", 0.3, 0.2, false}, {"hinge", 0.3, 0.23, false}, {"hinge", 0.3, 0.25, true}, {"hinge", 0.3, 0.35, true},
		{"hinge", 0.3, 0.5, false}, {"hinge", 0.3, 5, false}, {"hinge", 3e-3, 2e-3, false}, {"hinge", 3e-3, 2.3e-3, true},
		{"squared-hinge", 0.3, 0.2, false}, {"squared-hinge", 0.3, 0.23, true},
	} {
		d := testDriver(func(o *Settings) { o.Loss = c.loss })
		for d.Sweep <= 16 {
			gap := c.before
			if d.Sweep == 16 {
				gap = c.gap
			}
			commitOK(t, d, figures{Primal: 1, Dual: 1 - gap})
			if d.Stage == stageReduce {
				commitOK(t, d, figures{Restart: -1})
			}
		}
		if d.Family != c.want {
			t.Errorf("%s, gap %v, then %v: family %v", c.loss, c.before, c.gap, d.Family)
		}
	}
}

// TestSupportFails checks that steps use the curvature of whole families once that of the support
// has increased P. If P has diverged, the internals begin again at zero.
func TestSupportFails(t *testing.T) {
	for _, c := range []struct {
		name         string
		loss         string
		warm         bool
		inner        float64   // share of P
		primal, dual []float64 // of sweeps 1, 2, ...
		family, anew bool
	}{
		{name: "P and the gap fall", primal: []float64{9, 8, 7}, dual: []float64{-9, 0, 1}},
		{name: "the gap rises", primal: []float64{9, 8, 7}, dual: []float64{-9, 0, -1}},
		{name: "P rises", primal: []float64{9, 8, 8.1}, dual: []float64{0, 7, 7}, family: true},
		{name: "P rises far from the optimum", primal: []float64{9, 8, 8.1}, dual: []float64{-9, 0, 1}, family: true,
			anew: true},
		{name: "the same, warm", warm: true, primal: []float64{9, 8, 8.1}, dual: []float64{-9, 0, 1}, family: true},
		{name: "the same, logistic", loss: "logistic", primal: []float64{9, 8, 8.1}, dual: []float64{-9, 0, 1}},
		{name: "P rises by inner gaps", inner: 0.5, primal: []float64{9, 8, 8.1}, dual: []float64{-9, 0, 1}},
		{name: "it does twice", inner: 0.5, primal: []float64{9, 8, 8.1, 8.2}, dual: []float64{-9, 0, 1, 1}, family: true,
			anew: true},
		{name: "it does, then falls, then does", inner: 0.5, primal: []float64{9, 8, 8.1, 8, 8.1}, dual: []float64{-9, 0, 1,
			1, 1}},
	} {
		d := testDriver(func(o *Settings) { o.Loss = c.loss })
		if c.warm {
			d.WarmStart([]string{Dual})
		}
		anew := false
		for n, primal := range c.primal {
			for !d.Price { // the full pass of sweep 5
				commitOK(t, d)
			}
			commitOK(t, d, figures{Primal: primal, Dual: c.dual[n], InnerGap: c.inner * primal})
			out := commitOK(t, d, figures{Restart: -1})
			if d.Stage == stageSafeguard {
				s, _ := d.Step()
				var r Reduce
				if err := method.Decode(s.Tasks[0].Params, &r); err != nil || takesX(out) {
					t.Fatal(err, out)
				}
				if r.Rule == "zero" {
					if anew = true; d.RiseCount != 0 || d.Accepted != 0 {
						t.Errorf("%s: begun anew, but %d rises above %v", c.name, d.RiseCount, d.Accepted)
					}
				}
				commitOK(t, d, figures{Restart: -1})
			}
		}
		if d.Family != c.family || anew != c.anew || d.Anew {
			t.Errorf("%s: family %v, anew %v", c.name, d.Family, anew)
		}
	}
}

// TestFollower checks that terminals without support count a little in steps by the support, less
// so near the optimum, and not at all in other steps.
func TestFollower(t *testing.T) {
	for _, c := range []struct {
		loss      string
		stiffness string
		warm      bool
		gap, want float64 // gap 0: no certificate so far
	}{
		{"hinge", "support", false, 0, 0.01},
		{"hinge", "support", false, 4, 0.01},
		{"hinge", "support", false, 0.25, 0.005},
		{"hinge", "support", true, 0, 0},
		{"hinge", "support", true, 0.25, 0.005},
		{"squared-hinge", "support", false, 0.25, 0.005},
		{"logistic", "support", false, 0, 0},
		{"hinge", "full", false, 0.25, 0},
	} {
		d := testDriver(func(o *Settings) { o.Loss, o.Stiffness = c.loss, c.stiffness })
		if c.warm {
			d.WarmStart([]string{Dual})
		}
		if d.Certified = c.gap > 0; d.Certified {
			d.Last.Gap = c.gap
		}
		d.Stage = stageReduce
		s, _ := d.Step()
		var r Reduce
		if err := method.Decode(s.Tasks[0].Params, &r); err != nil || r.Follower != c.want {
			t.Errorf("%+v: %v (%v)", c, r.Follower, err)
		}
	}
}

// TestMomentumFalling checks that the momentum is kept while P decreases, even if P is still above
// its best value. The fourth certificate above it switches to full curvature.
func TestMomentumFalling(t *testing.T) {
	d := testDriver(nil)
	for _, primal := range []float64{10, 9, 8, 9.5, 9.4, 9.3, 9.2} {
		for !d.Price {
			commitOK(t, d)
		}
		commitOK(t, d, figures{Primal: primal, Dual: 7})
		commitOK(t, d, figures{Restart: -1})
		if d.Stage == stageSafeguard {
			commitOK(t, d, figures{Restart: -1})
		}
	}
	if d.RiseCount != 4 || d.Beta == 0 || d.rule() != "full" {
		t.Errorf("rises %d, beta %v, curvature %s", d.RiseCount, d.Beta, d.rule())
	}
}

// TestResumeAstray checks that a job that stopped right after P had increased begins again at zero
// when it is resumed.
func TestResumeAstray(t *testing.T) {
	d := testDriver(func(o *Settings) { o.MaxSweeps = 2 })
	for _, primal := range []float64{8, 9} {
		commitOK(t, d, figures{Primal: primal, Dual: 1})
		commitOK(t, d, figures{Restart: -1})
	}
	if d.StoppedBy != method.StoppedByMaxSweeps {
		t.Fatalf("stopped by %q", d.StoppedBy)
	}
	d.maxSweeps = 9
	d.Resume(true)
	if rule := reduceOf(t, d).Rule; d.Stage != stageSafeguard || rule != "zero" {
		t.Errorf("stage %d, rule %s", d.Stage, rule)
	}
}
