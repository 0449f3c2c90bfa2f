package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/app/tune"
	"taxon/test/dear"
)

// tuneIn runs tune --json in dir and returns its table.
func tuneIn(t *testing.T, dir, out, flags string) *tune.Table {
	t.Helper()
	t.Chdir(dir)
	var stdout, stderr bytes.Buffer
	args := append(strings.Fields("tune --data train.svm --json --quiet --threads 2 "+flags), "--out", out)
	if code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != exitDone {
		t.Fatalf("taxon %v: exit status %d: %s", args, code, stderr.String())
	}
	var r tune.Table
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("standard output is no JSON document: %v", err)
	}
	if left, err := filepath.Glob(out + "?*"); err != nil || len(left) > 0 {
		t.Errorf("left beside the search: %v (%v)", left, err)
	}
	return &r
}

// TestTune searches, continues from a part of the points to the same table, and trains by the
// job file it wrote.
func TestTune(t *testing.T) {
	dir, out := noisyFiles(t), t.TempDir()+"/tuned"
	flags := "--hierarchy tree.txt --C 0.1,1,10 --folds 3 --exhaustive --goal macro"
	r := tuneIn(t, dir, out, flags)
	if len(r.Points) != 3 || r.Goal != "macro_f1" || r.Instances != 300 || r.Skipped != 0 {
		t.Fatalf("%d points for %s on %d instances, %d skipped", len(r.Points), r.Goal, r.Instances, r.Skipped)
	}
	for i, p := range r.Points {
		if p.Value != p.MacroF1 || p.Value <= 0 || p.Value > 1 || len(p.FoldValues) != 3 || p.Unfinished > 0 || p.Tried != 3 {
			t.Errorf("point %d: %+v", i, p)
		}
		if p.Value > r.Points[r.Best].Value {
			t.Errorf("point %d is better than the best", i)
		}
	}
	if r.CPU <= 0 {
		t.Errorf("cost %v", r.CPU)
	}
	points, err := filepath.Glob(filepath.Join(out, "points", "*C1.[0-9].json"))
	if err != nil || len(points) != 3 {
		t.Fatalf("points %v, %v", points, err)
	}
	for _, p := range points[:2] {
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
	again := tuneIn(t, dir, out, flags)
	for i, p := range again.Points {
		if p.Value-r.Points[i].Value > 0.02 || r.Points[i].Value-p.Value > 0.02 {
			t.Errorf("point %d: %v after going on, %v before", i, p.Value, r.Points[i].Value)
		}
	}
	var stdout, stderr bytes.Buffer
	args := []string{"train", "--job", r.JobFile, "--out", t.TempDir() + "/m", "--json", "--quiet", "--gap", "0.1"}
	if code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != exitDone {
		t.Fatalf("taxon %v: %s", args, stderr.String())
	}
	var d trainedDocument
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil || string(d.Own["C"]) != again.Options.Values["C"] ||
		d.Method != "rr-svm" {
		t.Errorf("trained %+v (%v) by %+v", d.Report, err, again.Options)
	}
}

// TestTuneMultiLabel: label sets are cut as train's are. On this data positives score below
// 0, so a threshold at 0 would leave most sets at one label.
func TestTuneMultiLabel(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.svm"), []byte(multiLabel(400, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir() + "/tuned"
	r := tuneIn(t, dir, out, "--method bsvm --C 1 --folds 2 --exhaustive --no-train")
	vars := map[string]string{"DATA": filepath.Join(dir, "train.svm"), "TEST": writeText(t, "test.svm",
		multiLabel(400, 2)), "M": t.TempDir() + "/m"}
	score := func(flags string) float64 {
		code, stdout, stderr := runTaxon(t, "", "eval --json --model $M --data $TEST "+flags, vars)
		var e struct {
			F1 float64 `json:"micro_f1"`
		}
		if err := json.Unmarshal([]byte(stdout), &e); code != 0 || err != nil {
			t.Fatalf("eval: exit %d, %v: %s", code, err, stderr)
		}
		return e.F1
	}
	if code, _, stderr := runTaxon(t, "", "train --quiet --method bsvm --data $DATA --out $M", vars); code != 0 {
		t.Fatal(stderr)
	}
	fitted, zero := score(""), score("--cutoff zero")
	if got := r.Points[0].MicroF1; math.Abs(got-fitted) > math.Abs(got-zero) {
		t.Errorf("tuned at F1 %v: train's model has %v, at threshold 0 %v", got, fitted, zero)
	}
}

// TestTuneSets: sets that hold labels which no row of the data has are measured, too.
func TestTuneSets(t *testing.T) {
	dir := t.TempDir()
	rows, edges := strings.Builder{}, strings.Builder{}
	for i := range 90 {
		c := i % 9
		fmt.Fprintf(&rows, "c%d,g%d %d:1 %d:0.5\n", c, c/3, c+1, 10+i%4)
	}
	for c := range 9 {
		fmt.Fprintf(&edges, "g%d c%d\nr%d g%d\n", c/3, c, c/6, c/3)
	}
	for name, text := range map[string]string{"train.svm": rows.String(), "tree.txt": edges.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, structure := range []string{"--hierarchy tree.txt", ""} {
		r := tuneIn(t, dir, t.TempDir()+"/tuned", structure+" --method h-svm --C 0.1,1 --folds 2 --no-train")
		if len(r.Points) < 2 || !(r.Points[1].Value > 0.6) {
			t.Errorf("%q: %d points, the second reaches %v", structure, len(r.Points), r.Points[1].Value)
		}
	}
}

// TestTuneInterrupted: an interrupted search keeps what is finished, and the same command
// comes to the table of one that ran through.
func TestTuneInterrupted(t *testing.T) {
	dir := noisyFiles(t)
	flags := "--hierarchy tree.txt --method rr-svm,bsvm --C 0.1,1,10,100 --folds 3 --seed 3 --gap 1e-3"
	whole := tuneIn(t, dir, t.TempDir()+"/whole", flags)
	out := t.TempDir() + "/tuned"
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if done, _ := filepath.Glob(filepath.Join(out, "points", "*.json")); len(done) >= 3 {
				cancel()
			}
		}
	}()
	var stdout, stderr bytes.Buffer
	args := append(strings.Fields("tune --data train.svm --threads 2 "+flags), "--out", out)
	code := execute(ctx, args, strings.NewReader(""), &stdout, &stderr)
	cancel()
	if code != exitInterrupted || !strings.Contains(stderr.String(), "to continue from there: taxon tune") {
		t.Skipf("it ended (%d) before it could be interrupted: %s", code, stderr.String())
	}
	job := filepath.Join(out, "job.yaml")
	if text, err := os.ReadFile(job); err != nil || !strings.Contains(string(text), "the best so far of ") ||
		!strings.Contains(string(text), " of 3 folds, ") || !strings.Contains(stderr.String(), "the best point so far is in "+
		job) {
		t.Errorf("the job file of an interrupted search: %s (%v), told as %s", text, err, stderr.String())
	}
	stderr.Reset()
	if code := execute(t.Context(), []string{"train", "--job", job, "--out", t.TempDir() + "/m", "--quiet", "--gap",
		"0.1"}, strings.NewReader(""), &stdout, &stderr); code != exitDone {
		t.Errorf("training by the job file of an interrupted search: %s", stderr.String())
	}
	r := tuneIn(t, dir, out, flags)
	for i, p := range r.Points {
		if w := whole.Points[i]; p.Value != w.Value || p.Sweeps != w.Sweeps || !p.Equal(w.Point) {
			t.Errorf("point %d: %+v, undisturbed %+v", i, p, w)
		}
	}
}

