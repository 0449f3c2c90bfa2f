package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestMapReduceFlagsRefused: what means nothing to the engine is refused, not ignored.
func TestMapReduceFlagsRefused(t *testing.T) {
	vars := map[string]string{"DATA": writeText(t, "t.svm", graphData), "OUT": filepath.Join(t.TempDir(), "m")}
	for _, flag := range []string{"--runner processes", "--state x", "--mapred mapred", "--queue q",
		"--hadoop-property a=b", "--task-memory 1GiB", "--task-cores 2", "--map-tasks 2", "--reduce-tasks 2"} {
		for _, line := range []string{"train --out $OUT "} {
			code, _, stderr := runTaxon(t, "", line+"--data $DATA "+flag, vars)
			if want := strings.Fields(flag)[0] + ": is for --engine mapreduce"; code != exitUsage || !strings.Contains(stderr,
				want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s%s: status %d: %q", line, flag, code, stderr)
			}
		}
	}
	code, _, stderr := runTaxon(t, "", "train --engine mapreduce --runner processes --store badger "+
		"--data $DATA --out $OUT", vars)
	if code != exitUsage || !strings.Contains(stderr, "--store badger: leave it out") {
		t.Errorf("status %d: %q", code, stderr)
	}
}
