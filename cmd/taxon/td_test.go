package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"taxon/internal/app/demo"
	"taxon/internal/model/explain"
)

// TestTopDownVerbs: on a tree of feature vectors, the labels that predict gives are those that
// a descent along the exported edges gives, and the report lists the problems.
func TestTopDownVerbs(t *testing.T) {
	dir := noisyFiles(t)
	vars := map[string]string{"d": dir, "m": filepath.Join(dir, "m")}
	do := taxonOf(t, vars)
	var d trainedDocument
	if err := json.Unmarshal([]byte(do("train --data $d/train.svm --hierarchy $d/tree.txt --method td --test "+
		"$d/test.svm --out $m --json --quiet")), &d); err != nil {
		t.Fatal(err)
	}
	var nodes []struct {
		Node            string
		Objective, Dual float64
	}
	if err := json.Unmarshal(d.Own["per_node"], &nodes); err != nil || len(nodes) != 3 || nodes[0].Node != "r" ||
		nodes[1].Node != "a" || nodes[2].Node != "b" {
		t.Errorf("per_node is %+v, %v", nodes, err)
	}
	sum := 0.0
	for _, n := range nodes {
		sum += n.Objective
	}
	if math.Abs(sum-d.Objective) > 1e-9*sum || d.Test == nil || d.StoppedBy != "gap" {
		t.Errorf("nodes add up to %v in %+v", sum, d)
	}
	edges := map[string][]string{} // parent -> children, in order
	weights := map[string]map[string]float64{}
	for line := range strings.Lines(do("export --model $m --out - --quiet")) {
		f := strings.Fields(line)
		parent, child, ok := strings.Cut(f[1], ",")
		if f[0] != "edge" || !ok {
			t.Fatalf("line %q", line)
		}
		edges[parent] = append(edges[parent], child)
		weights[child] = vectorOf(f[2:])
	}
	test, err := os.ReadFile(filepath.Join(dir, "test.svm"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(test)) {
		x := vectorOf(strings.Fields(line)[1:])
		x["bias"] = 1
		at := "r"
		for len(edges[at]) > 0 {
			margins := make([]float64, len(edges[at]))
			for k, c := range edges[at] {
				for f, v := range x {
					margins[k] += v * weights[c][f]
				}
			}
			at = edges[at][slices.Index(margins, slices.Max(margins))]
		}
		want = append(want, at)
	}
	if got := strings.Fields(do("predict --model $m --data $d/test.svm --out - --quiet")); !slices.Equal(got, want) {
		t.Errorf("predicted %v\na descent gives %v", got, want)
	}
	if info := do("info $m"); !strings.Contains(info, "td, hinge") {
		t.Errorf("info says %s", info)
	}
	var e explain.Explanation
	if err := json.Unmarshal([]byte(do("explain --model $m --data $d/test.svm --row 1 --json")), &e); err != nil ||
		e.Label != want[0] || len(e.Path) != 3 ||
		e.Score != min(e.Path[1].Gain, e.Path[2].Gain) {
		t.Errorf("explained as %+v, %v", e, err)
	}
}

// vectorOf reads idx:val pairs.
func vectorOf(pairs []string) map[string]float64 {
	out := map[string]float64{}
	for _, p := range pairs {
		f, v, _ := strings.Cut(p, ":")
		out[f], _ = strconv.ParseFloat(v, 64)
	}
	return out
}

// TestTopDownOnDemo: texts, spawned leaves, several labels; the measures of eval are those of
// the training's end, and a pruned model keeps them.
func TestTopDownOnDemo(t *testing.T) {
	train, test, hierarchy, _, err := demo.Files()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{"train.txt": train, "test.txt": test, "tree.txt": hierarchy} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	vars := map[string]string{"d": dir, "m": filepath.Join(dir, "m")}
	do := taxonOf(t, vars)
	var d trainedDocument
	if err := json.Unmarshal([]byte(do("train --data $d/train.txt --text --hierarchy $d/tree.txt --method td --cutoff "+
		"fit --test $d/test.txt --out $m --json --quiet")), &d); err != nil {
		t.Fatal(err)
	}
	if d.Test.MicroF1 < 0.6 || d.HeldOut == nil {
		t.Errorf("micro F1 %v, held out %v", d.Test.MicroF1, d.HeldOut)
	}
	do("export --model $m --out $d/pruned --format model --quiet")
	for _, m := range []string{"m", "pruned"} {
		if got := do("eval --model $d/" + m + " --data $d/test.txt --text --json --quiet"); !strings.Contains(got,
			fmt.Sprintf(`"micro_f1": %v`, d.Test.MicroF1)) {
			t.Errorf("%s: %s, not %v", m, got, d.Test.MicroF1)
		}
	}
	for line := range strings.Lines(do("predict --model $m --data $d/test.txt --text --cutoff instance " +
		"--top 3 --out - --quiet")) {
		if n := strings.Count(line, ","); strings.TrimSpace(line) == "" || n > 2 {
			t.Fatalf("labels %q", line)
		}
	}
}

// TestTopDownRefused: what does not go with td is told at once, with what does.
func TestTopDownRefused(t *testing.T) {
	dir := noisyFiles(t)
	vars := map[string]string{"d": dir, "m": filepath.Join(dir, "m")}
	if err := os.WriteFile(filepath.Join(dir, "dag.txt"), []byte("r a\nr b\na c0\na c1\na c2\nb c2\nb c3\nb c4\nb c5\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	train := "train --data $d/train.svm --method td --out $m --quiet "
	for line, want := range map[string]string{
		train + "--hierarchy $d/tree.txt --x schedule=parity": "rr-svm, rr-lr, hblr-m1",
		train + "--hierarchy $d/tree.txt --warm-start x":      "--warm-start",
		train + "--hierarchy $d/tree.txt --x prior-shift=1":   "--x prior-shift",
		train + "--hierarchy $d/tree.txt --loss logistic":     "rr-lr or blr",
		train + "--hierarchy $d/dag.txt":                      "--x dag=first-parent",
		train + "--graph $d/tree.txt":                         "--x dag=first-parent",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitUsage || !strings.Contains(stderr, want) ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit status %d: %s", line, code, stderr)
		}
	}
	for _, line := range []string{train + "--hierarchy $d/dag.txt --x dag=first-parent", train + "--force"} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitDone {
			t.Errorf("%s: exit status %d: %s", line, code, stderr)
		}
	}
	for line, want := range map[string]string{
		"export --model $m --out $d/w.npz --format npz":                                    "--format text",
		"train --data $d/train.svm --hierarchy $d/tree.txt --warm-start $m --out $d/other": "method td",
		"tune --data $d/train.svm --hierarchy $d/dag.txt --method td --out $d/tuned":       "--x dag=first-parent",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code == exitDone || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d: %s", line, code, stderr)
		}
	}
}
