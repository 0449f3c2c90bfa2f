package train

import (
	"slices"
	"testing"

	"taxon/coordinator/method/methodtest"
)

// TestHoldOutWithinItsTime: all rows are held out once where that fits the time allowed; the
// trainings shrink with it; classes keep rows to train on; threads change nothing.
func TestHoldOutWithinItsTime(t *testing.T) {
	o := noisy(t, "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n")
	on, err := Open(t.Context(), o, &heard{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer on.Close()
	whole := (&holdOut{Training: on, trained: 20}).seconds()
	if !(whole > 0) {
		t.Fatalf("a training takes %g s", whole)
	}
	plan := func(times float64) *holdOut {
		o.CutoffTime = times * whole
		h := &holdOut{Training: on, trained: 20}
		if !h.plan() {
			t.Fatalf("%g times the training: nothing held out", times)
		}
		return h
	}
	for times, parts := range map[float64]int{4.1: 5, 2.1: 3, 0.9: 1} {
		h, seen := plan(times), make([]int, 300)
		for _, p := range h.parts {
			for _, r := range append(slices.Clone(p.rest), p.held...) {
				seen[r]++
			}
			for _, r := range p.held {
				seen[r] += 10
			}
		}
		if len(h.parts) != parts || h.sweeps != 20 || slices.Min(seen) < parts || slices.Max(seen) != parts+10 || parts > 1 &&
			slices.Min(seen) != parts+10 {
			t.Errorf("%g times the training: %d parts of %d sweeps, seen %v", times, len(h.parts), h.sweeps, seen)
		}
	}
	last := 300
	for _, times := range []float64{0.12, 0.08, 0.04} {
		h := plan(times)
		rest := len(h.parts[0].rest)
		if spent := float64(rest) / 300 * float64(h.sweeps) / 20; h.sweeps != maxTree || rest >= last || spent > times {
			t.Errorf("%g times the training: %g are spent by %d sweeps over %d rows", times, spent, h.sweeps, rest)
		}
		last = rest
		if c := methodtest.Number(h.options(rest), "c"); c <= methodtest.Number(on.o.Job, "c") {
			t.Errorf("C is %g on fewer rows", c)
		}
	}
	o.CutoffTime = 0
	a, b := plan(0.08), plan(0.08)
	if b.o.Threads = 7; !slices.Equal(a.parts[0].rest, b.parts[0].rest) || !slices.Equal(a.parts[0].held,
		b.parts[0].held) {
		t.Error("equal trainings have other hold-outs")
	}
}
