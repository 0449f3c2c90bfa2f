package coordinator

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"taxon/internal/jobspec"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"

	"pgregory.net/rapid"
)

func testOuter(change func(*taxonv1.Options)) *outer {
	o := &taxonv1.Options{Schedule: jobspec.ScheduleTwoblock, C: 1, Gap: 1e-6, Momentum: "fista", Stiffness: "support"}
	if change != nil {
		change(o)
	}
	return newOuter(o, &taxonv1.Plan{Sets: 1, BlockTerminals: make([]uint32, 10)}, false)
}

// commitOK folds the sums of a step in.
func commitOK(t *testing.T, o *outer, sums ...Sums) outcome {
	t.Helper()
	out, err := o.commit(sums)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPricedSweeps(t *testing.T) {
	want := []uint32{1, 2, 3, 4, 6, 8, 12, 16, 20, 24}
	for _, test := range []struct {
		loss  string
		begun bool
		want  []uint32
	}{{"hinge", false, want}, {"logistic", false, want}, {"squared-hinge", false, want[1:]}, {"squared-hinge", true, []uint32{1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24}}} {
		o := testOuter(func(o *taxonv1.Options) { o.Loss = test.loss })
		o.begin(test.begun)
		var got []uint32
		for s := uint32(1); s <= 24; s++ {
			if o.openSweep(s); o.Price {
				got = append(got, s)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s, begun %t: priced sweeps %v, want %v", test.loss, test.begun, got, test.want)
		}
	}
}

// The first sweeps of a squared hinge do one inner epoch, unless the user says how many.
func TestRoughEpochs(t *testing.T) {
	for _, test := range []struct {
		loss  string
		given uint32
		want  [3]uint32 // of sweeps 1, 2, 3
	}{{"hinge", 0, [3]uint32{3, 3, 3}}, {"squared-hinge", 0, [3]uint32{1, 1, 3}}, {"squared-hinge", 2, [3]uint32{2, 2, 2}}} {
		o := testOuter(func(o *taxonv1.Options) { o.Loss, o.InnerEpochs = test.loss, test.given })
		var got [3]uint32
		for k := range got {
			o.openSweep(uint32(k + 1))
			got[k] = o.step().Epochs
		}
		if got != test.want {
			t.Errorf("%s, %d given: %v epochs, want %v", test.loss, test.given, got, test.want)
		}
	}
}

// A sweep between the regular ones is priced where the gap should reach the tolerance.
func TestAim(t *testing.T) {
	for _, test := range []struct {
		at8, at12 float64
		want      uint32
	}{
		{0.04, 0.0125, 13},    // times 0.75 a sweep
		{0.04, 0.015, 14},     // 0.78
		{0.04, 0.02, 0},       // 0.84: the sixteenth comes first
		{0.01001, 0.01001, 0}, // does not fall
		{0.01, 0.02, 0},
	} {
		o := testOuter(func(o *taxonv1.Options) { o.Gap = 0.01 })
		for _, at := range []struct {
			sweep uint32
			gap   float64
		}{{8, test.at8}, {12, test.at12}} {
			o.openSweep(at.sweep)
			o.Primal, o.Dual = 1, 1-at.gap
			if err := o.certify(); err != nil {
				t.Fatal(err)
			}
		}
		if o.Aim != test.want {
			t.Errorf("gap %g, then %g: aims at sweep %d, want %d", test.at8, test.at12, o.Aim, test.want)
		}
		if o.openSweep(14); o.Price != (test.want == 14) {
			t.Errorf("gap %g, then %g: sweep 14 priced %t", test.at8, test.at12, o.Price)
		}
	}
}

// methods.md 1: t+ = (1+sqrt(1+4t^2))/2, beta = (t-1)/t+; the gradient restart sets t = 1.
func TestMomentum(t *testing.T) {
	o := testOuter(nil)
	tk, beta := 1.0, 0.0
	for sweep := uint32(1); sweep <= 12; sweep++ {
		if s := o.step(); s.Sweep != sweep || math.Abs(s.Beta-beta) > 1e-15 {
			t.Fatalf("sweep %d: beta %g, want %g", s.Sweep, s.Beta, beta)
		}
		commitOK(t, o, Sums{Primal: 2 - float64(sweep)/100, Dual: 1})
		restart := -1.0
		if sweep == 7 {
			restart = 1
		}
		out := commitOK(t, o, Sums{Restart: restart}, Sums{Restart: -0.5})
		if !out.Take || !out.SweepDone || out.Certified != o.priced(sweep) {
			t.Fatalf("sweep %d: outcome %+v", sweep, out)
		}
		next := (1 + math.Sqrt(1+4*tk*tk)) / 2
		tk, beta = next, (tk-1)/next
		if restart > 0 || sweep < momentumFrom {
			tk, beta = 1, 0
		}
	}
	if o := testOuter(func(o *taxonv1.Options) { o.Momentum = "none" }); o.momentum {
		t.Error("momentum none has momentum")
	}
}

// The certificate adds the sums of both steps of a pricing sweep; gap = (P-D)/P.
func TestCertificate(t *testing.T) {
	o := testOuter(nil)
	commitOK(t, o, Sums{Primal: 3, Dual: 1}, Sums{Primal: 4, Dual: 2})
	commitOK(t, o, Sums{Primal: 1, Dual: 3, Restart: -1})
	if want := (certificate{Objective: 8, Dual: 6, Gap: 0.25}); o.Last != want {
		t.Errorf("certificate %+v, want %+v", o.Last, want)
	}
	// The inner solves aim at innerShare of P - D, spread over ten terminals.
	if got, want := o.step().InnerGap, innerShare*2/10; math.Abs(got-want) > 1e-15 {
		t.Errorf("inner gap %g, want %g", got, want)
	}
	if testOuter(nil).step().InnerGap != 0 {
		t.Error("an inner gap before the first certificate")
	}
	for _, bad := range []Sums{{Primal: math.Inf(1)}, {Primal: math.NaN()}, {Primal: 0, Dual: -1}} {
		o := testOuter(nil)
		commitOK(t, o, bad)
		if _, err := o.commit([]Sums{{}}); !errors.Is(err, errNotFinite) {
			t.Errorf("%+v: error %v", bad, err)
		}
	}
	// Rounding that puts D above P is no negative gap, and ends the job.
	o = testOuter(nil)
	commitOK(t, o, Sums{Primal: 1, Dual: math.Nextafter(1, 2)})
	if commitOK(t, o, Sums{}); o.Last.Gap != 0 || o.StoppedBy != stoppedByGap {
		t.Errorf("gap %g, stopped by %q", o.Last.Gap, o.StoppedBy)
	}
}

// At the end of a twoblock job the internals of the last REDUCE are dropped: EMIT is at
// the y that the certificate is about.
func TestStopKeepsTheCertifiedPoint(t *testing.T) {
	o := testOuter(func(o *taxonv1.Options) { o.MaxSweeps = momentumFrom + 2 })
	for range momentumFrom + 1 {
		commitOK(t, o, Sums{Primal: 2, Dual: 1})
		commitOK(t, o, Sums{Restart: -1})
	}
	beta := o.step().Beta
	commitOK(t, o, Sums{Primal: 2, Dual: 1})
	out := commitOK(t, o, Sums{Restart: -1})
	if out.Take || !out.SweepDone || o.StoppedBy != stoppedBySweeps {
		t.Errorf("outcome %+v, stopped by %q", out, o.StoppedBy)
	}
	s := o.step()
	if s.Map != taxonv1.TaskKind_TASK_KIND_EMIT_MAP || s.Reduce != taxonv1.TaskKind_TASK_KIND_EMIT_REDUCE || s.Beta != beta || beta == 0 {
		t.Errorf("final step %+v, want EMIT at beta %g", s, beta)
	}
	commitOK(t, o)
	if o.Stage != stageEnd {
		t.Errorf("stage %v after EMIT", phases[o.Stage])
	}
}

// With full stiffness there is nothing to redo when P rises: only momentum restarts.
func TestRiseWithFullStiffness(t *testing.T) {
	o := testOuter(func(o *taxonv1.Options) { o.Stiffness = "full" })
	for _, p := range []float64{2, 3} {
		commitOK(t, o, Sums{Primal: p, Dual: 1})
		if o.step().Rule != "full" {
			t.Fatalf("rule %q", o.step().Rule)
		}
		commitOK(t, o, Sums{Restart: -1})
	}
	if s := o.step(); s.Sweep != 3 || s.Beta != 0 {
		t.Errorf("after a rise: %+v", s)
	}
}

// A joint job whose gap, below driftBelow, is its terminals' own descends in float64 from
// there on; a coarser gap, one of the internals and a flat one's say nothing.
func TestDriftTurnsPrecise(t *testing.T) {
	for _, c := range []struct {
		gap, share float64
		flat, want bool
	}{{9e-4, 0.95, false, true}, {9e-4, 0.5, false, false}, {2e-3, 0.95, false, false}, {9e-4, 1, true, false}} {
		o := newOuter(&taxonv1.Options{Gap: 1e-4, MaxSweeps: 99}, &taxonv1.Plan{BlockTerminals: make([]uint32, 3)}, c.flat)
		o.Sweep, o.Primal, o.Dual, o.Inner = 5, 1, 1-c.gap, c.share*c.gap
		if err := o.certify(); err != nil {
			t.Fatal(err)
		}
		if o.Precise != c.want {
			t.Errorf("%+v: precise %v", c, o.Precise)
		}
	}
}

// A flat job whose duals stand still above its tolerance descends in float64 from there on.
func TestFlatStandstillTurnsPrecise(t *testing.T) {
	for rise, want := range map[float64]bool{1e-9: true, 1e-2: false} {
		o := newOuter(&taxonv1.Options{Gap: 1e-3, MaxSweeps: 99}, &taxonv1.Plan{BlockTerminals: make([]uint32, 3)}, true)
		for sweep, dual := range []float64{0.9, 0.9 + rise} {
			if o.Precise {
				t.Fatalf("precise before sweep %d", sweep+1)
			}
			if _, err := o.commit([]Sums{{Primal: 0.91, Dual: dual, InnerGap: 0.91 - dual}}); err != nil {
				t.Fatal(err)
			}
		}
		if o.Precise != want {
			t.Errorf("D rises by %g of a gap of 0.01: precise %v", rise, o.Precise)
		}
	}
}

// A flat job of the logistic loss is told in its first sweep what to aim at, and so may
// end with it; others learn the gap first.
func TestFlatLogisticAims(t *testing.T) {
	gap := 1e-3
	for loss, want := range map[string]float64{"logistic": flatShare * gap, "hinge": 0} {
		o := newOuter(&taxonv1.Options{Loss: loss, Gap: gap, MaxSweeps: 9}, &taxonv1.Plan{BlockTerminals: make([]uint32, 3)}, true)
		if s := o.step(); s.InnerShare != want || (s.MaxEpochs == flatEpochs) != (loss == "hinge") {
			t.Errorf("%s: first step %+v", loss, s)
		}
		if _, err := o.commit([]Sums{{Primal: 2, Dual: 1}}); err != nil {
			t.Fatal(err)
		}
		if s := o.step(); s.InnerShare != 0 || s.InnerGap == 0 {
			t.Errorf("%s: second step %+v", loss, s)
		}
	}
}

// However the sums fall, a capped job ends on a priced sweep with a finite certificate.
func TestEveryJobEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flat := rapid.Bool().Draw(t, "flat")
		options := &taxonv1.Options{
			Schedule: rapid.SampledFrom([]string{jobspec.ScheduleTwoblock, jobspec.ScheduleParity, jobspec.ScheduleJacobi}).Draw(t, "schedule"),
			Gap:      rapid.Float64Range(1e-6, 1).Draw(t, "gap"), MaxSweeps: rapid.Uint32Range(1, 30).Draw(t, "max"),
		}
		o := newOuter(options, &taxonv1.Plan{Sets: 2, BlockTerminals: make([]uint32, 3)}, flat)
		sweeps := uint32(0)
		for steps := 0; o.Stage != stageEnd; steps++ {
			if steps > 500 {
				t.Fatal("the job does not end")
			}
			if rapid.IntRange(0, 50).Draw(t, "time") == 0 {
				o.Force = true
			}
			sums := Sums{
				Primal: rapid.Float64Range(2, 3).Draw(t, "P"), Dual: rapid.Float64Range(1, 2).Draw(t, "D"),
				Restart: rapid.Float64Range(-1, 1).Draw(t, "restart"),
			}
			out, err := o.commit([]Sums{sums})
			if err != nil {
				t.Fatal(err)
			}
			if out.SweepDone {
				sweeps++
			}
			if (o.Stage == stageEmit) && (!out.SweepDone || !out.Certified) {
				t.Fatalf("the job stopped on an unpriced sweep: %+v", out)
			}
		}
		if sweeps != o.Sweep || sweeps > options.MaxSweeps || o.StoppedBy == "" || !o.Certified {
			t.Fatalf("%d sweeps of %d, stopped by %q", sweeps, o.Sweep, o.StoppedBy)
		}
	})
}

