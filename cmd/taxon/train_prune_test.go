package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A pruned training keeps the report and the digest of the whole model, and resumes as one.
func TestTrainThreshold(t *testing.T) {
	dir := t.TempDir()
	data := writeText(t, "train.svm", strings.Repeat("a 1:1 2:0.5\nb 2:1 3:0.25\nc 3:1 4:0.1\n", 5))
	vars := map[string]string{"DATA": data, "W": dir + "/whole", "P": dir + "/pruned"}
	var sums []string
	for _, line := range []string{"train --data $DATA --out $W --quiet --json", "train --data $DATA --out $P " +
		"--threshold 0.2 --quiet --json",
		"train --data $DATA --out $P --threshold 0.2 --quiet --json"} {
		code, stdout, stderr := runTaxon(t, "", line, vars)
		var r struct {
			Sum string `json:"weights_sha256"`
		}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
			t.Fatalf("%s: exit %d, %v: %s", line, code, err, stderr)
		}
		sums = append(sums, r.Sum)
	}
	if sums[0] != sums[1] || sums[0] != sums[2] || sums[0] == "" {
		t.Errorf("digests %v", sums)
	}
	code, stdout, _ := runTaxon(t, "", "info $P --json", vars)
	if code != 0 || !strings.Contains(stdout, `"threshold": 0.2`) {
		t.Errorf("info: exit %d, %s", code, stdout)
	}
	code, _, stderr := runTaxon(t, "", "train --data $DATA --out $P --quiet", vars)
	if code != 2 || !strings.Contains(stderr, "threshold 0.2, not 0") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}
