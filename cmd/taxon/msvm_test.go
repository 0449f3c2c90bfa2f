package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMultiClassVerbs: the labels of predict are those of the exported weights' greatest margins;
// the objective is that of the exported weights; a hierarchy is for eval alone; tune searches C;
// what the method is not for is refused.
func TestMultiClassVerbs(t *testing.T) {
	dir := noisyFiles(t)
	vars := map[string]string{"d": dir, "m": filepath.Join(dir, "m")}
	do := taxonOf(t, vars)
	train := func(more string) (d trainedDocument) {
		t.Helper()
		if err := json.Unmarshal([]byte(do("train --data $d/train.svm --method msvm --C 2 --json --quiet "+more)),
			&d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := train("--hierarchy $d/tree.txt --test $d/test.svm --eval-every 2 --gap 1e-6 --out $m")
	if d.StoppedBy != "gap" || string(d.Own["loss"]) != `"crammer-singer"` || d.Test == nil || *d.Gap > 1e-6 {
		t.Errorf("%+v, %+v", d.Report, d.Test)
	}
	if again := train("--out $d/m2 --threads 1 --gap 1e-6"); again.WeightsSHA256 != d.WeightsSHA256 {
		t.Error("the hierarchy or the number of threads changed the weights")
	}
	if other := train("--out $d/m3 --seed 5 --gap 1e-6"); math.Abs(other.Objective-d.Objective) > 2e-6*d.Objective {
		t.Errorf("another order ends at %.12g, not %.12g", other.Objective, d.Objective)
	}

	weights := map[string]map[string]float64{}
	var labels []string
	objective := 0.0
	for line := range strings.Lines(do("export --model $m --out - --quiet")) {
		f := strings.Fields(line)
		labels = append(labels, f[1])
		weights[f[1]] = vectorOf(f[2:])
		for _, w := range weights[f[1]] {
			objective += w * w / 2
		}
	}
	margins := func(row string) (label string, all []float64) {
		f := strings.Fields(row)
		x := vectorOf(f[1:])
		x["bias"] = 1
		all = make([]float64, len(labels))
		for k, c := range labels {
			for i, v := range x {
				all[k] += v * weights[c][i]
			}
		}
		return f[0], all
	}
	rows := func(name string) []string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
	var want []string
	for _, row := range rows("test.svm") {
		_, all := margins(row)
		want = append(want, labels[slices.Index(all, slices.Max(all))])
	}
	if got := strings.Fields(do("predict --model $m --data $d/test.svm --out - --quiet")); !slices.Equal(got, want) {
		t.Errorf("predicted %v\nthe weights give %v", got, want)
	}
	for _, row := range rows("train.svm") {
		label, all := margins(row)
		own := slices.Index(labels, label)
		xi := 0.0
		for k := range all {
			if k != own {
				xi = max(xi, 1+all[k]-all[own])
			}
		}
		objective += 2 * xi
	}
	if math.Abs(objective-d.Objective) > 1e-6*objective {
		t.Errorf("objective %.10g, the exported weights' is %.10g", d.Objective, objective)
	}
	if out := do("eval --model $m --data $d/test.svm --hierarchy $d/tree.txt --quiet"); !strings.Contains(out,
		"tree loss") {
		t.Errorf("eval says %s", out)
	}
	if info := do("info $m"); !strings.Contains(info, "msvm, crammer-singer") {
		t.Errorf("info says %s", info)
	}
	do("export --model $m --format npz --out $d/w.npz --quiet")
	if out := do("tune --data $d/train.svm --method msvm --C 0.1,1 --folds 2 --out " +
		"$d/tuned --json --quiet"); !strings.Contains(out, `"msvm"`) {
		t.Errorf("tune says %s", out)
	}

	if err := os.WriteFile(filepath.Join(dir, "several.svm"), []byte("b 2:1\na,b 1:1\n 1:2\nc,a 3:1\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"train --data $d/several.svm --method msvm --out $d/x": "of 4, 2 have several and 1 none; the " +
			"first is instance 2",
		"train --data $d/train.svm --method msvm --loss hinge --out $d/x": "--loss hinge: --method " +
			"msvm has crammer-singer",
		"train --data $d/train.svm --method msvm --positive-weight 2 --out $d/x": "--positive-weight means " +
			"nothing to --method msvm",
		"train --data $d/train.svm --method msvm --warm-start $m --out $d/x": "--warm-start",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitUsage || strings.Count(stderr, want) != 1 {
			t.Errorf("%s: exit status %d, %s", line, code, stderr)
		}
	}
}

// TestVerbsOfLinearMethods: what the methods whose models are a vector a class have in common: predict follows from the
// exported vectors, eval has the tree loss, info and tune know the method, a dense export is written.
func TestVerbsOfLinearMethods(t *testing.T) {
	dir := noisyFiles(t)
	vars := map[string]string{"d": dir}
	do := taxonOf(t, vars)
	test, err := os.ReadFile(filepath.Join(dir, "test.svm"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]string{"flatmult": "300", "rr-msvm": "1", "rr-mlr": "1"} {
		vars["m"] = filepath.Join(dir, name)
		flags := "--data $d/train.svm --hierarchy $d/tree.txt --method " + name
		var d trainedDocument
		if err := json.Unmarshal([]byte(do("train "+flags+" --C "+c+" --gap 1e-4 --test $d/test.svm --eval-every 2 "+
			"--json --quiet --out $m")), &d); err != nil {
			t.Fatal(err)
		}
		if d.StoppedBy != "gap" || *d.Gap > 1e-4 || d.Test == nil {
			t.Errorf("%s: %+v", name, d.Report)
		}
		weights := map[string]map[string]float64{}
		for line := range strings.Lines(do("export --model $m --out - --quiet")) {
			if f := strings.Fields(line); strings.HasPrefix(f[1], "c") {
				weights[f[1]] = vectorOf(f[2:])
			}
		}
		var want []string
		for row := range strings.Lines(string(test)) {
			x := vectorOf(strings.Fields(row)[1:])
			x["bias"] = 1
			best, most := "", math.Inf(-1)
			for class, w := range weights {
				margin := 0.0
				for f, v := range x {
					margin += v * w[f]
				}
				if margin > most {
					best, most = class, margin
				}
			}
			want = append(want, best)
		}
		if got := strings.Fields(do("predict --model $m --data $d/test.svm --out - --quiet")); !slices.Equal(got, want) {
			t.Errorf("%s predicts %v\nits weights give %v", name, got, want)
		}
		for line, want := range map[string]string{
			"eval --model $m --data $d/test.svm --hierarchy $d/tree.txt --quiet": "tree loss",
			"info $m": name,
			"tune " + flags + " --C 1,100 --folds 2 --out $d/tuned-" + name + " --json --quiet": name,
		} {
			if out := do(line); !strings.Contains(out, want) {
				t.Errorf("%s: no %s in %s", line, want, out)
			}
		}
		do("export --model $m --format npz --out $m-dense/ --quiet")
	}
}
