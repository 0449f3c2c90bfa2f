package format

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"data", "hierarchy", "out", "gap", "max-sweeps", "max-time"}
	for s, want := range map[string]string{
		"heirarchy": "hierarchy", "hierachy": "hierarchy", "hier": "hierarchy", "dta": "data", "Data": "data",
		"max-sweep": "max-sweeps", "max_time": "max-time", "gap-below": "gap", "data-": "data", "xyz": "", "": "",
	} {
		if got := Nearest(s, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", s, got, want)
		}
	}
}
