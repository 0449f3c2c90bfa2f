package worker

import (
	"reflect"
	"testing"

	"taxon/mapper"
)

func smoothState() *mapper.State {
	return &mapper.State{Priced: true, Feature: []uint32{0, 3, 700}, Value: []float32{1, -2, 0, 4, 5e-30, -6}}
}

func TestSmoothStateSurvives(t *testing.T) {
	want := smoothState()
	got, err := decodeSmooth(encodeSmooth(want), 2, 701)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	empty := &mapper.State{Priced: true, Feature: []uint32{}, Value: []float32{}}
	if got, err = decodeSmooth(encodeSmooth(empty), 16, 1); err != nil || !reflect.DeepEqual(got, empty) {
		t.Errorf("empty: %+v, %v", got, err)
	}
}

// trimmedState has few values of its seven lanes.
func trimmedState() *mapper.State {
	s := &mapper.State{Priced: true, Feature: []uint32{0, 3, 700}, Value: make([]float32, 21)}
	s.Value[2], s.Value[8], s.Value[20] = 1, -2, 3e-20
	return s
}

// A trimmed state is written by masks, a full one side by side, as by the first versions.
func TestTrimmedStateSurvives(t *testing.T) {
	want := trimmedState()
	b := encodeSmooth(want)
	got, err := decodeSmooth(b, 7, 701)
	if err != nil || !reflect.DeepEqual(got, want) || b[0] != formatMasked {
		t.Errorf("format %#x: %+v, %v", b[0], got, err)
	}
	if full := encodeSmooth(smoothState()); full[0] != formatSmooth {
		t.Errorf("a state without zeros has format %#x", full[0])
	}
}

func TestSmoothStateRefused(t *testing.T) {
	for _, c := range []struct {
		state *mapper.State
		lanes int
	}{{smoothState(), 2}, {trimmedState(), 7}} {
		good := encodeSmooth(c.state)
		if _, err := decodeSmooth(good, c.lanes, 700); err == nil {
			t.Error("a feature beyond the width is taken")
		}
		if _, err := decodeSmooth(good, c.lanes+1-c.lanes/7*2, 701); err == nil {
			t.Error("another number of lanes is taken")
		}
		for n := range good {
			if _, err := decodeSmooth(good[:n], c.lanes, 701); err == nil {
				t.Errorf("%d of %d bytes are taken", n, len(good))
			}
		}
	}
}

func FuzzSmoothState(f *testing.F) {
	f.Add(encodeSmooth(smoothState()), 2)
	f.Add(encodeSmooth(trimmedState()), 7)
	f.Fuzz(func(t *testing.T, b []byte, lanes int) {
		if lanes < 1 || lanes > mapper.Lanes {
			return
		}
		s, err := decodeSmooth(b, lanes, 1000)
		if err == nil && len(s.Value) != lanes*len(s.Feature) {
			t.Errorf("%d values at %d features", len(s.Value), len(s.Feature))
		}
	})
}
