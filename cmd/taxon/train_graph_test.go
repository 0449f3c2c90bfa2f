package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	graphData  = "a 1:1\na 1:0.9 3:0.1\nb 2:1\nb 2:0.8 3:0.2\nc 3:1\nlone 1:0.5 2:0.5\n"
	graphEdges = "a b\nb p\np c\nb a\nc c\n"
)

// TestTrainOnGraphs: a graph and a DAG train, say what they dropped and how they were
// read, are found finished by the same command, and not by one with another graph.
func TestTrainOnGraphs(t *testing.T) {
	vars := map[string]string{
		"DATA": writeText(t, "t.svm", graphData), "G": writeText(t, "g.txt", graphEdges),
		"OTHER": writeText(t, "other.txt", "a c\nb p\np c\n"), "DAG": writeText(t, "dag.txt",
			"r p\nr q\np a\nq a\np b\nq c\n"),
		"OUT": t.TempDir() + "/m",
	}
	for _, method := range []string{"rr-svm", "rr-lr"} {
		line := "train --data $DATA --graph $G --method " + method + " --x schedule=colour --out $OUT-" + method + " --json"
		code, stdout, stderr := runTaxon(t, "", line, vars)
		if code != 0 || !strings.Contains(stderr, "edges dropped: 1 repeated edge and 1 self-loop (the first in line 4)") ||
			!strings.Contains(stderr, `1 ("lone")`) {
			t.Fatalf("exit %d, %s", code, stderr)
		}
		var r map[string]any
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || r["colours"].(float64) < 2 || r["anchor"] != 0.01 ||
			r["gap"] == nil {
			t.Errorf("report %s: %v", stdout, err)
		}
		if code, _, stderr := runTaxon(t, "", line, vars); code != 0 || !strings.Contains(stderr, "nothing to do") {
			t.Errorf("again: exit %d, %s", code, stderr)
		}
		if code, _, stderr := runTaxon(t, "", strings.Replace(line, "$G ", "$OTHER ", 1), vars); code != exitUsage ||
			!strings.Contains(stderr, "another graph") {
			t.Errorf("another graph: exit %d, %s", code, stderr)
		}
	}
	if code, _, stderr := runTaxon(t, "", "train --data $DATA --hierarchy $DAG --out $OUT-dag", vars); code != 0 ||
		!strings.Contains(stderr, "read as a graph") {
		t.Errorf("DAG: exit %d, %s", code, stderr)
	}
	code, stdout, stderr := runTaxon(t, "", "train --data $DATA --graph $G --x anchor=0 --out $OUT-free --json", vars)
	var r map[string]any
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil || r["gap"] != nil || r["dual"] != nil ||
		r["stopped_by"] != "stationary" || r["certificate"] != "stationarity" {
		t.Errorf("anchor 0: exit %d, %s, %s", code, stdout, stderr)
	}
}

// TestTrainGraphMistakes: one line, exit 2.
func TestTrainGraphMistakes(t *testing.T) {
	vars := map[string]string{
		"DATA": writeText(t, "t.svm", graphData), "G": writeText(t, "g.txt", graphEdges), "EMPTY": writeText(t, "empty.txt",
			"# nothing\n"),
		"CYCLE": writeText(t, "cycle.txt", "a b\nb a\n"), "DAG": writeText(t, "dag.txt", "p a\nq a\n"),
		"NONE": writeText(t, "none.svm", " 1:1\n 2:1\n"), "OUT": t.TempDir() + "/m",
	}
	for line, want := range map[string]string{
		"--graph $G --hierarchy $DAG": "one structure",
		"--graph $G --x schedule=parity": "--x schedule=parity needs a tree: on a graph use twoblock " +
			"or colour or jacobi",
		"--graph $G --x edge-weights=size":         "--x edge-weights=size needs a tree: on a graph use even",
		"--hierarchy $DAG --x schedule=parity":     "needs a tree",
		"--hierarchy $DAG --x dag=refuse":          `dag.txt:2: "a" has a second parent, "q", after "p" in line 1`,
		"--graph $EMPTY":                           "empty graph",
		"--hierarchy $CYCLE":                       "use --graph",
		"--method rr-lr --loss hinge":              "has logistic: leave it out, or use --method rr-svm, bsvm, td",
		"--loss logistic":                          "--method rr-lr",
		"--method bsvm --loss logistic":            "--method rr-lr or blr",
		"--positive-weight 0":                      "above 0",
		"--x internal-weight=0 --hierarchy $CYCLE": "above 0",
		"--x colouring=best --graph $G":            "largest-first",
		"--data $NONE":                             "no instance has a label",
	} {
		code, _, stderr := runTaxon(t, "", strings.Replace("train --out $OUT --data $DATA "+line, "--data $DATA --data",
			"--data", 1), vars)
		if code != exitUsage || !strings.Contains(stderr, want) || strings.Count(strings.TrimSpace(stderr), "\n") > 0 {
			t.Errorf("%s: exit %d, %q, want %q", line, code, stderr, want)
		}
	}
}

