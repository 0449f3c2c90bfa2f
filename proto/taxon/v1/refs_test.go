package taxonv1

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRefsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Place {
			if rapid.Bool().Draw(t, "empty") {
				return Place{}
			}
			return Place{
				Step:    rapid.Uint32Range(1, 2).Draw(t, "step"),
				Task:    rapid.Uint32Range(0, 3).Draw(t, "task"),
				Attempt: rapid.Uint32Range(1, 2).Draw(t, "attempt"),
			}
		})).Draw(t, "places")
		r := NewRefs(places)
		if got := r.Expand(); !slices.Equal(got, places) || r.Items() != len(places) {
			t.Fatalf("got %v, want %v", got, places)
		}
	})
}

func TestRefsUniformIsOneRun(t *testing.T) {
	places := make([]Place, 1000)
	if r := NewRefs(places); len(r.Count) != 1 {
		t.Errorf("no values yet: %d runs", len(r.Count))
	}
	for i := range places {
		places[i] = Place{Step: 7, Task: uint32(i) + 3, Attempt: 1}
	}
	if r := NewRefs(places); len(r.Count) != 1 {
		t.Errorf("one step, first attempts: %d runs", len(r.Count))
	}
}

func TestRefsMalformed(t *testing.T) {
	if got := (&Refs{Count: []uint32{2}}).Expand(); !slices.Equal(got, make([]Place, 2)) {
		t.Errorf("got %v", got)
	}
}