// The guess of the remaining time is exact for a gap that falls by a constant factor,
// heeds the caps, and is never a NaN.
func TestETA(t *testing.T) {
	newTestJob := func(gap float64, maxSweeps uint32, maxSeconds float64, gaps ...float64) *job {
		o := &taxonv1.Options{Gap: gap, MaxSweeps: maxSweeps, MaxSeconds: maxSeconds}
		j := &job{prepared: &prepared{spec: &taxonv1.JobSpec{Options: o}, plan: &taxonv1.Plan{}}}
		j.outer = newOuter(o, j.plan, false)
		j.State = taxonv1.JobState_JOB_STATE_RUNNING
		for i, g := range gaps {
			j.Trace = append(j.Trace, traceRecord{Sweep: uint32(i + 1), Seconds: float64(10 * (i + 1)), Certificate: &certificate{Gap: g}})
			j.Committed = uint32(i + 1)
		}
		return j
	}
	for _, test := range []struct {
		name string
		job  *job
		want float64
	}{
		{"no certificate", newTestJob(1e-3, 0, 0), 0},
		{"one certificate", newTestJob(1e-3, 0, 0, 0.5), 0},
		{"a decade in ten seconds", newTestJob(1e-4, 0, 0, 1, 0.1, 0.01), 20},
		{"rising", newTestJob(1e-4, 0, 0, 0.1, 0.2, 0.3), 0},
		{"level", newTestJob(1e-4, 0, 0, 0.1, 0.1, 0.1), 0},
		{"a gap of zero", newTestJob(1e-4, 0, 0, 0.1, 0, 0), 0},
		{"max_seconds", newTestJob(1e-9, 0, 35, 1, 0.1, 0.01), 5},
		{"max_sweeps", newTestJob(1e-9, 4, 0, 1, 0.1, 0.01), 10},
		{"overdue", newTestJob(0.5, 0, 0, 1, 0.1, 0.01), 0},
	} {
		now := Tick(10*len(test.job.Trace)) * second
		if got := test.job.eta(now); !(math.Abs(got-test.want) < 1e-9) {
			t.Errorf("%s: %g seconds, want %g", test.name, got, test.want)
		}
	}
}

