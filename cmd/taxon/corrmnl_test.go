package main

import (
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestChainVerbs: a training that has settled says so, one that has not warns; probabilities are a
// distribution, and eval's log-loss is theirs; the means are exported; more iterations want --force;
// what the method is not for is refused in one line.
func TestChainVerbs(t *testing.T) {
	dir := noisyFiles(t)
	vars := map[string]string{"d": dir, "m": filepath.Join(dir, "m")}
	const flags = "train --data $d/train.svm --hierarchy $d/tree.txt --method corrmnl --out $m --json "
	code, _, stderr := runTaxon(t, "", flags+"--x iterations=12 --x burn-in=4 --x leapfrog=2", vars)
	if code != exitDone || !strings.Contains(stderr, "warning: the chains ") || strings.Count(stderr, "warning") != 1 {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	code, stdout, stderr := runTaxon(t, "", flags+"--x iterations=700 --x burn-in=200 --x keep-draws=40 --test "+
		"$d/test.svm "+
		"--eval-every 13 --force --quiet", vars)
	var d trainedDocument
	var own struct {
		RHat    float64 `json:"r_hat_max"`
		ESS     float64 `json:"ess_min"`
		Samples int
	}
	if err := errors.Join(json.Unmarshal([]byte(stdout), &d), json.Unmarshal([]byte(stdout), &own)); err != nil ||
		code != exitDone {
		t.Fatalf("exit status %d, %v: %s", code, err, stderr)
	}
	if d.StoppedBy != "stationary" || d.Certificate != "stationarity" || d.Gap != nil ||
		!(own.RHat >= 1 && own.RHat <= 1.05) || own.ESS < 100 || own.Samples != 40 || d.Test == nil {
		t.Errorf("%s", stdout)
	}
	total, rows := 0.0, 0
	_, test, _ := runTaxon(t, "", "predict --model $m --data $d/test.svm --out - --scores --top 6 --quiet", vars)
	for line := range strings.Lines(test) {
		sum, last := 0.0, 1.0
		for _, s := range strings.Split(strings.TrimSpace(line), ",") {
			p, err := strconv.ParseFloat(s[strings.LastIndexByte(s, ':')+1:], 64)
			if err != nil || p > last || p < 0 {
				t.Fatalf("%q", line)
			}
			sum, last = sum+p, p
		}
		rows++
		total += sum
	}
	if rows == 0 || math.Abs(total-float64(rows)) > 1e-9*float64(rows) {
		t.Errorf("probabilities of %d rows add up to %g", rows, total)
	}
	for want, line := range map[string]string{
		"node c0 ":         "export --model $m --out - --quiet",
		"corrmnl, softmax": "info $m",
		"tree loss":        "eval --model $m --data $d/test.svm --hierarchy $d/tree.txt --quiet",
		`"corrmnl"`: "tune --data $d/train.svm --hierarchy $d/tree.txt --method corrmnl --x iterations=12 --x burn-in=" +
			"4 --folds 2 --out $d/tuned --json --quiet",
		"needs a hierarchy": "train --data $d/train.svm --method corrmnl --out $m-x",
		"C means nothing":   "train --data $d/train.svm --hierarchy $d/tree.txt --method corrmnl --C 3 --out $m-x",
		"leaves no draw":    "train --data $d/train.svm --hierarchy $d/tree.txt --method corrmnl --x burn-in=2500 --out $m-x",
		"whole":             "train --data $d/train.svm --hierarchy $d/tree.txt --method corrmnl --threshold 0.1 --out $m-x",
	} {
		code, stdout, stderr := runTaxon(t, "", line, vars)
		if refused := strings.Contains(line, "$m-x"); !strings.Contains(stdout+stderr, want) ||
			refused != (code == exitUsage) || refused && strings.Count(stderr, "\n") > 1 {
			t.Errorf("%s: exit status %d, want %q: %s%s", line, code, want, stdout, stderr)
		}
	}
}
