package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"taxon/internal/app/tune"
)

// TestInstanceWeightsVerbs: the folder that ingest makes has the weights, as info says, and trains
// what the file beside the instances trains; a warm start from a model without weights ends where
// none does; a file that does not fit is refused with its line.
func TestInstanceWeightsVerbs(t *testing.T) {
	dir := noisyFiles(t)
	vars := map[string]string{"d": dir}
	do := func(line string, into any) {
		t.Helper()
		code, stdout, stderr := runTaxon(t, "", line, vars)
		if code != exitDone {
			t.Fatalf("%s: exit status %d: %s", line, code, stderr)
		}
		if text, ok := into.(*string); ok {
			*text = stdout
		} else if err := json.Unmarshal([]byte(stdout), into); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintln(&b, i%4)
	}
	for name, text := range map[string]string{"w.txt": b.String(), "bad.txt": "1\n1\n-1\n", "short.txt": "1\n1\n",
		"ones.txt": strings.Repeat("1\n", 300)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var ingested ingestReport
	do("ingest --data $d/train.svm --instance-weights $d/w.txt --out $d/set --json --quiet", &ingested)
	if ingested.Instances != 225 || ingested.LeftOut != 75 || ingested.Weights != 450 {
		t.Errorf("%+v", ingested)
	}
	var text string
	var planned, plain struct {
		Instances  int64   `json:"instances"`
		Nonzeros   int64   `json:"nonzeros"`
		ClassSizes any     `json:"class_sizes"`
		Weights    float64 `json:"instance_weights"`
		LeftOut    int64   `json:"left_out"`
		Plan       any     `json:"plan"`
	}
	do("info --plan $d/set --json", &plain)
	do("info --plan --data $d/train.svm --instance-weights $d/w.txt --json --quiet", &planned)
	if planned.LeftOut != 75 || planned.Plan == nil {
		t.Errorf("info --plan with weights: %+v", planned)
	}
	if planned.LeftOut = 0; planned.Weights != 450 || planned.Instances != plain.Instances ||
		planned.Nonzeros != plain.Nonzeros || !reflect.DeepEqual(planned.ClassSizes, plain.ClassSizes) {
		t.Errorf("info --plan with weights: %+v, of the folder that has them %+v", planned, plain)
	}
	if do("info --plan $d/train.svm --instance-weights $d/w.txt --quiet", &text); !strings.Contains(text,
		"left out    75 of weight 0") || !strings.Contains(text, "weighing    450 in all") {
		t.Errorf("info says %s", text)
	}
	for line, want := range map[string]string{
		"info $d/train.svm --instance-weights $d/bad.txt":                    "bad.txt:3: weight -1 is below 0",
		"info $d/train.svm --instance-weights $d/short.txt":                  "the weights end here",
		"info $d/set --instance-weights $d/w.txt":                            "has them within",
		"info --plan --like lwiki --scale 0.001 --instance-weights $d/w.txt": "leave it out",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d: %s", line, code, stderr)
		}
	}
	if do("info $d/set", &text); !strings.Contains(text, "weighing    450 in all") || !strings.Contains(text,
		"instances   225") {
		t.Errorf("info says %s", text)
	}
	var beside, within, ones, none trainedDocument
	do("train --data $d/train.svm --instance-weights $d/w.txt --out $d/beside --json --quiet", &beside)
	do("train --data $d/set --out $d/within --json --quiet", &within)
	do("train --data $d/train.svm --instance-weights $d/ones.txt --out $d/ones --json --quiet", &ones)
	do("train --data $d/train.svm --out $d/none --json --quiet", &none)
	if beside.WeightsSHA256 != within.WeightsSHA256 || beside.Weights != 450 || beside.Instances != 225 {
		t.Errorf("%+v, ingested before %+v", beside.Report, within.Report)
	}
	if ones.WeightsSHA256 != none.WeightsSHA256 || none.Weights != 0 || none.WeightsSHA256 == beside.WeightsSHA256 {
		t.Errorf("%+v, without weights %+v", ones.Report, none.Report)
	}
	if do("info $d/beside", &text); !strings.Contains(text, "weighing    450 in all") {
		t.Errorf("info says %s", text)
	}
	for _, how := range []string{"--hierarchy $d/tree.txt", "--hierarchy $d/tree.txt --loss squared-hinge",
		"--hierarchy $d/tree.txt --method rr-lr", "--graph $d/tree.txt", "--method mlr"} {
		var plain, cold, warm trainedDocument
		how += " --data $d/train.svm --gap 1e-5 --json --quiet --force "
		do("train --out $d/m1 "+how, &plain)
		how += "--instance-weights $d/w.txt "
		do("train --out $d/m2 "+how, &cold)
		do("train --warm-start $d/m1 --out $d/m3 "+how, &warm)
		if *warm.Gap > 1e-5 || math.Abs(warm.Objective/cold.Objective-1) > 2e-5 ||
			math.Abs(warm.Objective/plain.Objective-1) < 1e-2 {
			t.Errorf("%s: from a model without weights %v, from nothing %v", how, warm.Objective, cold.Objective)
		}
	}
	for line, want := range map[string]string{
		"train --data $d/train.svm --instance-weights $d/bad.txt --out $d/x":   "bad.txt:3: weight -1 is below 0",
		"train --data $d/train.svm --instance-weights $d/short.txt --out $d/x": "short.txt:2: the weights end here",
		"ingest --data $d/train.svm --instance-weights $d/none.txt --out $d/x": "none.txt",
		"train --data $d/train.svm --instance-weights - --out $d/x":            "--instance-weights -: give a file",
		"train --data $d/set --instance-weights $d/w.txt --out $d/x": "is ingested already: give " +
			"them to `taxon ingest`",
		"train --data $d/bad.txt --data $d/set --instance-weights w --out $d/x": "/set is ingested already",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, %s", line, code, stderr)
		}
	}
}

