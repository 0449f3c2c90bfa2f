package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"taxon/internal/app/demo"
	"taxon/internal/model/measure"
)

// TestSoftmaxVerbs: on feature vectors, the scores of predict are the soft-max of the exported
// weights' margins; a hierarchy is for eval alone; a warm start ends where the cold one does;
// what the method is not for is refused.
func TestSoftmaxVerbs(t *testing.T) {
	dir := noisyFiles(t)
	vars := map[string]string{"d": dir, "m": filepath.Join(dir, "m")}
	do := taxonOf(t, vars)
	train := func(more string) (d trainedDocument) {
		t.Helper()
		if err := json.Unmarshal([]byte(do("train --data $d/train.svm --method mlr --C 2 --gap 1e-8 --json --quiet "+more)),
			&d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	cold := train("--hierarchy $d/tree.txt --test $d/test.svm --eval-every 2 --out $m")
	if cold.StoppedBy != "gap" || string(cold.Own["loss"]) != `"softmax"` || cold.Own["schedule"] != nil ||
		cold.Test == nil || *cold.Gap > 1e-8 || cold.Objective <= 0 {
		t.Errorf("%+v", cold.Report)
	}
	if again := train("--out $d/m2 --threads 1"); again.WeightsSHA256 != cold.WeightsSHA256 {
		t.Error("the hierarchy, or the number of threads, changed the weights")
	}
	warm := train("--out $d/m3 --warm-start $m")
	if math.Abs(warm.Objective-cold.Objective) > 1e-7*cold.Objective || warm.Sweeps >= cold.Sweeps/2 {
		t.Errorf("warm: %d sweeps to %.12g, cold: %d to %.12g", warm.Sweeps, warm.Objective, cold.Sweeps, cold.Objective)
	}

	weights := map[string]map[string]float64{}
	for line := range strings.Lines(do("export --model $m --out - --quiet")) {
		f := strings.Fields(line)
		weights[f[1]] = vectorOf(f[2:])
	}
	test, err := os.ReadFile(filepath.Join(dir, "test.svm"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(do("predict --model $m --data $d/test.svm --scores --top 6 --out - --quiet")),
		"\n")
	for i, row := range strings.Split(strings.TrimSpace(string(test)), "\n") {
		x := vectorOf(strings.Fields(row)[1:])
		x["bias"] = 1
		sum, power := 0.0, map[string]float64{}
		for c, w := range weights {
			margin := 0.0
			for f, v := range x {
				margin += v * w[f]
			}
			power[c] = math.Exp(margin)
			sum += power[c]
		}
		for _, pair := range strings.Split(lines[i], ",") {
			label, text, _ := strings.Cut(pair, ":")
			got, err := strconv.ParseFloat(text, 64)
			if want := power[label] / sum; err != nil || math.Abs(got-want) > 1e-6 {
				t.Errorf("row %d, %s: probability %s, want %g", i+1, label, text, want)
			}
		}
	}
	if out := do("eval --model $m --data $d/test.svm --hierarchy $d/tree.txt --quiet"); !strings.Contains(out,
		"tree loss") {
		t.Errorf("eval says %s", out)
	}
	var measured measure.Result
	picture := filepath.Join(dir, "pictures", "r.svg")
	if err := json.Unmarshal([]byte(do("eval --model $m --data $d/test.svm --reliability "+picture+" --json --quiet")),
		&measured); err != nil {
		t.Fatal(err)
	}
	top := int64(0)
	for _, b := range measured.Reliability {
		top += b.Count
	}
	if drawn, err := os.ReadFile(picture); err != nil || top != int64(measured.Instances) ||
		!strings.Contains(string(drawn), fmt.Sprintf("ECE %.4f</title>", measured.ECE)) {
		t.Errorf("%v: %d probabilities of %d instances, %s", err, top, measured.Instances, drawn)
	}
	if code, _, stderr := runTaxon(t, "", "eval --model $m --data $d/test.svm --reliability $m/r.svg --quiet",
		vars); code != exitUsage || !strings.Contains(stderr, "lies in the model's folder") {
		t.Errorf("a picture in the model: exit status %d: %s", code, stderr)
	}
	do("export --model $m --format npz --out $d/w.npz --quiet")
	if info := do("info $m"); !strings.Contains(info, "mlr, softmax") {
		t.Errorf("info says %s", info)
	}

	if err := os.WriteFile(filepath.Join(dir, "several.svm"), []byte("a,b 1:1\nb 2:1\n 1:2\nc,a 3:1\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"train --data $d/several.svm --method mlr --out $d/x":          "of 4, 2 have several and 1 none",
		"tune --data $d/several.svm --method mlr --folds 2 --out $d/x": "of 4, 2 have several and 1 none",
		"train --data $d/train.svm --method mlr --loss hinge --out $d/x": "--loss hinge: --method mlr has softmax: " +
			"leave it out, or use --method rr-svm, bsvm, td",
		"train --data $d/train.svm --method mlr --positive-weight 2 --out $d/x": "--positive-weight means " +
			"nothing to --method mlr",
		"train --data $d/train.svm --method mlr --x schedule=jacobi --out $d/x": "--x schedule means nothing to --method mlr",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitUsage || strings.Count(stderr, want) != 1 {
			t.Errorf("%s: exit status %d, %s", line, code, stderr)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "x*")); err != nil || left != nil {
			t.Errorf("%s: leaves %v, %v", line, left, err)
		}
	}
}

// TestSoftmaxOnDemo: texts of a hundred classes, each document's first class.
func TestSoftmaxOnDemo(t *testing.T) {
	train, test, hierarchy, _, err := demo.Files()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{"train.txt": train, "test.txt": test, "tree.txt": hierarchy} {
		var out strings.Builder
		for line := range strings.Lines(string(b)) {
			labels, text, ok := strings.Cut(line, "\t")
			if !ok {
				out.WriteString(line)
				continue
			}
			if first, _, _ := strings.Cut(labels, ","); first < "d" {
				out.WriteString(first + "\t" + text)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	vars := map[string]string{"d": dir, "m": filepath.Join(dir, "m")}
	code, stdout, stderr := runTaxon(t, "", "train --data $d/train.txt --text --hierarchy $d/tree.txt --method mlr --C "+
		"30 --test $d/test.txt --out $m --json --quiet", vars)
	var d trainedDocument
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != exitDone {
		t.Fatal(err, code, stderr)
	}
	t.Logf("%d sweeps, micro F1 %.3f", d.Sweeps, d.Test.MicroF1)
	if d.StoppedBy != "gap" || d.Test.MicroF1 < 0.7 {
		t.Errorf("%+v, %+v", d.Report, d.Test)
	}
}

// TestOneClassHint: data of one class are refused with what would help, which instances without
// a label do only where the method takes them and learns from them.
func TestOneClassHint(t *testing.T) {
	vars := map[string]string{"DATA": writeText(t, "t.svm", "x 1:1\nx 2:1\n"), "OUT": filepath.Join(t.TempDir(), "m")}
	for name, want := range map[string]string{
		"rr-svm": "add instances of other classes, or some without a label\n", "mlr": "add instances of other classes\n",
		"msvm": "add instances of other classes\n", "td": "add instances of other classes\n",
	} {
		code, _, stderr := runTaxon(t, "", "train --data $DATA --out $OUT --method "+name, vars)
		if code != exitUsage || !strings.HasSuffix(stderr, want) {
			t.Errorf("%s: exit status %d, %q, want %q", name, code, stderr, want)
		}
	}
}
