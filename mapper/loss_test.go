package mapper

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestLossDerivative: a finite difference of the loss is minus the dual that makes the
// instance's gap vanish, so loss, DualTerm and InnerGap belong together.
func TestLossDerivative(t *testing.T) {
	const c, h = 0.7, 1e-6
	for _, loss := range []Loss{Hinge, SquaredHinge} {
		for _, z := range []float64{-3, -0.5, 0, 0.4, 0.99, 1.01, 2, 17} {
			slope := (loss.Value(z+h) - loss.Value(z-h)) / (2 * h)
			a := -c * slope
			if gap := loss.InnerGap(z, a, c); math.Abs(gap) > 1e-8*(1+math.Abs(z)) {
				t.Errorf("loss %d at z = %g: slope %g, but dual %g leaves a gap of %g", loss, z, slope, a, gap)
			}
			// any other dual leaves one
			if gap := loss.InnerGap(z, a/2+0.1, c); gap < 1e-4 {
				t.Errorf("loss %d at z = %g: dual %g leaves a gap of only %g", loss, z, a/2+0.1, gap)
			}
		}
	}
}

// TestLossConjugate: DualTerm is the conjugate of the loss: a -> min_z C loss(z) + a z.
func TestLossConjugate(t *testing.T) {
	const c = 1.3
	for _, loss := range []Loss{Hinge, SquaredHinge} {
		for a := 0.0; a <= c; a += c / 8 {
			least := math.Inf(1)
			for z := -4.0; z <= 4; z += 1.0 / 1024 {
				least = min(least, c*loss.Value(z)+a*z)
			}
			if d := loss.DualTerm(a, c); math.Abs(d-least) > 1e-6 {
				t.Errorf("loss %d, a = %g: DualTerm %g, conjugate %g", loss, a, d, least)
			}
		}
	}
}

// TestInnerGapNeverNegative for duals in the float32 box, the bound itself included.
func TestInnerGapNeverNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loss := Loss(rapid.IntRange(0, 1).Draw(t, "loss"))
		c := rapid.Float64Range(1e-6, 1e6).Draw(t, "c")
		z := rapid.Float64Range(-1e6, 1e6).Draw(t, "z")
		top := loss.Bound(c)
		if loss == SquaredHinge {
			top = float32(3 * c)
		}
		a := rapid.Float32Range(0, top).Draw(t, "a")
		if rapid.Bool().Draw(t, "at the bound") {
			a = top
		}
		u := max(1-z, 0)
		scale := c*u*u + float64(a)*(1+math.Abs(z)) + c // of the terms that cancel
		if g := loss.InnerGap(z, float64(a), c); g < -1e-15*scale {
			t.Fatalf("gap %g", g)
		}
	})
}

// TestBound is the greatest float32 in the box: a dual above C would lift D(a) above the
// optimum and the reported gap below the true one.
func TestBound(t *testing.T) {
	for _, c := range []float64{0.01, 0.1, 0.3, 1, 3, 100, 1e-8, 123456.789} {
		b := Hinge.Bound(c)
		if float64(b) > c || float64(math.Nextafter32(b, float32(math.Inf(1)))) <= c {
			t.Errorf("C = %v: bound %v", c, float64(b))
		}
	}
	if !math.IsInf(float64(SquaredHinge.Bound(1)), 1) {
		t.Error("the squared hinge has a bound")
	}
}

// TestZeroRowDual: at z = 0 it closes the instance's gap.
func TestZeroRowDual(t *testing.T) {
	for _, loss := range []Loss{Hinge, SquaredHinge} {
		if g := loss.InnerGap(0, loss.ZeroRowDual(0.3), 0.3); math.Abs(g) > 1e-16 {
			t.Errorf("loss %d: gap %g", loss, g)
		}
	}
}

func TestParseLoss(t *testing.T) {
	for name, want := range map[string]Loss{"hinge": Hinge, "squared-hinge": SquaredHinge, "logistic": Logistic} {
		if got, err := ParseLoss(name); err != nil || got != want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	if _, err := ParseLoss("logit"); err == nil || err.Error() != `unknown loss "logit" (hinge, squared-hinge, logistic)` {
		t.Errorf("logit: %v", err)
	}
}
