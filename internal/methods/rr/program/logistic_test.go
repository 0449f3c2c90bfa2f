package program

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
	dense := &mapper.State{Priced: true, Value: []float32{1, -2, 0, 4, 5e-30, -6}}
	if got, err = decodeSmooth(encodeSmooth(dense), 2, 3); err != nil || !reflect.DeepEqual(got, dense) {
		t.Errorf("dense: %+v, %v", got, err)
	}
	empty := &mapper.State{Priced: true, Feature: []uint32{}, Value: []float32{}}
	if got, err = decodeSmooth(encodeSmooth(empty), 16, 1); err != nil || !reflect.DeepEqual(got, empty) {
		t.Errorf("empty: %+v, %v", got, err)
	}
}

func TestSmoothStateRefused(t *testing.T) {
	dense := encodeSmooth(&mapper.State{Value: make([]float32, 6)})
	for _, other := range [][2]int{{4, 3}, {2, 1}, {1, 4}} {
		if _, err := decodeSmooth(dense, other[0], uint32(other[1])); err == nil {
			t.Errorf("dense: taken with %v lanes and features", other)
		}
	}
	if _, err := decodeSmooth(dense[:len(dense)-4], 1, 9); err == nil {
		t.Error("dense: cut short and taken")
	}
	good := encodeSmooth(smoothState())
	if _, err := decodeSmooth(good, 2, 700); err == nil {
		t.Error("a feature beyond the width is taken")
	}
	if _, err := decodeSmooth(good, 3, 701); err == nil {
		t.Error("another number of lanes is taken")
	}
	for n := range good {
		if _, err := decodeSmooth(good[:n], 2, 701); err == nil {
			t.Errorf("%d of %d bytes are taken", n, len(good))
		}
	}
}

func FuzzSmoothState(f *testing.F) {
	f.Add(encodeSmooth(smoothState()), 2)
	f.Fuzz(func(t *testing.T, b []byte, lanes int) {
		if lanes < 1 || lanes > mapper.Lanes {
			return
		}
		s, err := decodeSmooth(b, lanes, 1000)
		if err == nil && s.Feature != nil && len(s.Value) != lanes*len(s.Feature) {
			t.Errorf("%d values at %d features", len(s.Value), len(s.Feature))
		}
	})
}
