package dataset

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestLn(t *testing.T) {
	if ln(1) != 0 {
		t.Errorf("ln 1 = %v", ln(1))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 200_000 {
		x := 1 + float64(i)/7
		if i%2 == 0 {
			x = math.Exp(rng.Float64() * 30)
		}
		if got, want := ln(x), math.Log(x); math.Abs(got-want) > 1e-15*want {
			t.Fatalf("ln %v = %v, want %v", x, got, want)
		}
	}
}
