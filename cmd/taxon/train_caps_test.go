package main

import (
	"encoding/json"
	"strings"
	"testing"

	"taxon/internal/model"
)

// TestAboveGap: a warning names what can be done about it, and an earlier sweep that was better.
func TestAboveGap(t *testing.T) {
	gap := 3.5e-4
	for _, test := range []struct {
		r         model.Report
		threshold float64
		want, not string
	}{
		{model.Report{StoppedBy: "max_sweeps", Gap: &gap}, 0, "raise --max-sweeps, add --warm-start m", "sweep 20"},
		{model.Report{StoppedBy: "max_sweeps", Gap: &gap}, 0.1, "raise --max-sweeps and add --force", "--warm-start"},
		{model.Report{StoppedBy: "max_time", Gap: &gap, Better: &model.Better{Sweep: 20, Gap: 2.5e-5}}, 0,
			"sweep 20 had 2.5e-05; the time limit", "--max-sweeps"},
		{model.Report{StoppedBy: "stationary", Gap: &gap, Method: "td", Nodes: 3, Terminals: 2}, 0, "unit-length instances",
			"parity"},
		{model.Report{StoppedBy: "stationary", Gap: &gap, Nodes: 3, Terminals: 2,
			Own: map[string]json.RawMessage{"schedule": []byte(`"twoblock"`)}}, 0, "--x schedule=parity", "--max-sweeps"},
		{model.Report{StoppedBy: "stationary"}, 0, "", "stopped"},
		{model.Report{StoppedBy: "gap", Gap: &gap}, 0, "", "stopped"},
	} {
		o := trainDefaults()
		o.Out, o.Threshold = "m", test.threshold
		if got := aboveGap(&test.r, 1e-6, o.moreOf); !strings.Contains(got, test.want) || strings.Contains(got, test.not) {
			t.Errorf("%q: want %q, and no %q", got, test.want, test.not)
		}
	}
}
