package main

import (
	"math"
	"strings"
	"testing"
)

func TestLawAndCosts(t *testing.T) {
	var points []point
	for _, s := range []float64{0.001, 0.01, 0.1} {
		p := point{Scale: s, Visits: 1e9 * s * s, StoredSweep: 1e7 * s, Sweeps: 2}
		p.CPUSeconds = 2 * (p.Visits*0.5 + p.StoredSweep*20) * 1e-9
		p.PeakRSS, p.ModelBytes = int64(1e12*s), 1000
		points = append(points, p)
	}
	visit, bytes := costs(points)
	if math.Abs(visit-0.5) > 1e-6 || math.Abs(bytes-20) > 1e-6 {
		t.Errorf("%v ns a visit, %v a byte", visit, bytes)
	}
	l := fit(points, func(p point) float64 { return float64(p.PeakRSS) })
	if math.Abs(l.b-1) > 1e-9 || math.Abs(l.at(1)-1e12) > 1e3 {
		t.Errorf("%+v", l)
	}
	if text := report(points, plan{}, plan{}); !strings.Contains(text, "0.50 ns a visit, 20.0 ns a byte") {
		t.Errorf("%s", text)
	}
}
