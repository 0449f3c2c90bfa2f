package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/app/train"
	"taxon/internal/model"
	"taxon/internal/model/labelset"
)

// The first two rows of animalRows score (dog, animal, cat, car) as TestPredict has them:
// car 1 > dog -0.5 > ..., and dog 3.25, animal 3, cat 2, car -5.
func TestPredictCutoffs(t *testing.T) {
	dir := animals(t, 12)
	if _, err := model.AddCutoffs(dir, &labelset.Cutoffs{
		Depth: 3, Global: 1, Intercept: -0.25, Weight: []float64{1, 0, 0}, Class: []float64{2.9, 5, 4, -6}, Rank: 2,
	}, 0.5, 0.5); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"M": dir, "PLAIN": animals(t, 12), "DATA": writeText(t, "test.svm",
		"car 7:1\ncat,dog 2:2 7:4\n")}
	for flags, want := range map[string]string{
		// above the best score minus 0.25, strictly: animal is at it
		"":                          "car\ndog\n",
		"--cutoff instance":         "car\ndog\n",
		"--cutoff scut":             "car\nanimal\n",
		"--cutoff rcut":             "car,dog\ndog,animal\n",
		"--cutoff rcut=1":           "car\ndog\n",
		"--cutoff top=3":            "car,dog,animal\ndog,animal,cat\n",
		"--cutoff top=99":           "car,dog,animal,cat\ndog,animal,cat,car\n",
		"--cutoff argmax":           "car\ndog\n",
		"--cutoff zero":             "car\ndog,animal,cat\n",
		"--cutoff zero --top 2":     "car\ndog,animal\n",
		"--cutoff 3.1":              "car\ndog\n",
		"--cutoff -0.6 --threads 2": "car,dog\ndog,animal,cat\n",
		"--top 2":                   "car,dog\ndog,animal\n",
	} {
		code, stdout, stderr := runTaxon(t, "", "predict --model $M --data $DATA "+flags, vars)
		if code != 0 || stdout != want {
			t.Errorf("%s: exit %d, %q, want %q (%s)", flags, code, stdout, want, stderr)
		}
	}
	for line, want := range map[string]string{
		"predict --model $PLAIN --data $DATA --cutoff scut":                     "has no fitted cut-offs",
		"predict --model $M --data $DATA --cutoff instnce":                      "did you mean instance?",
		"eval --model $PLAIN --data $DATA --cutoff instance":                    "has no fitted cut-offs",
		"eval --pred $DATA --data $DATA --cutoff zero":                          "--cutoff is for models",
		"train --data $DATA --out /nowhere/at/all/m --cutoff fot":               "did you mean fit?",
		"predict --model $PLAIN --data $DATA --cutoff rcut=0":                   "from 1 on",
		"predict --model $PLAIN --data $DATA --cutoff instance --out /tmp/none": "has no fitted cut-offs",
	} {
		code, _, stderr := runTaxon(t, "", line, vars)
		if code != 2 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %s", line, code, stderr)
		}
	}
	// eval measures the same label sets.
	for flags, want := range map[string]float64{"": 2. * 2 / (2 + 3), "--cutoff zero": 2. * 3 / (4 + 3),
		"--cutoff scut": 2. * 1 / (2 + 3)} {
		_, stdout, _ := runTaxon(t, "", "eval --json --model $M --data $DATA "+flags, vars)
		var r struct {
			F1 float64 `json:"micro_f1"`
		}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.F1 < want-1e-12 || r.F1 > want+1e-12 {
			t.Errorf("eval %s: %g, want %g", flags, r.F1, want)
		}
	}
}

// leastHeld is how many instances a cut-off is fitted on, at least.
const leastHeld = train.MinHeld

// multiLabel makes data whose classes are words, two or three an instance, with noise words.
func multiLabel(rows int, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for range rows {
		var labels, features []string
		for c := range 8 {
			on := r.IntN(4) == 0
			if on {
				labels = append(labels, fmt.Sprint("c", c))
			}
			if on != (r.IntN(8) == 0) {
				features = append(features, fmt.Sprintf("%d:%.2f", c+1, 0.2+0.3*r.Float64()))
			}
		}
		for f := range 20 {
			if r.IntN(3) == 0 {
				features = append(features, fmt.Sprintf("%d:0.2", f+9))
			}
		}
		fmt.Fprintln(&b, strings.Join(labels, ","), strings.Join(features, " "))
	}
	return b.String()
}