// A value that counts for nothing, as another stands behind it, is told.
func TestRepeatedFlags(t *testing.T) {
	vars := map[string]string{"DATA": writeText(t, "t.svm", graphData), "OUT": t.TempDir() + "/m"}
	for line, want := range map[string]string{
		"train --out $OUT --data $DATA --C 1 --C=2":                "--C",
		"train --out $OUT --data $DATA --C 2 --data $DATA":         "",
		"train --out $OUT-2 --data $DATA --quiet --quiet":          "",
		"train --out $OUT-3 --data $DATA --C 1 --C 2 --quiet":      "",
		"train --out $OUT-4 --data $DATA --out $OUT-5 --C -1":      "",
		"ingest --out $OUT-6 --data $DATA --memory 1M --memory 2M": "--memory",
	} {
		_, _, stderr := runTaxon(t, "", line, vars)
		if told := strings.Contains(stderr, "flag "+want+" is given more than once"); told != (want != "") {
			t.Errorf("%s: %q", line, stderr)
		}
	}
}

// Flags that would change nothing are refused.
func TestTrainUselessFlags(t *testing.T) {
	vars := map[string]string{
		"DATA": writeText(t, "t.svm", graphData), "G": writeText(t, "g.txt", graphEdges), "TREE": writeText(t, "tree.txt",
			"r a\nr b\nr c\n"),
		"DAG": writeText(t, "dag.txt", "r p\nr q\np a\nq a\np b\nq c\n"), "SET": t.TempDir() + "/set", "OUT": t.TempDir() +
			"/m",
	}
	if code, _, stderr := runTaxon(t, "", "ingest --data $DATA --out $SET", vars); code != 0 {
		t.Fatal(stderr)
	}
	for line, want := range map[string]string{
		"train --out $OUT --data " +
			"$DATA --x colouring=dsatur": "--x colouring is for the colour schedule",
		"train --out $OUT --data $DATA --x anchor=0.1": "--x anchor is for " +
			"class graphs",
		"train --out $OUT --data $DATA --x anchor=0.1 --hierarchy $TREE":                     "tree.txt is a tree",
		"train --out $OUT --data $DATA --x anchor=0.1 --hierarchy $DAG --x dag=first-parent": "dag.txt is a tree",
		"train --out $OUT --data $DATA --x anchor=0.1 --graph $G --method bsvm": "--x anchor means nothing to " +
			"--method bsvm: leave it out, or use one of rr-svm, rr-lr",
		"train --out $OUT --data $DATA --x internal-weight=2 --method blr": "--x internal-weight means nothing " +
			"to --method blr: leave it out, or use one of rr-svm, rr-lr",
		"train --out $OUT --data $SET --text":                          "is ingested already",
		"train --out $OUT --data $SET --zero-based":                    "is ingested already",
		"submit --coordinator 127.0.0.1:1 --data $DATA --x anchor=0.1": "--x anchor is for class graphs",
		"submit --coordinator 127.0.0.1:1 --data $SET --text":          "is ingested already",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitUsage || !strings.Contains(stderr, want) ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, want %q", line, code, stderr, want)
		}
	}
	for _, line := range []string{
		"train --out $OUT-1 --data $DATA --data $DATA --quiet --quiet",
		"train --out $OUT-2 --data $DATA --x anchor=0.1 --hierarchy $DAG",
		// its defaults elsewhere
		"train --out $OUT-4 --data $DATA --x anchor=0.01 --x internal-weight=1 --x schedule=twoblock --graph $G " +
			"--method bsvm",
		"train --out $OUT-3 --data $DATA --x schedule=colour --x colouring=dsatur --graph $G",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != 0 || strings.Contains(stderr, "more than once") {
			t.Errorf("%s: exit %d, %q", line, code, stderr)
		}
	}
}

// TestSwappedColumns: a hierarchy written CHILD PARENT is trained on as a graph, with a hint.
func TestSwappedColumns(t *testing.T) {
	dir := noisyFiles(t)
	tree, err := os.ReadFile(filepath.Join(dir, "tree.txt"))
	if err != nil {
		t.Fatal(err)
	}
	swapped := ""
	for line := range strings.Lines(string(tree)) {
		words := strings.Fields(line)
		swapped += words[1] + " " + words[0] + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "swapped.txt"), []byte(swapped), 0o666); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"tree.txt": false, "swapped.txt": true} {
		var stdout, stderr bytes.Buffer
		args := []string{"train", "--data", filepath.Join(dir, "train.svm"), "--hierarchy", filepath.Join(dir, file), "--out",
			t.TempDir() + "/m"}
		if code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Fatal(stderr.String())
		}
		if got := strings.Contains(stderr.String(), "columns seem to be swapped"); got != want {
			t.Errorf("%s: a hint %t, want %t: %s", file, got, want, stderr.String())
		}
	}
}