// TestTuneWeights: the folds of a search take their instances' weights: where all are 0 or 1 its
// table is that of the instances of weight 1 alone, and others give another; train's job file
// names them.
func TestTuneWeights(t *testing.T) {
	dir := noisyFiles(t)
	data, err := os.ReadFile(filepath.Join(dir, "train.svm"))
	if err != nil {
		t.Fatal(err)
	}
	var kept, zeros, others strings.Builder
	i := 0
	for line := range strings.Lines(string(data)) {
		fmt.Fprintln(&others, []float64{0, 50, 0.02}[i%3])
		if i++; i%3 == 1 {
			fmt.Fprintln(&zeros, 0)
			continue
		}
		fmt.Fprintln(&zeros, 1)
		kept.WriteString(line)
	}
	part := t.TempDir()
	for path, text := range map[string]string{filepath.Join(part, "train.svm"): kept.String(),
		filepath.Join(dir, "zeros"): zeros.String(), filepath.Join(dir, "others"): others.String()} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const flags = "--method bsvm --C 0.1,1 --folds 2 --exhaustive "
	out := filepath.Join(t.TempDir(), "tuned")
	want := tuneIn(t, part, filepath.Join(t.TempDir(), "part"), flags)
	got := tuneIn(t, dir, filepath.Join(t.TempDir(), "zeros"), flags+"--instance-weights zeros")
	other := tuneIn(t, dir, out, flags+"--instance-weights others")
	same := func(a, b *tune.Table) bool {
		for i := range a.Points {
			if !reflect.DeepEqual(a.Points[i].FoldValues, b.Points[i].FoldValues) {
				return false
			}
		}
		return len(a.Points) == len(b.Points) && a.Instances == b.Instances
	}
	if !same(got, want) {
		t.Errorf("%+v, of the instances alone %+v", got.Points, want.Points)
	}
	if same(other, want) {
		t.Error("weights change no fold")
	}
	job, err := os.ReadFile(filepath.Join(out, "job.yaml"))
	if err != nil || !strings.Contains(string(job), "\ninstance-weights: ") {
		t.Errorf("%s, %v", job, err)
	}
}