// Seeds differ by job, item and sweep, and are the same ever after: they are part of
// what a model is made from.
func TestSeeds(t *testing.T) {
	seen := map[uint64]string{}
	for job := range uint64(4) {
		for item := range uint32(20) {
			for sweep := range uint32(20) {
				s, name := taskSeed(job, item, sweep), fmt.Sprint(job, item, sweep)
				if other, ok := seen[s]; ok {
					t.Fatalf("seeds of %s and %s are equal", name, other)
				}
				seen[s] = name
			}
		}
	}
	if got := taskSeed(7, 3, 2); got != seed732 {
		t.Errorf("seed %#x, want %#x", got, uint64(seed732))
	}
}

const seed732 = 0x3a730b715e268cb4

// TestRestsAboveTheTolerance checks that a job whose sums no longer move ends, and says so.
func TestRestsAboveTheTolerance(t *testing.T) {
	o := newOuter(&taxonv1.Options{Gap: 1e-9, Method: "bsvm"}, &taxonv1.Plan{Sets: 1, BlockTerminals: make([]uint32, 10)}, true)
	for sweep := uint32(1); o.Stage != stageEmit; sweep++ {
		if sweep > 3+stillSweeps {
			t.Fatalf("no end after %d sweeps", sweep)
		}
		commitOK(t, o, Sums{Primal: 3, Dual: min(float64(sweep), 3) / 3}) // rises until sweep 3
	}
	if o.StoppedBy != stoppedByRest || o.Sweep != 3+stillSweeps || o.Last.Gap == 0 {
		t.Errorf("stopped by %q after sweep %d with %+v", o.StoppedBy, o.Sweep, o.Last)
	}
}

