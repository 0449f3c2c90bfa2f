package solver

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestExpLog checks that exp and log are within two units in the last place of package math.
func TestExpLog(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	near := func(what string, x, got, want float64) {
		if math.Abs(got-want) > 2*(math.Nextafter(math.Abs(want), math.Inf(1))-math.Abs(want)) {
			t.Errorf("%s(%v): %v, math's %v", what, x, got, want)
		}
	}
	for range 100_000 {
		x := 40 * r.NormFloat64()
		near("Exp", x, Exp(x), math.Exp(x))
		y := math.Exp(x)
		near("Log", y, Log(y), math.Log(y))
		u := math.Exp(-math.Abs(x))
		near("expNegative", x, expNegative(-math.Abs(x)), u)
		near("logarithm", 1+u, logarithm(1+u), math.Log(1+u))
	}
	for _, x := range []float64{0, -0.1, 1e-300, -745, -746, -1000, 709, 710, 1e-17, math.Inf(-1), math.Inf(1)} {
		near("Exp", x, Exp(x), math.Exp(x))
	}
	near("Log", 1, Log(1), 0)
	if !math.IsNaN(Exp(math.NaN())) {
		t.Error("Exp(NaN)")
	}
}
