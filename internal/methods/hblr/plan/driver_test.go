package plan

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"taxon/coordinator/method"
)

// TestBoundNeverFalls checks that a point at which the bound has decreased is dropped: no sweep
// ends, and the certificate stays. The previous point is then updated in its means and, the next
// time, in its precisions; the result of that counts. If the time is up in between, this is
// completed first.
func TestBoundNeverFalls(t *testing.T) {
	plan := &method.Plan{Items: []method.Items{{Count: 1}, {Count: 1}, {Count: 1}}}
	d := newDriver(&Settings{Tolerance: 1e-9}, plan, &Plan{Variant: "m2", Bounded: true, Memory: Memory})
	round := func(objective float64) (out method.Outcome) {
		for _, phase := range []string{"leaves", "internals", "gamma"} {
			s, ok := d.Next()
			if !ok || s.Phase != phase {
				t.Fatalf("%+v, want %s", s, phase)
			}
			sums := make(method.Sums, Figures)
			sums[SumObjective], sums[SumChange] = objective/3, 0.1
			sums[Product(0)] = 1
			var err error
			if out, err = d.Commit([]method.Sums{sums}); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	move := func(want Back) {
		t.Helper()
		s, _ := d.Next()
		var m Move
		if err := method.Decode(s.Tasks[0].Params, &m); err != nil || s.Phase != "move" || m.Back != want {
			t.Fatalf("%+v, %v: want a move of %d", s, err, want)
		}
		if reads := string(method.Encode(s.Tasks[0].Reads)); want > 0 && (strings.Contains(reads, `"g"}`) ||
			!strings.Contains(reads, `"em","Back":1`)) {
			t.Errorf("it reads %s", reads)
		}
		if _, err := d.Commit(nil); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(out method.Outcome, done bool, objective float64, sweep uint32) {
		t.Helper()
		if p := d.Progress(); out.SweepDone != done || p.Sweep != sweep || p.Certificate.Kind != method.LowerBound ||
			p.Certificate.Objective-objective > 1e-9 {
			t.Errorf("%+v, sweep %d, %+v: want %t, sweep %d, %g", out, p.Sweep, p.Certificate, done, sweep, objective)
		}
	}
	expect(round(100), true, 100, 2)
	move(0)
	expect(round(101), false, 100, 2)
	move(BackMeans)
	expect(round(99), true, 99, 3)
	move(0)
	expect(round(99+1e-11), true, 99, 4) // rounding
	move(0)
	expect(round(99.1), false, 99, 4)
	d.TimeUp(true)
	move(BackPrecisions)
	expect(round(99+1e-10), true, 99, 4)
	if s, _ := d.Next(); s.Phase != "summary" || d.StoppedBy != method.StoppedByMaxTime {
		t.Errorf("%+v, stopped by %q", s, d.StoppedBy)
	}
}

// TestTimeInARound checks that, when the time is up, the leaves of a soft-max are not solved
// further, except with variational inference, where that would lower the bound of the last round.
func TestTimeInARound(t *testing.T) {
	plan := &method.Plan{Items: []method.Items{{Count: 1}, {Count: 1}, {Count: 1}}}
	total := make(method.Sums, Figures)
	total[SumChange], total[SumGamma] = 1, 1
	for bounded, want := range map[bool]stage{false: stageContribute, true: stageLeaves} {
		detail := &Plan{Variant: "m3", Memory: Memory, Softmax: true, Bounded: bounded}
		d := newDriver(&Settings{Tolerance: 1e-3}, plan, detail)
		d.TimeUp(true)
		if bounded {
			d.Partition, d.Stage = &partition{Mix: []float64{1}}, stagePartition
			d.endSolve(total)
		} else {
			d.Jointly.Mode, d.Jointly.First = JointTurn, 1
			if d.endJoint(total, 1); d.Jointly.Mode != JointSearch {
				t.Errorf("the step goes on with %s", d.Jointly.Mode)
			}
			d.Jointly.Mode = JointNewton
			d.endJoint(total, 1)
		}
		if d.Stage != want {
			t.Errorf("bounded %t: stage %d, not %d", bounded, d.Stage, want)
		}
	}
}

// TestResumeWithAnotherTolerance checks that a job that had converged continues if the new
// tolerance is smaller, and that a job ended by its number of sweeps is complete if its last two
// sweeps satisfy the new tolerance.
func TestResumeWithAnotherTolerance(t *testing.T) {
	plan := &method.Plan{Items: []method.Items{{Count: 1}, {Count: 1}, {Count: 1}}}
	for _, c := range []struct {
		stopped       string
		tolerance     float64
		before, after string
	}{
		{method.StoppedByStationary, 1e-4, "", "move"},
		{method.StoppedByStationary, 1e-2, method.StoppedByStationary, "end"},
		{method.StoppedByMaxSweeps, 1e-2, method.StoppedByStationary, "end"},
		{method.StoppedByMaxSweeps, 2e-4, method.StoppedByMaxSweeps, "end"},
	} {
		d := newDriver(&Settings{MaxSweeps: 7, Tolerance: c.tolerance}, plan, &Plan{Variant: "m1", Memory: Memory})
		d.Sweep, d.Stage, d.StoppedBy, d.Certified = 7, stageEnd, c.stopped, true
		d.Before, d.Reached, d.Change = 8e-4, 5e-4, 1e-4
		if left := d.Progress().Certificate.Left; left != d.Reached {
			t.Errorf("%g is left, want %g", left, d.Reached)
		}
		if c.after == "move" {
			d.maxSweeps = 0
		}
		d.Resume(false)
		if s, _ := d.Step(); d.StoppedBy != c.before || s.Phase != c.after && (c.after != "end" || s.Tasks != nil) {
			t.Errorf("%+v: stopped by %q, next %q", c, d.StoppedBy, s.Phase)
		}
	}
}

// TestResumeWithinARound checks that a soft-max that is resumed between two steps of a round
// continues with the next step.
func TestResumeWithinARound(t *testing.T) {
	plan := &method.Plan{Items: []method.Items{{Count: 2}, {Count: 1}, {Count: 1}}}
	o := &Settings{Tolerance: 1e-3}
	for _, bounded := range []bool{false, true} {
		detail := &Plan{Variant: "m3", Memory: Memory, Softmax: true, Bounded: bounded}
		d := newDriver(o, plan, detail)
		sums := make(method.Sums, Figures)
		sums[SumChange], sums[SumGamma], sums[SumDelta], sums[SumSlope] = 1, 1, 2, -1
		for range 7 {
			if _, err := d.Commit([]method.Sums{sums}); err != nil {
				t.Fatal(err)
			}
			again := newDriver(o, plan, detail)
			if err := method.Restore(d.State(), &again.state, &again.Stage, stages-1); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(again.state, d.state) {
				t.Errorf("resumed at %+v, which was %+v: %+v and %+v, %+v and %+v", again.state, d.state, again.Partition,
					d.Partition, again.Jointly, d.Jointly)
			}
		}
		if d.Stage > stageInternals && d.Stage != stagePartition {
			t.Errorf("bounded %t: the round has ended", bounded)
		}
	}
}

// TestNewtonInARound checks the steps of a round of the soft-max: a start, gradients, conjugate
// gradient iterations down to a tenth of the residual, and a line search that halves a step that
// does not lower f. They repeat until the leaves are accurate enough.
func TestNewtonInARound(t *testing.T) {
	plan := &method.Plan{Items: []method.Items{{Count: 1}, {Count: 1}, {Count: 1}}}
	d := newDriver(&Settings{Tolerance: 1e-3}, plan, &Plan{Variant: "m3", Memory: Memory, Softmax: true})
	// the figures that the blocks and the whole report for each step
	for n, c := range []struct {
		mode                                  JointMode
		length, alpha, beta                   float64
		objective, worst, gamma, delta, slope float64
		sumOfZ, off                           float64
		skipsExchange, ends                   bool
	}{
		{mode: JointStart, sumOfZ: 10},
		{mode: JointNewton, objective: -2, worst: 8, gamma: 4, delta: 3, off: -1},
		{mode: JointTurn, alpha: 2, gamma: 1, delta: 2, off: -0.25},                       // beta 1/4, delta 1.75 - 1/4*1/2
		{mode: JointTurn, alpha: 1 / 1.625, beta: 0.25, gamma: 0.03, skipsExchange: true}, // less than a hundredth of 4
		{mode: JointSearch, length: 1, objective: 1, slope: -3, sumOfZ: 8},                // f was 8 and is 9
		{mode: JointSearch, length: 0.5, objective: -3, sumOfZ: 9},
		// ten times the loosest tolerance
		{mode: JointNewton, length: 0.5, objective: -3, worst: 0.4, gamma: 1e-3, ends: true},
	} {
		if got := d.Jointly.Joint; d.Stage != stageLeaves || got.Mode != c.mode || got.Length != c.length ||
			got.Alpha != c.alpha || got.Beta != c.beta {
			t.Fatalf("step %d: stage %d, %+v, want %+v", n, d.Stage, got, c)
		}
		total := make(method.Sums, Figures)
		total[SumObjective], total[SumGamma], total[SumDelta], total[SumSlope] = c.objective, c.gamma, c.delta, c.slope
		d.endJoint(total, c.worst)
		if c.ends || c.skipsExchange {
			continue
		}
		if d.Stage != stagePartition {
			t.Fatalf("step %d: stage %d", n, d.Stage)
		}
		total = make(method.Sums, Figures)
		total[SumObjective], total[SumDelta] = c.sumOfZ, c.off
		d.endExchange(total)
	}
	if d.Stage != stageContribute || d.Objective != 6 {
		t.Errorf("stage %d, objective %g", d.Stage, d.Objective)
	}
}

// TestSoftSteps checks that rows are softened again after a step that the line search has
// shortened, and no longer after a full step that has left more than half of the gradient.
func TestSoftSteps(t *testing.T) {
	plan := &method.Plan{Items: []method.Items{{Count: 1}, {Count: 1}, {Count: 1}}}
	for _, c := range []struct {
		length, before, first float64
		steps                 int
		was, want             bool
	}{
		{1, 8, 1, 3, false, false},
		{1, 3, 1, 3, false, true},
		{1, 0, 1, 0, false, false}, // the first step of a round
		{1, 8, 1, 3, true, true},
		{0.5, 3, 1, 3, true, false},
	} {
		d := newDriver(&Settings{Tolerance: 1e-3}, plan, &Plan{Variant: "m3", Memory: Memory, Softmax: true})
		*d.Jointly = joint{Joint: Joint{Mode: JointSearch, Length: c.length, Plain: c.was}, Before: c.before, First: c.first,
			Steps: c.steps, Objective: 10, Down: -1}
		if d.endExchange(make(method.Sums, Figures)); d.Jointly.Mode != JointNewton || d.Jointly.Plain != c.want {
			t.Errorf("%+v: %+v", c, d.Jointly.Joint)
		}
	}
}

// TestFailedTurns checks that a gradient step follows if conjugate gradients fail. A round that
// ends before the leaves are at their maximum gives no estimate of the distance to a fixed point.
func TestFailedTurns(t *testing.T) {
	plan := &method.Plan{Items: []method.Items{{Count: 1}, {Count: 1}, {Count: 1}}}
	for _, steps := range []int{0, 1} {
		d := newDriver(&Settings{Tolerance: 1e-3}, plan, &Plan{Variant: "m3", Memory: Memory, Softmax: true})
		blocks := func(mode JointMode, alpha float64, figures map[int]float64) {
			t.Helper()
			if d.Stage != stageLeaves || d.Jointly.Mode != mode || d.Jointly.Alpha != alpha {
				t.Fatalf("stage %d, %+v, want %s with alpha %g", d.Stage, d.Jointly.Joint, mode, alpha)
			}
			total := make(method.Sums, Figures)
			for at, x := range figures {
				total[at] = x
			}
			d.endJoint(total, 100)
		}
		whole := func(figure int, x float64) {
			t.Helper()
			if d.Stage != stagePartition {
				t.Fatalf("stage %d, %+v", d.Stage, d.Jointly.Joint)
			}
			total := make(method.Sums, Figures)
			total[figure] = x
			d.endExchange(total)
		}
		d.Jointly.Steps, d.Jointly.First, d.Jointly.Down = steps, 4, -1
		blocks(JointStart, 0, nil)
		whole(SumObjective, 50)
		blocks(JointNewton, 0, map[int]float64{SumGamma: 4, SumDelta: 1})
		whole(SumDelta, math.NaN())
		blocks(JointSearch, 0, nil) // neither step nor slope
		blocks(JointStart, 0, nil)
		whole(SumObjective, 50)
		blocks(JointNewton, 0, map[int]float64{SumGamma: 4, SumDelta: 1})
		whole(SumDelta, math.NaN())
		blocks(JointTurn, 1, map[int]float64{SumGamma: 3, SumDelta: 1})
		blocks(JointSearch, 0, nil) // the gradient step fails, too
		if d.Stage != stageContribute || !d.Jointly.Short {
			t.Fatalf("stage %d, %+v", d.Stage, d.Jointly)
		}
		sums := make(method.Sums, Figures)
		sums[SumChange] = 1e-6
		d.Stage, d.History.Rates = stageGamma, [3]float64{1, 1, 1}
		if _, err := d.Commit([]method.Sums{sums}); err != nil || d.Reached != 0 {
			t.Errorf("%v, within %g", err, d.Reached)
		}
	}
}
