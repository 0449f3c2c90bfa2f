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
)

// TestTreeMachineVerbs: the labels of predict are those of the exported vectors: greatest sums over
// paths, or a descent by greatest products; info, explain, tune and eval take the models; what the
// methods are not for is refused in one line.
func TestTreeMachineVerbs(t *testing.T) {
	dir := noisyFiles(t)
	vars := map[string]string{"d": dir, "m": filepath.Join(dir, "m")}
	do := taxonOf(t, vars)
	children := map[string][]string{"r": {"a", "b"}, "a": {"c0", "c1", "c2"}, "b": {"c3", "c4", "c5"}}
	for _, name := range []string{"hsvm", "hiermult", "transfer", "ot"} {
		flags := "--data $d/train.svm --hierarchy $d/tree.txt --method " + name + " --C 300 "
		var d trainedDocument
		if err := json.Unmarshal([]byte(do("train "+flags+"--gap 1e-3 --eval-every 2 --test $d/test.svm "+
			"--json --quiet --out $m-"+name)), &d); err != nil {
			t.Fatal(err)
		}
		if d.StoppedBy != "gap" || *d.Gap > 1e-3 || d.Test == nil {
			t.Errorf("%s: %+v", name, d.Report)
		}
		vectors := map[string]map[string]float64{}
		for line := range strings.Lines(do("export --model $m-" + name + " --out - --quiet")) {
			f := strings.Fields(line)
			if f[0] != "node" {
				t.Errorf("%s exports %q", name, line)
			}
			vectors[f[1]] = vectorOf(f[2:])
		}
		var want []string
		test, err := os.ReadFile(filepath.Join(dir, "test.svm"))
		if err != nil {
			t.Fatal(err)
		}
		for row := range strings.Lines(string(test)) {
			x := vectorOf(strings.Fields(row)[1:])
			x["bias"] = 1
			score := func(n string) (sum float64) {
				for f, v := range x {
					sum += v * vectors[n][f]
				}
				return sum
			}
			best, most, at := "", 0.0, "r"
			for _, inner := range children["r"] {
				for _, leaf := range children[inner] {
					if z := score(inner) + score(leaf); best == "" || z > most {
						best, most = leaf, z
					}
				}
			}
			for name != "hsvm" && children[at] != nil {
				at = slices.MaxFunc(children[at], func(a, b string) int {
					if score(a) < score(b) {
						return -1
					}
					return 1
				})
				best = at
			}
			want = append(want, best)
		}
		if got := strings.Fields(do("predict --model $m-" + name + " --data $d/test.svm --out - --quiet")); !slices.Equal(got,
			want) {
			t.Errorf("%s predicts %v\nits vectors give %v", name, got, want)
		}
		if info := do("info $m-" + name); !strings.Contains(info, name) {
			t.Errorf("info says %s", info)
		}
		do("eval --model $m-" + name + " --data $d/test.svm --hierarchy $d/tree.txt --quiet")
		if out := do("tune " + flags[:strings.Index(flags, "--C")] + "--C 30,300 --folds 2 --out $d/tuned-" + name +
			" --json --quiet"); !strings.Contains(out, name) {
			t.Errorf("tune says %s", out)
		}
		for line, want := range map[string]string{
			"train --data $d/train.svm --out $d/x --method " +
				name: "method " + name + " needs a hierarchy: " +
				"give --hierarchy FILE",
			"train --data $d/train.svm --graph $d/tree.txt --out $d/x --method " +
				name: "method " + name + " needs a tree",
			"train " + flags + "--positive-weight 2 --out $d/x": "--positive-weight means nothing to --method " + name,
			"train " + flags + "--warm-start $m-" + name +
				" --out $d/x": "--warm-start",
			"export --model $m-" + name +
				" --format npz --out $d/w.npz": "is not a matrix of classes",
			fmt.Sprintf("train %s--rescale %s --out $d/x", flags, map[bool]string{true: "loss",
				false: "margin"}[name == "hsvm"]): "--x rescale",
		} {
			if name == "hsvm" && strings.HasPrefix(line, "export") { // its classes have vectors: the sums
				sumsOf(t, do, dir, children, vectors)
				continue
			}
			if code, _, stderr := runTaxon(t, "", line, vars); code == exitDone || strings.Count(strings.TrimSpace(stderr),
				"\n") > 0 || !strings.Contains(stderr, want) {
				t.Errorf("%s: exit status %d, %s", line, code, stderr)
			}
		}
	}
}

// sumsOf holds the matrix of classes that is exported against the sums of the nodes' vectors.
func sumsOf(t *testing.T, do func(string) string, dir string, children map[string][]string,
	vectors map[string]map[string]float64) {
	t.Helper()
	do("export --model $m-hsvm --format liblinear --out $d/w.model --quiet")
	read := func(name string) []string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
	labels, lines := read("labels.txt"), read("w.model")
	rows := lines[slices.Index(lines, "w")+1:]
	for f, row := range rows {
		column := strconv.Itoa(f + 1)
		if f+1 == len(rows) {
			column = "bias"
		}
		for k, v := range strings.Fields(row) {
			got, err := strconv.ParseFloat(v, 64)
			want := vectors[labels[k]][column]
			for _, inner := range children["r"] {
				if slices.Contains(children[inner], labels[k]) {
					want += vectors[inner][column]
				}
			}
			if err != nil || math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("%s, column %s: %s, not %g", labels[k], column, v, want)
			}
		}
	}
}
