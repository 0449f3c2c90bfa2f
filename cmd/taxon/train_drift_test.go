package main

import (
	"encoding/json"
	"strings"
	"testing"

	"taxon/internal/model"
)

// driftData is graphData, but that rows of "lone", which is no class of the graph, have a
// feature of their own: along it all classes of the graph can fall for ever.
const driftData = "a 1:1\na 1:0.9 3:0.1\nb 2:1\nb 2:0.8 3:0.2\nc 3:1\nlone 4:1\nlone 4:0.8 1:0.2\n"

func trainedReport(t *testing.T, line string, vars map[string]string) (r model.Report, stderr string) {
	t.Helper()
	code, stdout, stderr := runTaxon(t, "", line+" --json", vars)
	if code != 0 {
		t.Fatalf("%s: exit %d, %s", line, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	return r, stderr
}

// TestDrift: said before the training, by its end, in the report and by whoever reads the
// finished model. The longer the training goes on, the lower P lies.
func TestDrift(t *testing.T) {
	vars := map[string]string{"DATA": writeText(t, "t.svm", driftData), "G": writeText(t, "g.txt", graphEdges), "OUT": t.TempDir() + "/m"}
	line := "train --data $DATA --graph $G --method rr-lr --anchor 0 --out $OUT"
	r, stderr := trainedReport(t, line+" --gap 1e-2", vars)
	if d := r.Drift; r.StoppedBy != "drift" || r.Gap != nil || d == nil || d.Components != 1 || d.Of != 1 || d.Classes != 3 || d.First[0] != "a" {
		t.Errorf("%+v, %+v", r, d)
	}
	if !strings.Contains(stderr, "no minimum") || !strings.Contains(stderr, "--anchor") || strings.Contains(stderr, "stopped by") {
		t.Errorf("said %q", stderr)
	}
	if _, stdout, _ := runTaxon(t, "", line+" --gap 1e-2", vars); !strings.Contains(stdout, "drifts") || !strings.Contains(stdout, `3 classes ("a")`) {
		t.Errorf("the finished model says %q", stdout)
	}
	longer, _ := trainedReport(t, strings.Replace(line, "$OUT", "$OUT-2", 1)+" --gap 1e-4", vars)
	if longer.StoppedBy != "drift" || !(longer.Objective < r.Objective) || longer.Sweeps <= r.Sweeps {
		t.Errorf("objective %v after %d sweeps, %v after %d", r.Objective, r.Sweeps, longer.Objective, longer.Sweeps)
	}
	capped, stderr := trainedReport(t, strings.Replace(line, "$OUT", "$OUT-3", 1)+" --max-sweeps 3", vars)
	if capped.StoppedBy != "max_sweeps" || capped.Drift == nil || !strings.Contains(stderr, "no minimum") {
		t.Errorf("%+v, %q", capped, stderr)
	}
}

// TestNoDrift: nothing is said where P has a least value, though its minimiser may not be
// the only one.
func TestNoDrift(t *testing.T) {
	drifts, held := writeText(t, "drift.svm", driftData), writeText(t, "held.svm", graphData)
	tree := writeText(t, "tree.txt", "r p\np a\np b\nr c\n")
	for name, test := range map[string][3]string{
		"hinge":         {drifts, "--graph $G --anchor 0", "stationary"},
		"squared hinge": {drifts, "--graph $G --anchor 0 --loss squared-hinge", "stationary"},
		"anchored":      {drifts, "--graph $G --method rr-lr", "gap"},
		"held":          {held, "--graph $G --method rr-lr --anchor 0", "stationary"},
		"tree":          {drifts, "--hierarchy $TREE --method rr-lr", "gap"},
		"flat":          {drifts, "--graph $G --method blr --anchor 0", "gap"},
	} {
		vars := map[string]string{"DATA": test[0], "G": writeText(t, "g.txt", graphEdges), "TREE": tree, "OUT": t.TempDir() + "/m"}
		r, stderr := trainedReport(t, "train --data $DATA --out $OUT "+test[1], vars)
		if r.StoppedBy != test[2] || r.Drift != nil || strings.Contains(stderr, "no minimum") {
			t.Errorf("%s: stopped by %s, %+v, %q", name, r.StoppedBy, r.Drift, stderr)
		}
	}
}
