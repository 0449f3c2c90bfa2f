package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/model"
)

// interruptedAt counts as cancelled once a file is there.
type interruptedAt struct {
	context.Context
	path string
}

func (c interruptedAt) Err() error {
	if _, err := os.Stat(c.path); err == nil {
		return context.Canceled
	}
	return c.Context.Err()
}

// A model appears together with its cut-offs, over an older one too. What is interrupted
// between the training and the fit goes on without training again.
func TestModelWithoutItsCutoffsIsNotPublished(t *testing.T) {
	for name, flags := range map[string]string{"whole": "", "pruned": " --threshold 0.01"} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "m")
			trained := filepath.Join(out+".train", "finished", "manifest.json")
			vars := map[string]string{"DATA": writeText(t, "train.svm", multiLabel(400, 1)), "OUT": out}
			line := "train --json --data " + vars["DATA"] + " --out " + out + flags
			var stdout, stderr bytes.Buffer
			code := execute(interruptedAt{t.Context(), trained}, strings.Fields(line), strings.NewReader(""), &stdout, &stderr)
			if code != 130 || !strings.Contains(stderr.String(), "the training is done and kept; to fit it: taxon train") {
				t.Fatalf("exit %d: %s", code, stderr.String())
			}
			if _, err := os.Stat(out); !os.IsNotExist(err) {
				t.Errorf("a model without its cut-offs was published (%v)", err)
			}
			first, err := model.ReadManifest(filepath.Dir(trained))
			if err != nil {
				t.Fatal(err)
			}
			if code, _, stderr := runTaxon(t, "", line+" --C 2", vars); code != 2 || !strings.Contains(stderr,
				"other options (C 1, not 2)") {
				t.Errorf("other options: exit %d %s", code, stderr)
			}
			code, again, _ := runTaxon(t, "", line, vars)
			var r model.Report
			if err := json.Unmarshal([]byte(again), &r); err != nil || code != 0 {
				t.Fatalf("exit %d %v", code, err)
			}
			if r.WeightsSHA256 != first.Report.WeightsSHA256 || r.Seconds != first.Report.Seconds || r.HeldOut == nil {
				t.Errorf("trained again: %+v, first %+v", r, first.Report)
			}
			m, err := model.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if m.Cutoffs == nil || (m.Manifest.Pruned != nil) != (flags != "") {
				t.Errorf("published with cut-offs %v, pruned %v", m.Cutoffs, m.Manifest.Pruned)
			}
			if left, _ := os.ReadDir(filepath.Dir(out)); len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