// Multi-label data gets cut-offs by default, they raise F1 above that at 0, the weights do
// not depend on them, and a finished model without them gets them by the same command.
func TestTrainFitsCutoffs(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"DATA": writeText(t, "train.svm", multiLabel(400, 1)), "TEST": writeText(t, "test.svm",
		multiLabel(300, 2)),
		"A": filepath.Join(dir, "a"), "B": filepath.Join(dir, "b"), "C": filepath.Join(dir, "c")}
	train := func(flags string) (r model.Report) {
		t.Helper()
		code, stdout, stderr := runTaxon(t, "", "train --json --quiet --data $DATA "+flags, vars)
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
			t.Fatalf("%s: exit %d %v %s", flags, code, err, stderr)
		}
		return r
	}
	a, b := train("--out $A --threads 2"), train("--out $B --cutoff none")
	if a.CutoffSeconds == nil || a.HeldOut == nil || a.HeldOut.Instances < leastHeld || b.CutoffSeconds != nil ||
		a.WeightsSHA256 != b.WeightsSHA256 {
		t.Fatalf("%+v, without: %+v", a, b)
	}
	f1 := func(flags string) float64 {
		_, stdout, _ := runTaxon(t, "", "eval --json --data $TEST "+flags, vars)
		var r struct {
			Micro float64 `json:"micro_f1"`
			Macro float64 `json:"macro_f1"`
		}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatal(err)
		}
		return (r.Micro + r.Macro) / 2
	}
	zero, fitted := f1("--model $B"), f1("--model $A")
	if zero != f1("--model $A --cutoff zero") || fitted != f1("--model $A --cutoff "+a.CutoffRule) || fitted <= zero {
		t.Errorf("F1 %g with the fitted cut-off, %g at 0", fitted, zero)
	}
	if b = train("--out $B"); b.CutoffSeconds == nil || *b.HeldOut != *a.HeldOut {
		t.Errorf("a finished model got %+v, want %+v", b.HeldOut, a.HeldOut)
	}
	if got := f1("--model $B"); got != fitted {
		t.Errorf("F1 %g, want %g", got, fitted)
	}
	vars["DATA"] = writeText(t, "few.svm", multiLabel(30, 3))
	code, _, stderr := runTaxon(t, "", "train --data $DATA --out $C", vars)
	if code != 0 || !strings.Contains(stderr, "too few instances") {
		t.Errorf("exit %d %s", code, stderr)
	}
	if left, _ := os.ReadDir(dir); len(left) != 3 {
		t.Errorf("left behind: %v", left)
	}
}

// Cut-offs aim at the goal asked for, every instance is held out once, or a part within the
// time allowed; another goal gives a finished model other cut-offs and the same weights.
func TestCutoffsAimAtTheGoal(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"DATA": writeText(t, "train.svm", multiLabel(400, 1)), "A": filepath.Join(dir, "a"),
		"B": filepath.Join(dir, "b")}
	train := func(flags string) (r model.Report) {
		t.Helper()
		code, stdout, stderr := runTaxon(t, "", "train --json --quiet --data $DATA "+flags, vars)
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
			t.Fatalf("%s: exit %d %v %s", flags, code, err, stderr)
		}
		return r
	}
	mean := train("--out $A --threads 1")
	if mean.CutoffGoal != "mean_f1" || mean.HeldOut.Instances != 400 {
		t.Errorf("%s on %+v", mean.CutoffGoal, mean.HeldOut)
	}
	micro := train("--out $A --goal micro_f1")
	if micro.CutoffGoal != "micro_f1" || micro.WeightsSHA256 != mean.WeightsSHA256 || micro.Seconds != mean.Seconds ||
		micro.HeldOut.Global.MicroF1 < mean.HeldOut.Global.MicroF1 {
		t.Errorf("%+v, at the mean %+v", micro, mean)
	}
	if again := train("--out $B --goal micro_f1 --threads 2"); *again.HeldOut != *micro.HeldOut {
		t.Errorf("%+v, from a finished model %+v", again.HeldOut, micro.HeldOut)
	}
	if bounded := train("--out $B --force --x cutoff-time=1e-9"); bounded.HeldOut.Instances != 80 ||
		bounded.WeightsSHA256 != mean.WeightsSHA256 {
		t.Errorf("within no time: %+v", bounded.HeldOut)
	}
	if code, _, stderr := runTaxon(t, "", "train --data $DATA --out $B --goal micro_f2", vars); code != 2 ||
		!strings.Contains(stderr, "did you mean micro_f1?") {
		t.Errorf("exit %d %s", code, stderr)
	}
}
