package program

import (
	"testing"

	"taxon/mapper"
)

// TestCarryState checks that duals at the bound move to the new one, that free ones are kept, all
// within the new box, and that a smooth state is kept.
func TestCarryState(t *testing.T) {
	s := &mapper.State{Priced: true, Rows: []uint32{3, 9}, Work: []uint16{3, 1}, Live: []uint16{3, 1},
		Dual: []float64{0.3, 0.1, 0.3}}
	for i, a := range s.Dual {
		s.Dual[i] = float64(float32(a))
	}
	data := encodeState(s)
	for _, ratio := range []float64{1, 10, 0.1, 3.3333} {
		out, err := rescaleState(data, "hinge", 0.3, 0.3*ratio)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeState(out, 10)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range got.Dual {
			want := s.Dual[i] * ratio
			if i == 1 && ratio > 1 {
				want = s.Dual[i]
			}
			if a > want || a < want*(1-1e-6) {
				t.Errorf("ratio %g: dual %g, want %g or a little less", ratio, a, want)
			}
		}
		if len(got.Rows) != 2 || got.Live[0] != 3 || got.Work[1] != 1 {
			t.Errorf("%+v", got)
		}
	}
	if out, err := rescaleState([]byte("anything"), "logistic", 1, 10); err != nil || string(out) != "anything" {
		t.Error(out, err)
	}
	if _, err := rescaleState(data[:5], "hinge", 1, 10); err == nil {
		t.Error("a damaged state was carried")
	}
	if _, err := rescaleState(data, "hing", 1, 10); err == nil {
		t.Error("an unknown loss")
	}
}
