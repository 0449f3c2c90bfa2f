package main

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
)

// TestPriorShift: the scores of a model with a shift are those of one without it plus
// T ln(n_max/n), and nothing else in it differs but the weights; bias 2 halves what is added
// to the weights.
func TestPriorShift(t *testing.T) {
	data := "a 1:1\na 1:0.9\na 1:0.8 2:0.1\na 1:0.7\nb 2:1\nb 2:0.9\nc 3:1\n"
	vars := map[string]string{"DATA": writeText(t, "train.svm", data), "TREE": writeText(t, "tree.txt",
		"r x\nx a\nx b\nr c\n"), "PLAIN": t.TempDir() + "/p", "SHIFT": t.TempDir() + "/s"}
	for _, method := range []string{"--method bsvm", "--hierarchy $TREE", "--hierarchy $TREE --loss squared-hinge " +
		"--positive-weight 2"} {
		scores := map[string]map[string]float64{}
		objectives := map[string]float64{}
		for model, flags := range map[string]string{"PLAIN": "", "SHIFT": " --x prior-shift=0.5"} {
			code, stdout, stderr := runTaxon(t, "", "train --force --json --quiet --data $DATA --bias 2 --gap 1e-4 --out $"+
				model+" "+method+flags, vars)
			if code != 0 {
				t.Fatal(stderr)
			}
			var r struct {
				Objective float64 `json:"objective"`
			}
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				t.Fatal(err)
			}
			objectives[model] = r.Objective
			_, stdout, _ = runTaxon(t, "", "predict --model $"+model+" --data $DATA --top 3 --scores", vars)
			scores[model] = map[string]float64{}
			first, _, _ := strings.Cut(stdout, "\n")
			for _, pair := range strings.Split(first, ",") {
				name, value, _ := strings.Cut(pair, ":")
				v, err := strconv.ParseFloat(value, 64)
				if err != nil {
					t.Fatal(stdout)
				}
				scores[model][name] = v
			}
		}
		if objectives["PLAIN"] != objectives["SHIFT"] {
			t.Errorf("%s: objectives %v", method, objectives)
		}
		for name, n := range map[string]float64{"a": 4, "b": 2, "c": 1} {
			want := scores["PLAIN"][name] + 0.5*math.Log(4/n)
			if got := scores["SHIFT"][name]; math.Abs(got-want) > 1e-5 {
				t.Errorf("%s: %s scores %v, want %v", method, name, got, want)
			}
		}
	}
	for flags, want := range map[string]string{
		"--bias 0 --x prior-shift=1": "goes into the weights of the bias feature",
		"--x prior-shift=-1":         "must be 0 or more",
	} {
		if code, _, stderr := runTaxon(t, "", "train --data $DATA --method bsvm --out $SHIFT "+flags,
			vars); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, %s", flags, code, stderr)
		}
	}
}
