package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pathFiles writes rows whose labels are paths of a forest: several, some that end at an inner
// node, some rows without any.
func pathFiles(t *testing.T) (dir string, parent map[string]string) {
	t.Helper()
	dir = t.TempDir()
	parent = map[string]string{"a": "r", "b": "r", "a1": "a", "a2": "a", "b1": "b", "b2": "b", "s1": "s", "s2": "s"}
	tree := "r a\nr b\na a1\na a2\nb b1\nb b2\ns s1\ns s2\n"
	names := []string{"a1", "a2", "b1", "b2", "s1", "s2", "a", "b"}
	r := rand.New(rand.NewPCG(5, 5))
	lines := func(n int) string {
		var out strings.Builder
		for i := range n {
			var labels []string
			words := map[int]bool{1 + r.IntN(20): true}
			for range i % 3 {
				k := r.IntN(len(names))
				labels = append(labels, names[k])
				for l := names[k]; l != ""; l = parent[l] { // a word for each node of the path
					words[30+int(l[0])+7*len(l)+int(l[len(l)-1])] = true
				}
			}
			slices.Sort(labels)
			out.WriteString(strings.Join(slices.Compact(labels), ","))
			for f := range 200 {
				if words[f] {
					fmt.Fprintf(&out, " %d:%.2f", f, 0.5+r.Float64())
				}
			}
			out.WriteString("\n")
		}
		return out.String()
	}
	for name, text := range map[string]string{"train.svm": lines(150), "test.svm": lines(60), "tree.txt": tree} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, parent
}

// pathMethods predict sets of partial paths. in says of the nodes' own scores which nodes are.
var pathMethods = []struct {
	flags string
	in    func(score map[string]float64, parent map[string]string) map[string]bool
}{
	{"--method h-svm", breadthFirst},
	{"--method h-rls --C 3", breadthFirst},
	{"--method hm3 --x label-loss=sibl --C 3", bestUnion},
}

// breadthFirst is the consistent labelling of [JMLR] section 5.
func breadthFirst(score map[string]float64, parent map[string]string) map[string]bool {
	in := map[string]bool{}
	for range 3 { // levels
		for n, s := range score {
			in[n] = s > 0 && (parent[n] == "" || in[parent[n]])
		}
	}
	return in
}

// bestUnion has the union of partial paths with the greatest sum, - being the virtual root.
func bestUnion(score map[string]float64, parent map[string]string) map[string]bool {
	in := map[string]bool{}
	above := func(n string) string {
		if p := parent[n]; p != "" || n == "-" {
			return p
		}
		return "-"
	}
	var sum func(n string) float64
	sum = func(n string) float64 {
		s := score[n]
		for c := range score {
			if above(c) == n {
				s += max(0, sum(c))
			}
		}
		return s
	}
	for range 4 {
		for n := range score {
			in[n] = sum(n) > 0 && (n == "-" || in[above(n)])
		}
	}
	delete(in, "-")
	return in
}

// TestPathMethods: the sets that predict gives are those that follow from the exported vectors;
// eval's measures are those of train's end, and those of the file of predictions; a search,
// info and explain take the models; graphs are refused.
func TestPathMethods(t *testing.T) {
	dir, parent := pathFiles(t)
	for k, m := range pathMethods {
		vars := map[string]string{"d": dir, "m": filepath.Join(dir, fmt.Sprint("m", k)), "x": m.flags}
		do := func(line string) string {
			t.Helper()
			code, stdout, stderr := runTaxon(t, "", strings.ReplaceAll(line, "$x", m.flags), vars)
			if code != exitDone {
				t.Fatalf("%s: exit status %d: %s", line, code, stderr)
			}
			return stdout
		}
		var d trainedDocument
		if err := json.Unmarshal([]byte(do("train --data $d/train.svm --hierarchy $d/tree.txt $x --test $d/test.svm --out "+
			"$m --gap 1e-3 --json --quiet")), &d); err != nil {
			t.Fatal(err)
		}
		if d.StoppedBy != "gap" || d.Test.Hierarchy == nil || d.Test.Hierarchy.F1 < 0.5 {
			t.Errorf("%s: %+v, %+v", m.flags, d.Report, d.Test)
		}
		weights := map[string]map[string]float64{}
		for line := range strings.Lines(do("export --model $m --out - --quiet")) {
			if f := strings.Fields(line); f[0] == "node" || f[0] == "virtual" && len(f) > 2 {
				weights[f[1]] = vectorOf(f[2:])
			}
		}
		test, err := os.ReadFile(filepath.Join(dir, "test.svm"))
		if err != nil {
			t.Fatal(err)
		}
		predicted := do("predict --model $m --data $d/test.svm --out - --quiet")
		lines, empty := strings.Split(predicted, "\n"), 0
		for i, line := range strings.Split(strings.TrimSpace(string(test)), "\n") {
			f := strings.Fields(line)
			if line[0] != ' ' {
				f = f[1:]
			}
			x := vectorOf(f)
			x["bias"] = 1
			score := map[string]float64{}
			for n, w := range weights {
				score[n] = 0
				for f, v := range x {
					score[n] += v * w[f]
				}
			}
			in := m.in(score, parent)
			want := []string{}
			for n := range in {
				lowest := in[n]
				for c, p := range parent {
					lowest = lowest && (p != n || !in[c])
				}
				if lowest {
					want = append(want, n)
				}
			}
			got := strings.FieldsFunc(lines[i], func(c rune) bool { return c == ',' })
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: row %d: %v, want %v of %v", m.flags, i+1, got, want, score)
			}
			if len(got) == 0 {
				empty++
			}
		}
		if empty == 0 || empty > 40 {
			t.Errorf("%s: %d of 60 rows have no label, a third should", m.flags, empty)
		}
		if err := os.WriteFile(filepath.Join(dir, "predicted"), []byte(predicted), 0o600); err != nil {
			t.Fatal(err)
		}
		var byModel, byFile struct {
			MicroF1 float64 `json:"micro_f1"`
			SymDiff float64 `json:"sym_diff"`
		}
		for line, into := range map[string]any{"eval --model $m --data $d/test.svm --json --quiet": &byModel,
			"eval --pred $d/predicted --data $d/test.svm --hierarchy $d/tree.txt --json --quiet": &byFile} {
			if err := json.Unmarshal([]byte(do(line)), into); err != nil {
				t.Fatal(err)
			}
		}
		if byModel != byFile || byModel.SymDiff != d.Test.Hierarchy.SymDiff {
			t.Errorf("%s: %+v by the model, %+v by its predictions", m.flags, byModel, byFile)
		}
		do("explain --model $m --data $d/test.svm --row 2")
		do("info $m")
		do("tune --data $d/train.svm --hierarchy $d/tree.txt --method " + strings.Fields(m.flags)[1] +
			" --C 0.1,1 --goal hier_f1 --folds 2 --out $m-tuned --json --quiet")
		if code, _, stderr := runTaxon(t, "", strings.ReplaceAll("train --data $d/train.svm --graph "+
			"$d/tree.txt $x --out $m-graph", "$x", m.flags), vars); code != exitUsage || !strings.Contains(stderr, "graph") {
			t.Errorf("%s: a graph: exit status %d, %s", m.flags, code, stderr)
		}
	}
}
