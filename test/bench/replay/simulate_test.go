package main

import (
	"math"
	"testing"
)

func TestPlay(t *testing.T) {
	steps := [][]taken{{{seconds: 1}, {seconds: 1}, {seconds: 1}}, {{seconds: 4}, {seconds: 1}}}
	for _, c := range []struct {
		cores int
		want  outcome
		limit string
	}{
		{1, outcome{total: 10, share: 8, between: 2}, "time between steps"},
		{2, outcome{total: 8, share: 4, longest: 1.5, uneven: 0.5, between: 2}, "time between steps"},
		{10, outcome{total: 7, share: 0.8, longest: 4.2, between: 2}, "longest task of a step"},
	} {
		got := play(steps, c.cores, costs{between: 1})
		for _, d := range []float64{got.total - c.want.total, got.share - c.want.share, got.longest - c.want.longest, got.uneven - c.want.uneven, got.between - c.want.between} {
			if math.Abs(d) > 1e-9 {
				t.Errorf("%d cores: %+v, want %+v", c.cores, got, c.want)
				break
			}
		}
		if got.limit() != c.limit {
			t.Errorf("%d cores: limit %s, want %s", c.cores, got.limit(), c.limit)
		}
	}
}
