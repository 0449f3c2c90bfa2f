package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"taxon/internal/model/explain"
	"taxon/internal/model/measure"
)

// TestHBLRTurns: random rows on which MacKay's step of hblr-m2, extrapolated, turns about a fixed point for
// thousands of sweeps; with a pace for each precision it is there after some hundred. The values
// are of the paper's own updates by another program, in NumPy, to 1e-11 a round.
func TestHBLRTurns(t *testing.T) {
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree.txt")
	if err := os.WriteFile(tree, []byte("r a\nr b\na c0\na c1\nb c2\nb c3\nb c4\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"h": tree, "m": filepath.Join(dir, "m")}
	code, out, stderr := runTaxon(t, "", "train --data testdata/turns.svm --hierarchy $h --method hblr-m2 --bias 3 "+
		"--x tolerance=1e-9 --max-sweeps 1000 --out $m --json --quiet", vars)
	var d trainedDocument
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != exitDone {
		t.Fatal(err, stderr)
	}
	if d.StoppedBy != "stationary" || math.Abs(d.Objective/205.9915754150282-1) > 1e-9 {
		t.Errorf("%+v", d)
	}
	_, out, _ = runTaxon(t, "", "export --model $m --what precision --out - --quiet", vars)
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); f[1] == "a" {
			for column, want := range map[string]float64{"1": 2.5454204730230656, "4": 1.02436140092576,
				"bias": 5.588052506651618} {
				if got := vectorOf(f[2:])[column]; math.Abs(got/want-1) > 1e-7 {
					t.Errorf("precision of feature %s: %.12g, want %.12g", column, got, want)
				}
			}
			return
		}
	}
	t.Errorf("no precisions in %q", out)
}

