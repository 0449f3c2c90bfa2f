package mapreduce

import (
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
)

// TestFollows: a step's tasks become reducers behind a batch only if all that they read of the
// batch comes through the shuffle, as the parts of one family cut by their items, and the
// batch writes all of it.
func TestFollows(t *testing.T) {
	at := func(step uint32, tasks ...uint32) *taxonv1.Refs {
		var places []taxonv1.Place
		for _, n := range tasks {
			places = append(places, taxonv1.Place{Step: step, Task: n, Attempt: 1})
		}
		return taxonv1.NewRefs(places)
	}
	plan := &taxonv1.Plan{Families: []*taxonv1.Family{{Name: "v", By: 1}, {Name: "u", By: 1}, {Name: "w", By: 0}}}
	batch := []*waiter{{lease: &taxonv1.Lease{Step: 5, Task: 0, Attempt: 1}},
		{lease: &taxonv1.Lease{Step: 5, Task: 1, Attempt: 1}}}
	next := func() []*taxonv1.Lease {
		var out []*taxonv1.Lease
		for i := range uint32(3) {
			out = append(out, &taxonv1.Lease{Items: 1, Item: i, Inputs: []*taxonv1.Input{
				{Value: "v", All: true, Refs: at(5, 0, 1)}, {Value: "x", Refs: at(4, i)}, {Value: "z", All: true,
					Refs: at(2, 0, 1, 2)},
			}})
		}
		return out
	}
	for name, c := range map[string]struct {
		change func(next []*taxonv1.Lease) []*taxonv1.Lease
		want   bool
	}{
		"as it should be":    {func(n []*taxonv1.Lease) []*taxonv1.Lease { return n }, true},
		"nothing follows":    {func([]*taxonv1.Lease) []*taxonv1.Lease { return nil }, false},
		"items are left out": {func(n []*taxonv1.Lease) []*taxonv1.Lease { return n[1:] }, false},
		"items of two lists": {func(n []*taxonv1.Lease) []*taxonv1.Lease { n[2].Items = 0; return n }, false},
		"some written before": {func(n []*taxonv1.Lease) []*taxonv1.Lease { n[0].Inputs[0].Refs = at(4, 0, 1); return n },
			false},
		"not cut":            {func(n []*taxonv1.Lease) []*taxonv1.Lease { n[0].Inputs[0].Value = "y"; return n }, false},
		"cut by other items": {func(n []*taxonv1.Lease) []*taxonv1.Lease { n[0].Inputs[0].Value = "w"; return n }, false},
		"two families":       {func(n []*taxonv1.Lease) []*taxonv1.Lease { n[0].Inputs[2].Value = "u"; return n }, false},
		"reads the batch's own": {func(n []*taxonv1.Lease) []*taxonv1.Lease { n[2].Inputs[1].Refs = at(5, 1); return n },
			false},
		"reads all of the batch": {func(n []*taxonv1.Lease) []*taxonv1.Lease { n[0].Inputs[2].Refs = at(5, 0, 1); return n },
			false},
		"never written": {func(n []*taxonv1.Lease) []*taxonv1.Lease { n[1].Inputs[1].Refs = at(0, 1); return n },
			true},
	} {
		if got := follows(batch, c.change(next()), plan); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
