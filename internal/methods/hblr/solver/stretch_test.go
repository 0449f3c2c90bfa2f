package solver

import (
	"context"
	"slices"
	"testing"
)

// TestStretch checks that, after precisions have decreased by orders of magnitude, the multiple
// found is the best multiple of the leaf's mean, with and without weights of rows and parents'
// means. At an optimum nothing moves.
func TestStretch(t *testing.T) {
	for seed := range uint64(4) {
		r := sample(seed, 40, 9, seed > 1)
		b := &Block{Positive: [][]uint32{{1, 2, 5}, {3, 8, 20, 30}, {11}}, Above: make([][]float64, 3),
			Precision: []Precision{Unit, Unit, Unit}}
		b.Above[1] = slices.Repeat([]float64{0.3}, r.Columns())
		w, lanes := make([]float64, 3*r.Columns()), len(b.Positive)
		solve := func(tolerance float64) {
			var s Scratch
			s.Open(r, b)
			if _, err := s.Solve(context.Background(), r, w, tolerance); err != nil {
				t.Fatal(err)
			}
		}
		stretch := func() {
			var s Scratch
			s.Open(r, b)
			s.lay(w)
			s.locate(r)
			s.stretch(r)
			s.unpack(s.w, w)
		}
		solve(1e-12)
		at := slices.Clone(w)
		if stretch(); !slices.Equal(at, w) {
			t.Errorf("seed %d: an optimum is moved", seed)
		}
		for l := range b.Precision {
			b.Precision[l] = Precision{Value: []float64{1e-2}}
		}
		stretch()
		for l := range lanes {
			one := func(times float64) float64 {
				lane := make([]float64, r.Columns())
				for f := range lane {
					lane[f] = times * w[f*lanes+l]
				}
				return posterior(r, b, l, lane)
			}
			if best := one(1); best > one(1.02) || best > one(0.98) {
				t.Errorf("seed %d, lane %d: %g, a little further %g, less far %g", seed, l, best, one(1.02), one(0.98))
			}
			if w[l] == at[l] {
				t.Errorf("seed %d, lane %d has not moved", seed, l)
			}
		}
	}
}