// TestHBLRVerbs: the report's keys, the exports of means, variances and precisions, and what they
// have to do with each other; probabilities of predict and eval; a warm start; refusals.
func TestHBLRVerbs(t *testing.T) {
	dir := noisyFiles(t)
	vars := map[string]string{"d": dir, "m": filepath.Join(dir, "m"), "w": filepath.Join(dir, "w"), "x": filepath.Join(dir,
		"x"), "r": filepath.Join(dir, "r"), "y": filepath.Join(dir, "y"), "z": filepath.Join(dir, "z"),
		"f": filepath.Join(dir, "f"), "p": filepath.Join(dir, "p")}
	do := taxonOf(t, vars)
	var d trainedDocument
	if err := json.Unmarshal([]byte(do("train --data $d/train.svm --hierarchy $d/tree.txt --method hblr-m3 --x tolerance="+
		"1e-6 --test $d/test.svm --out $m --json --quiet")), &d); err != nil {
		t.Fatal(err)
	}
	own := func(key string) (x float64) {
		if err := json.Unmarshal(d.Own[key], &x); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		return x
	}
	if d.StoppedBy != "stationary" || d.Gap != nil || d.Dual != nil || !(own("tolerance_reached") <= 1e-6) ||
		d.Certificate != "stationarity" {
		t.Errorf("%+v", d)
	}
	if d.Test == nil || d.Test.Probability == nil || !(d.Test.Brier < 1) || !(d.Test.LogLoss < 5) {
		t.Errorf("no probabilities in %+v", d.Test)
	}
	lines := func(what string) map[string][]string {
		out := map[string][]string{}
		for line := range strings.Lines(do("export --model $m --out - --quiet --what " + what)) {
			f := strings.Fields(line)
			out[f[1]] = f[2:]
		}
		return out
	}
	variance, precision, mean := lines("variance"), lines("precision"), lines("mean")
	if out := do("tune --method hblr-m3 --data $d/train.svm --hierarchy " +
		"$d/tree.txt --out $z --quiet"); !strings.Contains(out, "there is nothing to search") || !strings.Contains(out,
		"by hblr-m3, stopped by stationary") {
		t.Errorf("tune: %s", out)
	}
	if out := do("tune --method hblr-m3 --data $d/train.svm --hierarchy $d/tree.txt --bias 0,1 --folds 2 --out $z " +
		"--force --no-train --quiet"); !strings.Contains(out, "< chosen") {
		t.Errorf("tune with a list: %s", out)
	}
	do("train --data $d/train.svm --method blr --out $f --quiet")
	if out := do("eval --model $f --data $d/test.svm"); !strings.Contains(out, "log-loss") || !strings.Contains(out,
		"calibration error") {
		t.Errorf("without a structure: %s", out)
	}
	least, most := math.Inf(1), 0.0
	for name, f := range precision {
		a, err := strconv.ParseFloat(f[0], 64)
		if err != nil || len(f) != 1 {
			t.Fatalf("precision of %s: %q", name, f)
		}
		least, most = min(least, a), max(most, a)
		for column, v := range vectorOf(variance[name]) {
			if v > 1/a*(1+1e-6) {
				t.Errorf("%s: variance %g of %s above its prior's %g", name, v, column, 1/a)
			}
		}
	}
	if len(variance) != len(mean) || len(precision) != len(mean)-1 || math.Abs(least/own("alpha_min")-1) > 1e-12 ||
		math.Abs(most/own("alpha_max")-1) > 1e-12 {
		t.Errorf("%d means, %d variances, %d precisions from %g to %g; the report's are from %g to %g", len(mean),
			len(variance), len(precision), least, most, own("alpha_min"), own("alpha_max"))
	}
	for line := range strings.Lines(do("predict --model $m --data $d/test.svm --out - --quiet --scores --top 2")) {
		_, p, _ := strings.Cut(strings.SplitN(strings.TrimSpace(line), ",", 2)[0], ":")
		if x, err := strconv.ParseFloat(p, 64); err != nil || !(x > 0 && x < 1) {
			t.Fatalf("line %q", line)
		}
	}
	var compared measure.Result
	if err := json.Unmarshal([]byte(do("eval --model $m --data $d/test.svm --compare $m --json --quiet")),
		&compared); err != nil || compared.Probability == nil || *compared.Probability != *d.Test.Probability ||
		*compared.Other.Probability != *d.Test.Probability {
		t.Errorf("compared with itself %+v, the test's %+v, %v", compared, d.Test, err)
	}
	var again trainedDocument
	if err := json.Unmarshal([]byte(do("train --data $d/train.svm --hierarchy $d/tree.txt --method hblr-m3 --x tolerance="+
		"1e-6 --warm-start $m --out $w --json --quiet")), &again); err != nil {
		t.Fatal(err)
	}
	if again.StoppedBy != "stationary" || math.Abs(again.Objective/d.Objective-1) > 1e-5 {
		t.Errorf("from its own means %+v, the first time %+v", again, d)
	}
	explained := func(name string) (e explain.Explanation) {
		if err := json.Unmarshal([]byte(do("explain --model "+name+" --data $d/test.svm --row 1 --json --quiet")),
			&e); err != nil {
			t.Fatal(err)
		}
		for i := range e.Path {
			e.Path[i].Precision, e.Path[i].OfItself = 0, false
		}
		return e
	}
	for threshold, near := range map[string]float64{"0.01": 0.2, "0": 0} { // an exported model has the levels too
		do("export --model $m --format model --threshold " + threshold + " --out $p --force --quiet")
		got, want := explained("$p"), explained("$m")
		if len(want.Path) < 3 || len(got.Path) != len(want.Path) || near == 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("threshold %s: %+v, want %+v", threshold, got, want)
		}
		for i, l := range got.Path {
			if l.Name != want.Path[i].Name || math.Abs(l.Gain-want.Path[i].Gain) > near {
				t.Errorf("threshold %s: level %+v, want %+v", threshold, l, want.Path[i])
			}
		}
	}
	do("train --data $d/train.svm --hierarchy $d/tree.txt --method rr-lr --out $r --quiet")
	for name, text := range map[string]string{"two.svm": "c0 1:1\nc1,c2 2:1\n", "every.svm": "a,b 1:1\na 2:1\na 1:1 2:1\n",
		"three.txt": "r c0\nr c1\nr c2\nr c\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"train --data $d/train.svm --graph $d/tree.txt --method hblr-m1 --out $x": "needs a tree",
		"train --data $d/train.svm --method " +
			"hblr-m2 --C 2 --out $x": "--C means nothing to --method hblr-m2",
		"train --data $d/train.svm --method hblr-m2 --x likelihood=" +
			"multinomial --out $x": "--x likelihood=multinomial: must be one of binary, softmax",
		"train --data $d/two.svm --method hblr-m2 " +
			"--x likelihood=softmax --out $x": "likelihood softmax takes instances of exactly one label; " +
			"of 2, 1 have several",
		"train --data $d/every.svm " +
			"--method hblr-m1 --out $x": `class "a" is that of every instance, so method hblr-m1 has no prior for it`,
		"train --data $d/two.svm --hierarchy $d/three.txt --x prune=none " +
			"--method hblr-m3 --out " +
			"$x": `class "c" has no instance (1 such), so method hblr-m3 has no prior for it: leave --x prune=none out`,
		"train --data $d/train.svm --method hblr-m1 --x prior=gamma --out $x": "--x prior=gamma: must " +
			"be one of fisher, blr",
		"train --data $d/train.svm --method hblr-m1 " +
			"--x prior=-1 --out $x": "--x prior=-1: must be one of fisher, blr",
		"train --data $d/train.svm --method rr-lr " +
			"--x edge-weights=$m --out $x": "must be one of even, depth, size",
		"train --data $d/train.svm --method hblr-m1 --x edge-weights=depth --out $x": "--x edge-weights means " +
			"nothing to --method hblr-m1",
		"train --data $d/train.svm --method hblr-m1 --x prior-scale=0 --out $x": "--x prior-scale=0: must " +
			"be one of paper, median, df",
		"train --data $d/train.svm --method hblr-m2 --x prior-scale=df --out $x": "prior-scale df goes " +
			"with hblr-m1 and hblr-m3: hblr-m2 has a prior for each feature; leave it out",
		"train --data $d/train.svm --method hblr-m2 " +
			"--x tolerance=0 --out $x": "--x tolerance=0: must be above 0",
		"train --data $d/train.svm --hierarchy $d/tree.txt --method hblr-m1 " +
			"--memory 1MB --out $x": "would be needed, --memory is",
		"export --model $r --what precision --out -": "a model of method rr-lr holds no precision",
		"predict --model $p --data $d/test.svm " +
			"--predictive --out -": "was made for predictions by the means alone (export " +
			"--format model, or train --model-size), and holds no variances for --predictive: give the model",
		"export --model $p --what precision --out -": "holds no precision: give the model",
		"export --model $m --what precision " +
			"--format npz --out -": "--what precision goes with --format text",
		"train --data $d/train.svm --method hblr-m1 --out $y --max-sweeps 1 --require-gap --quiet": "stopped by max_sweeps " +
			"before the --x tolerance asked for",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code == exitDone || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, %s", line, code, stderr)
		}
	}
}
