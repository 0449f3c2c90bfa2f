package plan

import (
	"errors"
	"math"
	"slices"
	"testing"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"

	"pgregory.net/rapid"
)

func testDriver(change func(*Settings)) *driver {
	o := Settings{Schedule: ScheduleTwoblock, C: 1, Gap: 1e-6, Momentum: "fista", Stiffness: "support"}
	if change != nil {
		change(&o)
	}
	return newDriver(o, &taxonv1.JobSpec{}, &Plan{Sets: 1, BlockTerminals: make([]uint32, 10)}, true)
}

// figures holds a task's figures by name.
type figures struct{ Primal, Dual, InnerGap, Restart float64 }

func (f figures) sums() method.Sums {
	out := make(method.Sums, sums)
	out[SumPrimal], out[SumDual], out[SumInnerGap], out[SumRestart] = f.Primal, f.Dual, f.InnerGap, f.Restart
	return out
}

// commitOK commits a step with the given figures.
func commitOK(t *testing.T, o *driver, all ...figures) method.Outcome {
	t.Helper()
	out, err := commit(o, all...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func commit(o *driver, all ...figures) (method.Outcome, error) {
	var sums []method.Sums
	for _, f := range all {
		sums = append(sums, f.sums())
	}
	return o.Commit(sums)
}

// takesX reports whether a committed step's internals are kept.
func takesX(out method.Outcome) bool { return !slices.Contains(out.Drop, X) }

// mapOf and reduceOf return the parameters of the current step.
func mapOf(t interface{ Fatal(...any) }, o *driver) (m Map) {
	s, _ := o.Step()
	if s.Tasks[0].Op != OpMap {
		t.Fatal(s)
	}
	if err := method.Decode(s.Tasks[0].Params, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func reduceOf(t interface{ Fatal(...any) }, o *driver) (r Reduce) {
	s, _ := o.Step()
	last := s.Tasks[len(s.Tasks)-1]
	if last.Op != OpReduce {
		t.Fatal(s)
	}
	if err := method.Decode(last.Params, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPricedSweeps(t *testing.T) {
	want := []uint32{1, 2, 3, 4, 6, 8, 12, 16, 20, 24}
	for _, test := range []struct {
		loss  string
		begun bool
		want  []uint32
	}{{"hinge", false, want}, {"logistic", false, want}, {"squared-hinge", false, want[1:]}, {"squared-hinge", true,
		[]uint32{1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24}}} {
		o := testDriver(func(o *Settings) { o.Loss = test.loss })
		if test.begun {
			o.WarmStart([]string{Dual, X})
		}
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

// TestSampleBand checks that, after a first sweep on a sample of the rows, the hinge's working sets
// leave out rows that fall slightly short of the margin.
func TestSampleBand(t *testing.T) {
	for _, test := range []struct {
		loss    string
		sampled bool
		sweep   uint32
		want    float64
	}{{"hinge", false, 1, 0.02}, {"hinge", true, 1, -0.03}, {"hinge", true, 2, 0.15}, {"squared-hinge", true, 1, 0.02},
		{"squared-hinge", true, 4, 0.05}} {
		o := testDriver(func(o *Settings) { o.Loss = test.loss })
		o.sampled = test.sampled
		if o.openSweep(test.sweep); o.band() != test.want {
			t.Errorf("%+v: band %g", test, o.band())
		}
	}
}

// TestRoughEpochs checks that the first sweeps of a squared hinge run one inner epoch, unless the
// user sets the number.
func TestRoughEpochs(t *testing.T) {
	for _, test := range []struct {
		loss  string
		given uint32
		want  [3]uint32 // of sweeps 1, 2, 3
	}{{"hinge", 0, [3]uint32{3, 3, 3}}, {"squared-hinge", 0, [3]uint32{1, 1, 3}},
		{"squared-hinge", 2, [3]uint32{2, 2, 2}}} {
		o := testDriver(func(o *Settings) { o.Loss, o.InnerEpochs = test.loss, test.given })
		var got [3]uint32
		for k := range got {
			o.openSweep(uint32(k + 1))
			got[k] = mapOf(t, o).Epochs
		}
		if got != test.want {
			t.Errorf("%s, %d given: %v epochs, want %v", test.loss, test.given, got, test.want)
		}
	}
}

// TestAim checks that a sweep between the regular ones ends with a full pass if the gap is expected
// to reach the tolerance.
func TestAim(t *testing.T) {
	for _, test := range []struct {
		at8, at12 float64
		want      uint32
	}{
		{0.04, 0.0125, 13},    // times 0.75 a sweep
		{0.04, 0.015, 14},     // 0.78
		{0.04, 0.02, 0},       // 0.84: the sixteenth sweep comes first
		{0.01001, 0.01001, 0}, // does not decrease
		{0.01, 0.02, 0},
	} {
		o := testDriver(func(o *Settings) { o.Gap = 0.01 })
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

// TestMomentum checks methods.md 1: t+ = (1+sqrt(1+4t^2))/2, beta = (t-1)/t+; the gradient restart
// sets t = 1.
func TestMomentum(t *testing.T) {
	o := testDriver(nil)
	tk, beta := 1.0, 0.0
	for sweep := uint32(1); sweep <= 12; sweep++ {
		if m := mapOf(t, o); o.Sweep != sweep || math.Abs(m.Beta-beta) > 1e-15 {
			t.Fatalf("sweep %d: beta %g, want %g", o.Sweep, m.Beta, beta)
		}
		commitOK(t, o, figures{Primal: 2 - float64(sweep)/100, Dual: 1})
		restart := -1.0
		if sweep == 7 {
			restart = 1
		}
		out := commitOK(t, o, figures{Restart: restart}, figures{Restart: -0.5})
		if !takesX(out) || !out.SweepDone || out.Certified != o.priced(sweep) {
			t.Fatalf("sweep %d: outcome %+v", sweep, out)
		}
		next := (1 + math.Sqrt(1+4*tk*tk)) / 2
		tk, beta = next, (tk-1)/next
		if restart > 0 || sweep < joint.MomentumFrom {
			tk, beta = 1, 0
		}
	}
	if o := testDriver(func(o *Settings) { o.Momentum = "none" }); o.momentum {
		t.Error("momentum none has momentum")
	}
}

// TestRiseOfInnerGaps checks that an increase of P that incomplete inner solves explain restarts
// the momentum, and that no step is repeated.
func TestRiseOfInnerGaps(t *testing.T) {
	for _, rise := range []float64{0, 0.5} {
		d := testDriver(nil)
		for d.Sweep <= 8 {
			f := figures{Primal: 2, Dual: 1}
			if d.Sweep == 8 {
				f.Primal, f.InnerGap = 2+rise, 0.6
			}
			commitOK(t, d, f)
			commitOK(t, d, figures{Restart: -1})
			if d.Stage != stageSolve {
				t.Fatalf("sweep %d: %v follows", d.Sweep, phases[d.Stage])
			}
		}
		if restarted := d.T == 1 && d.Beta == 0; restarted != (rise > 0) {
			t.Errorf("P rose by %v: t %v, beta %v", rise, d.T, d.Beta)
		}
	}
}

// TestCertificate checks that the certificate adds the figures of both steps of a sweep with a full
// pass; gap = (P-D)/P.
func TestCertificate(t *testing.T) {
	o := testDriver(nil)
	commitOK(t, o, figures{Primal: 3, Dual: 1}, figures{Primal: 4, Dual: 2})
	commitOK(t, o, figures{Primal: 1, Dual: 3, Restart: -1})
	if want := (method.Certificate{Objective: 8, Dual: 6, Gap: 0.25}); o.Last != want {
		t.Errorf("certificate %+v, want %+v", o.Last, want)
	}
	// the inner solves aim at innerShare of P - D, divided by ten terminals
	if got, want := mapOf(t, o).InnerGap, joint.InnerShare*2/10; math.Abs(got-want) > 1e-15 {
		t.Errorf("inner gap %g, want %g", got, want)
	}
	if mapOf(t, testDriver(nil)).InnerGap != 0 {
		t.Error("an inner gap before the first certificate")
	}
	for _, bad := range []figures{{Primal: math.Inf(1)}, {Primal: math.NaN()}, {Primal: 0, Dual: -1}} {
		o := testDriver(nil)
		commitOK(t, o, bad)
		if _, err := commit(o, figures{}); !errors.Is(err, method.ErrNotFinite) {
			t.Errorf("%+v: error %v", bad, err)
		}
	}
	// if rounding puts D above P, the gap is not negative, and the job ends
	o = testDriver(nil)
	commitOK(t, o, figures{Primal: 1, Dual: math.Nextafter(1, 2)})
	if commitOK(t, o, figures{}); o.Last.Gap != 0 || o.StoppedBy != method.StoppedByGap {
		t.Errorf("gap %g, stopped by %q", o.Last.Gap, o.StoppedBy)
	}
}

// TestStopKeepsTheCertifiedPoint checks that at the end of a twoblock job the internals of the last
// REDUCE are dropped: EMIT writes the y of the certificate.
func TestStopKeepsTheCertifiedPoint(t *testing.T) {
	o := testDriver(func(o *Settings) { o.MaxSweeps = joint.MomentumFrom + 2 })
	for range joint.MomentumFrom + 1 {
		commitOK(t, o, figures{Primal: 2, Dual: 1})
		commitOK(t, o, figures{Restart: -1})
	}
	beta := o.Beta
	commitOK(t, o, figures{Primal: 2, Dual: 1})
	out := commitOK(t, o, figures{Restart: -1})
	if takesX(out) || !out.SweepDone || o.StoppedBy != method.StoppedByMaxSweeps {
		t.Errorf("outcome %+v, stopped by %q", out, o.StoppedBy)
	}
	s, _ := o.Next()
	var emit Emit
	if err := method.Decode(s.Tasks[0].Params, &emit); err != nil {
		t.Fatal(err)
	}
	if !s.Emit || s.Tasks[0].Op != OpEmitMap || s.Tasks[1].Op != OpEmitReduce || emit.Beta != beta || beta == 0 {
		t.Errorf("final step %+v, want one that emits at beta %g", s, beta)
	}
	commitOK(t, o)
	if _, more := o.Next(); more || o.Stage != stageEnd {
		t.Errorf("stage %v after EMIT", phases[o.Stage])
	}
}

// TestRiseWithFullCurvature checks that with full curvature nothing is repeated when P increases:
// only the momentum restarts.
func TestRiseWithFullCurvature(t *testing.T) {
	o := testDriver(func(o *Settings) { o.Stiffness = "full" })
	for _, p := range []float64{2, 3} {
		commitOK(t, o, figures{Primal: p, Dual: 1})
		if rule := reduceOf(t, o).Rule; rule != "full" {
			t.Fatalf("rule %q", rule)
		}
		commitOK(t, o, figures{Restart: -1})
	}
	if m := mapOf(t, o); o.Sweep != 3 || m.Beta != 0 {
		t.Errorf("after a rise: sweep %d, %+v", o.Sweep, m)
	}
}

// TestDriftTurnsPrecise checks that a joint job descends in float64 once its gap is below
// driftBelow and due to its terminals. A larger gap, a gap due to the internals, and that of a flat
// job have no such effect.
func TestDriftTurnsPrecise(t *testing.T) {
	for _, c := range []struct {
		gap, share float64
		flat, want bool
	}{{9e-4, 0.95, false, true}, {9e-4, 0.5, false, false}, {2e-3, 0.95, false, false}, {9e-4, 1, true, false}} {
		o := newDriver(Settings{Gap: 1e-4, MaxSweeps: 99}, &taxonv1.JobSpec{},
			&Plan{BlockTerminals: make([]uint32, 3)}, !c.flat)
		o.Sweep, o.Primal, o.Dual, o.Inner = 5, 1, 1-c.gap, c.share*c.gap
		if err := o.certify(); err != nil {
			t.Fatal(err)
		}
		if o.Precise != c.want {
			t.Errorf("%+v: precise %v", c, o.Precise)
		}
	}
}

// TestFlatStandstillTurnsPrecise checks that a flat job whose duals stop moving above its tolerance
// descends in float64 from there on.
func TestFlatStandstillTurnsPrecise(t *testing.T) {
	for rise, want := range map[float64]bool{1e-9: true, 1e-2: false} {
		o := newDriver(Settings{Gap: 1e-3, MaxSweeps: 99}, &taxonv1.JobSpec{},
			&Plan{BlockTerminals: make([]uint32, 3)}, false)
		for sweep, dual := range []float64{0.9, 0.9 + rise} {
			if o.Precise {
				t.Fatalf("precise before sweep %d", sweep+1)
			}
			if _, err := commit(o, figures{Primal: 0.91, Dual: dual, InnerGap: 0.91 - dual}); err != nil {
				t.Fatal(err)
			}
		}
		if o.Precise != want {
			t.Errorf("D rises by %g of a gap of 0.01: precise %v", rise, o.Precise)
		}
	}
}

// TestFlatLogisticAims checks that a flat job of the logistic loss has a target gap in its first
// sweep, so that it may end with it. Other jobs must measure the gap first.
func TestFlatLogisticAims(t *testing.T) {
	gap := 1e-3
	for loss, want := range map[string]float64{"logistic": flat.ToleranceShare * gap, "hinge": 0} {
		o := newDriver(Settings{Loss: loss, Gap: gap, MaxSweeps: 9}, &taxonv1.JobSpec{},
			&Plan{BlockTerminals: make([]uint32, 3)}, false)
		if s := mapOf(t, o); s.InnerShare != want || (s.MaxEpochs == flat.FirstEpochs) != (loss == "hinge") {
			t.Errorf("%s: first step %+v", loss, s)
		}
		if _, err := commit(o, figures{Primal: 2, Dual: 1}); err != nil {
			t.Fatal(err)
		}
		if s := mapOf(t, o); s.InnerShare != 0 || s.InnerGap == 0 {
			t.Errorf("%s: second step %+v", loss, s)
		}
	}
}

// TestEveryJobEnds checks that, for any figures, a job with a cap ends after a full pass with a
// finite certificate.
func TestEveryJobEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flat := rapid.Bool().Draw(t, "flat")
		options := Settings{
			Schedule: rapid.SampledFrom([]string{ScheduleTwoblock, ScheduleParity, ScheduleJacobi}).Draw(t, "schedule"),
			Gap:      rapid.Float64Range(1e-6, 1).Draw(t, "gap"), MaxSweeps: rapid.Uint32Range(1, 30).Draw(t, "max"),
		}
		o := newDriver(options, &taxonv1.JobSpec{}, &Plan{Sets: 2, BlockTerminals: make([]uint32, 3)}, !flat)
		sweeps := uint32(0)
		for steps := 0; o.Stage != stageEnd; steps++ {
			if steps > 500 {
				t.Fatal("the job does not end")
			}
			if rapid.IntRange(0, 50).Draw(t, "time") == 0 {
				o.TimeUp(true)
				o.shorten() // no step is in progress
			}
			f := figures{
				Primal: rapid.Float64Range(2, 3).Draw(t, "P"), Dual: rapid.Float64Range(1, 2).Draw(t, "D"),
				Restart: rapid.Float64Range(-1, 1).Draw(t, "restart"),
			}
			out, err := commit(o, f)
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

// TestRestsAboveTheTolerance checks that a job whose figures no longer move ends, and reports that.
func TestRestsAboveTheTolerance(t *testing.T) {
	o := newDriver(Settings{Gap: 1e-9}, &taxonv1.JobSpec{},
		&Plan{Sets: 1, BlockTerminals: make([]uint32, 10)}, false)
	for sweep := uint32(1); o.Stage != stageEmit; sweep++ {
		if sweep > 3+flat.StationarySweeps {
			t.Fatalf("no end after %d sweeps", sweep)
		}
		commitOK(t, o, figures{Primal: 3, Dual: min(float64(sweep), 3) / 3}) // increases until sweep 3
	}
	if o.StoppedBy != method.StoppedByStationary || o.Sweep != 3+flat.StationarySweeps || o.Last.Gap == 0 {
		t.Errorf("stopped by %q after sweep %d with %+v", o.StoppedBy, o.Sweep, o.Last)
	}
}

// TestBegunPace checks that the momentum of a warm-started job runs from its first sweep on, and
// that its inner solves have a looser target.
func TestBegunPace(t *testing.T) {
	o := testDriver(nil)
	o.WarmStart([]string{Dual, X})
	o.advance(false)
	o.advance(false)
	if o.Sweep != 3 || !(o.Beta > 0) {
		t.Errorf("sweep %d has momentum %g, want some in sweep 3", o.Sweep, o.Beta)
	}
	o.Certified, o.Last = true, method.Certificate{Objective: 10, Dual: 5, Gap: 0.5}
	begun := o.innerGap()
	if o.WarmStarted = false; !(begun > o.innerGap()) {
		t.Errorf("inner solves aim at %g, as from nothing", begun)
	}
}

// TestBegunUnsettled checks that a warm-started job takes plain steps until new data have settled,
// and selects wide working sets at once.
func TestBegunUnsettled(t *testing.T) {
	for _, loss := range []string{"hinge", "squared-hinge"} {
		o := testDriver(func(o *Settings) { o.Loss = loss })
		o.WarmStart([]string{Dual, X})
		for range 3 {
			if o.band() != joint.WarmBand {
				t.Errorf("%s, sweep %d: band %g", loss, o.Sweep, o.band())
			}
			o.Last = method.Certificate{Objective: 10, Dual: 6, Gap: 0.4}
			if o.advance(false); o.Beta != 0 || o.T != 1 {
				t.Errorf("%s, sweep %d: momentum %g above a large gap", loss, o.Sweep, o.Beta)
			}
		}
		o.Last = method.Certificate{Objective: 10, Dual: 8, Gap: 0.2}
		o.advance(false)
		if o.advance(false); !(o.Beta > 0) {
			t.Errorf("%s: no momentum below a small gap", loss)
		}
	}
}

// TestBegunSlowTerminals checks that, if inner solves are slow, the bound on their epochs grows as
// fast in a warm-started job as in a cold one, although more of its sweeps have full passes.
func TestBegunSlowTerminals(t *testing.T) {
	var bound [2][]uint32
	for k, begun := range []bool{false, true} {
		o := testDriver(nil)
		if begun {
			o.WarmStart([]string{Dual, X})
		}
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
	if !slices.Equal(bound[0], bound[1]) || bound[0][7] != 16*joint.MaxEpochs {
		t.Errorf("bounds from nothing %v, begun %v", bound[0], bound[1])
	}
}

// TestPieces checks that a large job solves its blocks piece by piece, each once, and that the
// certificate has the sums over all pieces. When the time is up between two pieces, all blocks get
// a full pass.
func TestPieces(t *testing.T) {
	large := func() *driver {
		o := Settings{Schedule: ScheduleTwoblock, Loss: "logistic", C: 1, Gap: 1e-2}
		spec := &taxonv1.JobSpec{Data: &taxonv1.Data{Features: piecesFrom}}
		return newDriver(o, spec, &Plan{Sets: 1, BlockTerminals: make([]uint32, 160), BlockSet: make([]uint32, 10)}, true)
	}
	d, next := large(), uint32(0)
	if !d.Price {
		t.Fatal("the first sweep isn't priced")
	}
	for n := range pieces {
		s, _ := d.Next()
		if len(s.Tasks) != 1 || s.Tasks[0].Op != OpMap || s.Tasks[0].First != next || s.Tasks[0].Count == 0 {
			t.Fatalf("piece %d: %+v", n, s)
		}
		next += s.Tasks[0].Count
		commitOK(t, d, figures{Primal: 3, Dual: 1})
	}
	if next != 10 || d.Stage != stageReduce {
		t.Fatalf("%d blocks were solved, then %s", next, phases[d.Stage])
	}
	commitOK(t, d, figures{})
	if d.Last.Objective != 3*pieces || d.Sweep != 2 || d.Piece != 0 {
		t.Fatalf("%+v", d.state)
	}
	d = large()
	d.Next()
	commitOK(t, d, figures{Primal: 3, Dual: 1})
	d.TimeUp(true)
	if s, _ := d.Next(); s.Tasks[0].First != 0 || s.Tasks[0].Count != 10 || d.Stage != stagePrice || d.Primal != 0 {
		t.Fatalf("when the time is up: %+v, %+v", s, d.state)
	}
}
