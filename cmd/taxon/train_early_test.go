package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/model"
)

// A training ends once the goal on held-out rows stands still, with the certificate of the weights
// that were evaluated last. The same data give the same bytes; other held-out rows are another
// training.
func TestEarlyStop(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"DATA": writeText(t, "train.svm", multiLabel(200, 1)), "HELD": writeText(t, "held.svm",
		multiLabel(200, 2)),
		"OTHER": writeText(t, "other.svm", multiLabel(200, 3)), "A": filepath.Join(dir, "a"), "B": filepath.Join(dir, "b")}
	train := func(flags string) (r model.Report) {
		t.Helper()
		code, stdout, stderr := runTaxon(t, "", "train --json --data $DATA --method bsvm --gap 1e-9 "+
			"--max-sweeps 60 --cutoff none "+flags, vars)
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || strings.Contains(stderr, "above the") {
			t.Fatalf("%s: exit %d %v %s", flags, code, err, stderr)
		}
		return r
	}
	r := train("--out $A --early-stop $HELD --eval-every 1 --threads 1")
	if r.StoppedBy != "early_stop" || r.Gap == nil || *r.Gap <= 1e-9 || r.Sweeps < 4 || r.Sweeps > 40 {
		t.Fatalf("stopped by %s after %d sweeps, gap %v", r.StoppedBy, r.Sweeps, r.Gap)
	}
	m, err := model.Open(vars["A"])
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, row := range m.Trace {
		if row.MicroF1 == nil || row.Gap == nil {
			t.Errorf("sweep %d has no score or no gap", row.Sweep)
		}
	}
	if again := train("--out $B --early-stop $HELD --eval-every 1 --threads 2"); again.WeightsSHA256 != r.WeightsSHA256 ||
		again.Sweeps != r.Sweeps {
		t.Errorf("%d sweeps, then %d", r.Sweeps, again.Sweeps)
	}
	for flags, want := range map[string]string{
		"--early-stop $OTHER --eval-every 1": "early-stop", "": "early-stop", "--early-stop -": "give a file",
		"--early-stop /nowhere/at/all":   "no such file",
		"--method td --early-stop $HELD": "--early-stop: a training of --method td ends by itself",
	} {
		code, _, stderr := runTaxon(t, "", "train --data $DATA --method bsvm --gap 1e-9 --max-sweeps 60 "+
			"--cutoff none --out $A "+flags, vars)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d %s", flags, code, stderr)
		}
	}
}