// TestTuneMethods: other methods are searched too, and train takes the job file, which says
// nothing that means nothing to the method.
func TestTuneMethods(t *testing.T) {
	dir := noisyFiles(t)
	for _, method := range dear.Some([]string{"td", "mlr"}, 1) {
		r := tuneIn(t, dir, t.TempDir()+"/tuned", "--hierarchy tree.txt --C 0.1,1 --folds 2 --positive-weight "+
			"1,2 --method rr-svm,"+method)
		if len(r.Points) != map[string]int{"td": 8, "mlr": 6}[method] {
			t.Errorf("%s: %d points", method, len(r.Points))
		}
		r = tuneIn(t, dir, t.TempDir()+"/tuned", "--hierarchy tree.txt --C 0.1,1 --folds 2 --method "+method)
		var d trainedDocument
		code, stdout, stderr := runTaxon(t, "", "train --job $JOB --out $M --json --quiet",
			map[string]string{"JOB": r.JobFile, "M": t.TempDir() + "/m"})
		if err := json.Unmarshal([]byte(stdout), &d); code != exitDone || err != nil || d.Method != method ||
			string(d.Own["C"]) != r.Options.Values["C"] {
			t.Errorf("exit status %d: %s, trained %+v (%v) by %+v", code, stderr, d.Report, err, r.Options)
		}
	}
}

// TestTuneRepeats: what a list names twice is tried once.
func TestTuneRepeats(t *testing.T) {
	dir := noisyFiles(t)
	r := tuneIn(t, dir, t.TempDir()+"/tuned", "--hierarchy tree.txt --method rr-svm,rr-svm --loss hinge,hinge "+
		"--positive-weight 1,1.0 --C 1,1 --folds 2 --exhaustive --no-train")
	if len(r.Points) != 1 {
		t.Errorf("%d points, want 1: %v", len(r.Points), r.Points)
	}
}

func TestTuneMistakes(t *testing.T) {
	dir := noisyFiles(t)
	t.Chdir(dir)
	if err := os.Mkdir("full", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("full/mine", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]string{
		"--goal mcro --out x":                             "did you mean micro?",
		"--goal tree_loss --out x":                        "add --hierarchy FILE",
		"--C 1,-2 --out x":                                "must be above 0",
		"--method rrsvm --out x":                          "did you mean rr-svm?",
		"--folds 3 --first-folds 4 --out x":               "lower it, or raise --folds",
		"--one-se --first-folds 1 --out x":                "two folds or more",
		"--folds 1 --out x":                               "must be from 2 to 100",
		"--folds 99 --C 1 --positive-weight much --out x": "positive-weight",
		"--x anchor=0.1 --out x":                          "is for class graphs",
		"--out full":                                      "is not a folder of a search",
		"--out":                                           "needs a value",
	} {
		var stdout, stderr bytes.Buffer
		args := strings.Fields("tune --data train.svm " + flags)
		code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit status %d, %q, want %q", flags, code, stderr.String(), want)
		}
	}
	if left, _ := filepath.Glob("x*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
