package main

import (
	"math"
	"testing"
)

func TestPlay(t *testing.T) {
	steps := []step{{tasks: []taken{{seconds: 1}, {seconds: 1}, {seconds: 1}}},
		{tasks: []taken{{seconds: 4}, {seconds: 1}}}}
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
		for _, d := range []float64{got.total - c.want.total, got.share - c.want.share, got.longest - c.want.longest,
			got.uneven - c.want.uneven, got.between - c.want.between} {
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

// TestPlayTraffic checks that a worker reads what others have written, the internals once per step,
// and gets the items that it had before.
func TestPlayTraffic(t *testing.T) {
	a, b, x := value{number: 0, bytes: 10, kept: true}, value{number: 1, bytes: 20, kept: true},
		value{number: 2, bytes: 100, kept: true}
	steps := []step{
		{tasks: []taken{{item: item{0, 0}, seconds: 1, written: []value{a}}, {item: item{0, 1}, seconds: 1,
			written: []value{b}}}},
		{tasks: []taken{{item: item{1, 0}, seconds: 1, read: []value{a, b}, written: []value{x}}}},
		{tasks: []taken{{item: item{0, 1}, seconds: 1, read: []value{b}}, {item: item{0, 0}, seconds: 1, read: []value{a}}},
			shared: []value{x}},
	}
	for cores, want := range map[int]outcome{
		1: {total: 5, read: 0, written: 130},
		// the first core has item 0 and the range, the second one reads x once
		2: {total: 3, read: 20 + 100, written: 130},
	} {
		if o := play(steps, cores, costs{}); o.read != want.read || o.written != want.written || o.total != want.total {
			t.Errorf("%d cores: %d read, %d written, %g s", cores, o.read, o.written, o.total)
		}
	}
	// in the first step both wait for the store's link
	if o := play(steps, 2, costs{link: 1}); o.total != (1+10+20)+(20+1+100)+(100+1) {
		t.Errorf("a link of 1 byte a second: %g s", o.total)
	}
	steps[2].tasks[0].read[0].kept = false
	if o := play(steps, 1, costs{}); o.read != 20 {
		t.Errorf("a value that is not kept: %d read", o.read)
	}
}