// A begun job's momentum runs from its first sweep on, and its inner solves aim less high.
func TestBegunPace(t *testing.T) {
	o := testOuter(nil)
	o.begin(true)
	o.advance(false)
	o.advance(false)
	if o.Sweep != 3 || !(o.Beta > 0) {
		t.Errorf("sweep %d has momentum %g, want some in sweep 3", o.Sweep, o.Beta)
	}
	o.Certified, o.Last = true, certificate{Objective: 10, Dual: 5, Gap: 0.5}
	begun := o.innerGap()
	if o.Begun = false; !(begun > o.innerGap()) {
		t.Errorf("inner solves aim at %g, as from nothing", begun)
	}
}

// A begun job takes plain steps until what was new has settled, and draws wide working sets at once.
func TestBegunUnsettled(t *testing.T) {
	for _, loss := range []string{"hinge", "squared-hinge"} {
		o := testOuter(func(o *taxonv1.Options) { o.Loss = loss })
		o.begin(true)
		for range 3 {
			if o.band() != workingBand {
				t.Errorf("%s, sweep %d: band %g", loss, o.Sweep, o.band())
			}
			o.Last = certificate{Objective: 10, Dual: 6, Gap: 0.4}
			if o.advance(false); o.Beta != 0 || o.T != 1 {
				t.Errorf("%s, sweep %d: momentum %g above a large gap", loss, o.Sweep, o.Beta)
			}
		}
		o.Last = certificate{Objective: 10, Dual: 8, Gap: 0.2}
		o.advance(false)
		if o.advance(false); !(o.Beta > 0) {
			t.Errorf("%s: no momentum below a small gap", loss)
		}
	}
}

// Where inner solves are slow their bound rises as fast in a begun job as in one from nothing,
// however many more of its sweeps are priced.
func TestBegunSlowTerminals(t *testing.T) {
	var bound [2][]uint32
	for k, begun := range []bool{false, true} {
		o := testOuter(nil)
		o.begin(begun)
		for sweep := uint32(1); sweep <= 12; sweep++ {
			o.openSweep(sweep)
			if o.Price {
				o.Primal, o.Dual, o.Inner = 2, 1, 0.9
				if err := o.certify(); err != nil {
					t.Fatal(err)
				}
			}
			bound[k] = append(bound[k], o.MaxInner)
		}
	}
	if !slices.Equal(bound[0], bound[1]) || bound[0][7] != 16*maxEpochs {
		t.Errorf("bounds from nothing %v, begun %v", bound[0], bound[1])
	}
}
