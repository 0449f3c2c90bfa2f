package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"taxon/internal/cluster/jobs"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/export"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/predict"
)

// animals is modeltest.Animals, at a place of its own.
func animals(t *testing.T, positives int64) string { return modeltest.Animals(t, positives) }

// runTaxon runs one command line; $NAME words are taken from vars.
func runTaxon(t *testing.T, stdin, line string, vars map[string]string) (code int, stdout, stderr string) {
	t.Helper()
	args := strings.Fields(line)
	for i, arg := range args {
		args[i] = os.Expand(arg, func(name string) string { return vars[name] })
	}
	var out, errw bytes.Buffer
	code = execute(t.Context(), args, strings.NewReader(stdin), &out, &errw)
	writesFlags(t, args, out.String()+errw.String())
	return code, out.String(), errw.String()
}

// taxonOf runs lines that must end well, and gives what they print.
func taxonOf(t *testing.T, vars map[string]string) func(line string) string {
	return func(line string) string {
		t.Helper()
		code, stdout, stderr := runTaxon(t, "", line, vars)
		if code != exitDone {
			t.Fatalf("%s: exit status %d: %s", line, code, stderr)
		}
		return stdout
	}
}

// splitWarnings takes the warnings out of what a run wrote to stderr.
func splitWarnings(stderr string) (rest string, warnings []string) {
	for line := range strings.Lines(stderr) {
		if w, ok := strings.CutPrefix(line, "taxon: warning: "); ok {
			warnings = append(warnings, w)
		} else {
			rest += line
		}
	}
	return rest, warnings
}

func writeText(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Five instances: with and without labels, unknown features, none at all.
const animalRows = "car 7:1\ncat,dog 2:2 7:4\n\n 7:2 5:9 # no label\n7:2\ncat\n"

func TestPredict(t *testing.T) {
	single, multi := animals(t, 10), animals(t, 12)
	data := writeText(t, "test.svm", animalRows)
	out := filepath.Join(t.TempDir(), "out.txt")
	vars := map[string]string{"S": single, "M": multi, "DATA": data, "OUT": out}
	for line, want := range map[string]string{
		"predict --model $S --data $DATA --out -":     "car\ndog\ndog\ndog\ncar\n",
		"predict --model $M --data $DATA --threads 3": "car\ndog,animal,cat\ndog\ndog\ncar\n",
		"predict --model $S --data " +
			"$DATA --top 2 --scores": "car:1,dog:-0.5\ndog:3.25,animal:3\ndog:-0.25,animal:-0.5\ndog:-0.25,animal:-0.5\ncar:3,dog:-0.75\n",
		"predict --model $S --data $DATA --top 99":                 "car,dog,animal,cat\ndog,animal,cat,car\ndog,animal,cat,car\ndog,animal,cat,car\ncar,dog,animal,cat\n",
		"predict --model $S --data - --quiet --out - --zero-based": "car\ndog\ndog\ndog\ncar\n",
	} {
		stdin := "car 6:1\ncat 1:2 6:4\n6:2\n6:2\ncat\n"
		code, stdout, stderr := runTaxon(t, stdin, line, vars)
		if code != 0 || stdout != want {
			t.Errorf("%s: exit %d, %q, want %q (%s)", line, code, stdout, want, stderr)
		}
	}
	code, stdout, _ := runTaxon(t, "", "predict --model $S --data $DATA --out $OUT --json", vars)
	var r predict.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || r.Instances != 5 || r.Labels != 5 {
		t.Errorf("--json: exit %d, %q, %v", code, stdout, err)
	}
	if b, _ := os.ReadFile(out); string(b) != "car\ndog\ndog\ndog\ncar\n" {
		t.Errorf("file: %q", b)
	}
}

// An ingested data set gives the same labels as the file it was made from.
func TestPredictIngested(t *testing.T) {
	vars := map[string]string{"S": animals(t, 10), "DATA": writeText(t, "test.svm", animalRows),
		"SET": filepath.Join(t.TempDir(), "set")}
	if code, _, stderr := runTaxon(t, "", "ingest --data $DATA --out $SET --quiet", vars); code != 0 {
		t.Fatal(stderr)
	}
	for _, verb := range []string{"predict --model $S --top 3 --scores --data", "eval --json --model $S --data"} {
		_, file, _ := runTaxon(t, "", verb+" $DATA", vars)
		code, set, stderr := runTaxon(t, "", verb+" $SET", vars)
		if code != 0 || set != file || file == "" {
			t.Errorf("%s: exit %d, %q from the set, %q from the file (%s)", verb, code, set, file, stderr)
		}
	}
}

func TestExport(t *testing.T) {
	out := filepath.Join(t.TempDir(), "w.txt")
	parts := filepath.Join(t.TempDir(), "parts")
	vars := map[string]string{"S": animals(t, 10), "OUT": out, "PARTS": parts}
	want := "virtual - 7:0.5 bias:-1\nnode animal 2:1.5 7:0.25 bias:-1\nspawned animal 2:1.5 7:0.25 bias:-1\n" +
		"node cat 2:1.5 100:0.1 bias:-1\nnode dog 2:1.5 7:0.25 bias:-0.75\nnode car 7:-2 bias:3\n"
	code, stdout, stderr := runTaxon(t, "", "export --format text --model $S --out -", vars)
	if code != 0 || stdout != want {
		t.Errorf("stdout: exit %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = runTaxon(t, "", "export --format text --model $S --out $OUT --json", vars)
	var r export.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || r.Nodes != 6 || r.Bytes != int64(len(want)) {
		t.Errorf("file: exit %d %q %v %s", code, stdout, err, stderr)
	}
	if b, _ := os.ReadFile(out); string(b) != want {
		t.Errorf("file: %q", b)
	}
	code, _, stderr = runTaxon(t, "", "export --format text --model $S --out $PARTS/", vars)
	if b, _ := os.ReadFile(filepath.Join(parts, "part-00000.txt")); code != 0 || string(b) != want {
		t.Errorf("parts: exit %d %q %s", code, b, stderr)
	}
	if _, err := os.Stat(filepath.Join(parts, "_SUCCESS")); err != nil {
		t.Error(err)
	}
	code, stdout, _ = runTaxon(t, "", "export --model $S --out - --threshold 0.3", vars)
	if code != 0 || strings.Contains(stdout, "0.25") || strings.Contains(stdout, "100:") || !strings.Contains(stdout,
		"7:0.5") {
		t.Errorf("threshold: %s", stdout)
	}
}

// Truth against predictions of the model: car/car, cat+dog/dog, none/dog, none/dog, cat/car.
func TestEvalModel(t *testing.T) {
	vars := map[string]string{"S": animals(t, 10), "DATA": writeText(t, "test.svm", animalRows)}
	code, stdout, stderr := runTaxon(t, "", "eval --json --model $S --data $DATA --by-level --by-size", vars)
	var r map[string]any
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
		t.Fatalf("exit %d %v %s %s", code, err, stdout, stderr)
	}
	for key, want := range map[string]float64{
		"instances": 5, "classes": 4, "micro_precision": 2.0 / 5, "micro_recall": 2.0 / 4, "zero_one": 4.0 / 5,
		// F1: animal 0, cat 0, dog 2/(2+2) = 1/2, car 2/(2+1) = 2/3
		"macro_f1": (1.0/2 + 2.0/3) / 4, "p@1": 2.0 / 5,
	} {
		if got, ok := r[key].(float64); !ok || got < want-1e-12 || got > want+1e-12 {
			t.Errorf("%s: %v, want %v", key, r[key], want)
		}
	}
	for _, key := range []string{"micro_f1", "p@3", "p@5", "ndcg@5", "psp@1", "psndcg@5", "tree_loss", "sym_diff",
		"l_H_unif",
		"l_Htilde_subtree", "hier_f1", "by_level", "by_size"} {
		if r[key] == nil {
			t.Errorf("no %s", key)
		}
	}
	code, stdout, stderr = runTaxon(t, "", "eval --model $S --data $DATA --by-level --by-size", vars)
	for _, want := range []string{"5 instances, 4 classes of the training data", "micro F1", "nDCG@5", "by level",
		"by training documents"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("exit %d: no %q in\n%s%s", code, want, stdout, stderr)
		}
	}
}

// A model and the file of its predictions are measured alike, and do not differ from each other.
func TestEvalPredictionFiles(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"S": animals(t, 10), "M": animals(t, 12), "DATA": writeText(t, "test.svm", animalRows),
		"TREE": writeText(t, "tree.txt", "animal cat\nanimal dog\n"), "PRED": filepath.Join(dir, "p"),
		"RANK": filepath.Join(dir, "r")}
	for _, line := range []string{"predict --model $S --data $DATA --scores --out $PRED", "predict --model $S --data " +
		"$DATA --top 5 --out $RANK"} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != 0 {
			t.Fatal(stderr)
		}
	}
	get := func(line string) map[string]any {
		t.Helper()
		code, stdout, stderr := runTaxon(t, "", line, vars)
		var r map[string]any
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
			t.Fatalf("%s: exit %d %v %s %s", line, code, err, stdout, stderr)
		}
		return r
	}
	byModel := get("eval --json --model $S --data $DATA")
	byFile := get("eval --json --pred $PRED --rank $RANK --data $DATA --hierarchy $TREE")
	for _, key := range []string{"micro_f1", "micro_precision", "zero_one", "p@1", "p@3", "p@5", "ndcg@5", "tree_loss",
		"hier_f1", "l_H_sibl"} {
		if byModel[key] != byFile[key] || byModel[key] == nil {
			t.Errorf("%s: %v by the model, %v by the file", key, byModel[key], byFile[key])
		}
	}
	if byFile["classes"] != 3.0 {
		t.Errorf("classes of the data: %v", byFile["classes"])
	}
	same := get("eval --json --model $S --data $DATA --compare $PRED")
	sign := same["sign_test"].(map[string]any)
	if sign["n_plus"] != 0.0 || sign["n_minus"] != 0.0 || sign["p"] != 1.0 {
		t.Errorf("against its own predictions: %v", sign)
	}
	for _, line := range []string{"eval --json --model $S --data $DATA --compare $M", "eval --json --pred $PRED " +
		"--data $DATA --compare $M"} {
		// The multi-label model also says animal and cat for the second instance: cat is right, animal wrong.
		r := get(line)
		sign = r["sign_test"].(map[string]any)
		if sign["n_plus"] != 1.0 || sign["n_minus"] != 1.0 || r["wilcoxon"] == nil || r["other"] == nil {
			t.Errorf("%s: %v", line, sign)
		}
	}
	_, stdout, _ := runTaxon(t, "", "eval --model $S --data $DATA --compare $M --by-size", vars)
	for _, want := range []string{"against ", "1 won, 1 lost", "gain"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

func TestInfo(t *testing.T) {
	vars := map[string]string{"S": animals(t, 10), "DATA": writeText(t, "test.svm", animalRows),
		"SET":  filepath.Join(t.TempDir(), "set"),
		"TREE": writeText(t, "tree.txt", "# classes\nanimal cat\nanimal dog # barks\n"), "TEXT": writeText(t, "x.txt",
			"cat\tthe cat sat\ndog\tthe dog sat\n")}
	if code, _, stderr := runTaxon(t, "", "ingest --data $DATA --out $SET --quiet", vars); code != 0 {
		t.Fatal(stderr)
	}
	for line, want := range map[string][]string{
		"info $S": {"a model", "rr-svm, hinge", "classes     4", "6 nodes: 4 terminals (1 for labels of internal nodes)",
			"sha256"},
		"info $SET": {"an ingested data set", "instances   5", "features    3", "memory"},
		"info $DATA --hierarchy $TREE": {"a file of instances", "instances   5", "features    3",
			"classes     3, 0.80 labels",
			"2 at leaves, 0 at internal nodes, 1 outside", "memory"},
		"info $TREE":        {"a class structure", "3 nodes, 2 edges, 1 root, 2 leaves, depth 1"},
		"info $TEXT --text": {"a file of instances", "instances   2, text", "classes     2"},
		"info -":            {"a class structure"},
	} {
		code, stdout, stderr := runTaxon(t, "a b\na c\n", line, vars)
		for _, w := range want {
			if code != 0 || !strings.Contains(stdout, w) {
				t.Errorf("%s: exit %d, no %q in\n%s%s", line, code, w, stdout, stderr)
			}
		}
	}
	if code, _, stderr := runTaxon(t, "", "info $TEXT", vars); code != exitUsage || !strings.Contains(stderr,
		"add --text") {
		t.Errorf("text without --text: exit %d, %q", code, stderr)
	}
	broken := map[string]string{"BROKEN": writeText(t, "broken.svm", "cat\t1:1\ndog\tx\n")}
	if code, _, stderr := runTaxon(t, "", "info $BROKEN", broken); code != exitUsage || strings.Contains(stderr,
		"--text") {
		t.Errorf("broken vectors: exit %d, %q", code, stderr)
	}
	for line, kind := range map[string]string{"info $S": "model", "info $SET": "dataset", "info $DATA": "data",
		"info $TREE": "structure"} {
		code, stdout, _ := runTaxon(t, "", line+" --json", vars)
		var r map[string]any
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || r["kind"] != kind {
			t.Errorf("%s: exit %d, kind %v, %v", line, code, r["kind"], err)
		}
		if kind == "model" {
			report := r["report"].(map[string]any)
			if report["method"] != "rr-svm" || len(report["weights_sha256"].(string)) != 64 {
				t.Errorf("report: %v", report)
			}
		}
	}
}

// Every mistake ends in exit status 2, one line that says where, and no output file.
func TestModelVerbMistakes(t *testing.T) {
	good := animals(t, 10)
	damaged := animals(t, 10)
	shard := filepath.Join(damaged, "weights-00000.bin")
	b, err := os.ReadFile(shard)
	if err != nil {
		t.Fatal(err)
	}
	b[40] ^= 1
	os.WriteFile(shard, b, 0o666)
	full, half := t.TempDir(), filepath.Join(t.TempDir(), "half")
	os.WriteFile(filepath.Join(full, "x"), nil, 0o666)
	if err := errors.Join(os.Mkdir(half+".train", 0o777), fs.Mark(half+".train")); err != nil {
		t.Fatal(err)
	}
	// own.train is the user's file, own2.train the user's folder
	own := filepath.Join(t.TempDir(), "own")
	os.WriteFile(own+".train", []byte(animalRows), 0o666)
	os.MkdirAll(own+"2.train/rows", 0o777)
	const unfinished = "half: the training of this model has not ended, and "
	vars := map[string]string{"S": good, "BAD": damaged, "DATA": writeText(t, "test.svm", animalRows), "DIR": t.TempDir(),
		"FULL": full, "HALF": half, "OWN": own,
		"BROKEN": writeText(t, "broken.svm", "cat 1:1\ndog 0:1\n"), "SHORT": writeText(t, "short", "cat\n"),
		"NONE": writeText(t, "none.svm", "cow 7:1\n"), "EMPTY": writeText(t, "empty", "")}
	for line, want := range map[string]string{
		"predict --data $DATA":                                                        "--model",
		"predict --model $S":                                                          "--data",
		"predict --model $S/none --data $DATA":                                        "no such model",
		"predict --model $DATA --data $DATA":                                          "is a file",
		"predict --model $DIR --data $DATA":                                           "not a model",
		"predict --model $BAD --data $DATA":                                           "weights-00000.bin: SHA-256",
		"predict --model $S --data $DIR/none":                                         "no such file",
		"predict --model $S --data $BROKEN --out $DIR/o":                              "broken.svm:2: ",
		"predict --model $S --data $EMPTY":                                            "empty",
		"predict --model $S --data $DATA --text":                                      "leave out --text",
		"predict --model $S --data $DATA --top -1":                                    "--top -1",
		"predict --model $S --data $DATA --json":                                      "--out",
		"predict --model $S --data $DATA --out $DATA/o":                               "test.svm/o",
		"predict --model $S --data $BROKEN --out $DIR/new/o":                          "broken.svm:2: ",
		"predict --model $HALF --data $DATA":                                          unfinished,
		"eval --model $HALF --data $DATA":                                             unfinished,
		"eval --model $S --data $DATA --compare $HALF":                                unfinished,
		"explain --model $HALF --data $DATA":                                          unfinished,
		"export --model $HALF --out $DIR/w":                                           unfinished,
		"info $HALF":                                                                  unfinished,
		"train --data $DATA --out $DIR/w --warm-start $HALF":                          unfinished,
		"train --data $DATA --out $DIR/w --warm-start $OWN":                           "own: is not a model",
		"train --data $DATA --out $DIR/w --warm-start ${OWN}2":                        "own2: is not a model",
		"predict --model $OWN --data $DATA":                                           "no such model",
		"info $OWN":                                                                   "no such file",
		"predict --model $S --data $DATA --out $DIR":                                  "is a directory",
		"predict --model $S --data $DATA --thread 2":                                  "did you mean --threads?",
		"eval --data $DATA":                                                           "--model DIR or --pred FILE",
		"eval --model $S --pred $SHORT --data $DATA":                                  "exclude each other",
		"eval --model $S --rank $SHORT --data $DATA":                                  "--rank goes with --pred",
		"eval --model $S --compare $SHORT --data -":                                   "twice",
		"eval --pred $SHORT --data $DATA":                                             "1 lines of predictions for 5 instances",
		"eval --pred $SHORT --data $DATA --by-size":                                   "--by-size needs a model",
		"eval --pred $SHORT --data $DATA --by-level":                                  "--hierarchy",
		"eval --pred $DIR/none --data $DATA":                                          "no such file",
		"eval --model $S --data $DATA --hierarchy $EMPTY":                             "empty",
		"eval --model $S --data $DATA --compare $DIR":                                 "director",
		"export --model $S":                                                           "--out",
		"export --model $S --out $DIR/w --format pickle":                              "must be one of text",
		"export --model $S --out - --format model":                                    "a model is a folder",
		"export --model $S --out $DIR/w --values float16":                             "goes with --format model",
		"export --model $S --out $DIR/w --threshold auto":                             "goes with --format model",
		"export --model $S --out $DIR/w --data $DATA":                                 "goes with --threshold auto",
		"export --model $S --out $DIR/w --threshold some":                             "must be a finite number",
		"export --model $S --out $DIR/w --format model --threshold auto":              "add --data",
		"export --model $S --out $DIR/w --format model --threshold auto --data -":     "several times",
		"export --model $S --out $DIR/w --format model --threshold auto --data $NONE": "gets no label right",
		"export --model $S --out $FULL --format model":                                "not part of a model",
		"export --model $S --out $DIR/w --threshold -1":                               "must be 0 or more",
		"export --model $S --out - --json":                                            "--out",
		"export --model $S --out $FULL/":                                              "exists already",
		"export --model $BAD --out $DIR/w":                                            "weights-00000.bin",
		"info":                                                                        "taxon info PATH",
		"info $S $S":                                                                  "one PATH",
		"info $DIR/none":                                                              "no such file",
		"info $DIR":                                                                   "not a model",
		"info $EMPTY":                                                                 "empty",
		"info $BROKEN":                                                                "broken.svm:2: ",
		"info $BAD":                                                                   "weights-00000.bin",
	} {
		code, stdout, stderr := runTaxon(t, "", line, vars)
		stderr, _ = splitWarnings(stderr)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "taxon: ") ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q, want %q", line, code, stdout, stderr, want)
		}
	}
	if left, _ := os.ReadDir(vars["DIR"]); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestOutInNewFolders: verbs that write a file make the folders above it, as train does.
func TestOutInNewFolders(t *testing.T) {
	vars := map[string]string{"S": animals(t, 10), "DATA": writeText(t, "test.svm", animalRows), "DIR": t.TempDir()}
	for line, file := range map[string]string{
		"predict --model $S --data $DATA --out $DIR/a/b/labels.txt": "a/b/labels.txt",
		"export --model $S --format npz --out $DIR/c/d/w.npz":       "c/d/labels.txt",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != 0 {
			t.Errorf("%s: exit %d, %s", line, code, stderr)
		}
		if _, err := os.Stat(filepath.Join(vars["DIR"], file)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A cancelled verb ends with 130 and leaves nothing.
func TestModelVerbsInterrupted(t *testing.T) {
	dir := t.TempDir()
	m, data := animals(t, 10), writeText(t, "test.svm", animalRows)
	for _, line := range [][]string{
		{"predict", "--model", m, "--data", data, "--out", filepath.Join(dir, "o")},
		{"eval", "--model", m, "--data", data},
		{"eval", "--model", m, "--data", data, "--compare", m},
		{"export", "--model", m, "--out", filepath.Join(dir, "o")},
		{"export", "--model", m, "--out", filepath.Join(dir, "o") + "/"},
		{"info", data},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(jobs.ErrInterrupted)
		var out, errw bytes.Buffer
		code := execute(ctx, line, strings.NewReader(""), &out, &errw)
		if code != exitInterrupted || out.Len() > 0 || errw.String() != "taxon: interrupted\n" {
			t.Errorf("%v: exit %d, %q, %q", line, code, out.String(), errw.String())
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Text models read text with their own vocabulary.
func TestPredictText(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "text")
	w, err := model.NewWriter(dir, model.Meta{
		Options: model.Options{Method: "bsvm"}, Data: model.DataInfo{Instances: 2, Positives: 2, Text: true},
		Tree: &taxonomy.Tree{Parent: []int32{-1, -1}, Kind: make([]taxonomy.Kind, 2), Name: []string{"cat", "dog"},
			Label: []int32{0, 1}, Depth: []int32{0, 0}, Leaf: []bool{true, true}},
		Labels: []string{"cat", "dog"}, LabelCounts: []uint32{1, 1}, Feature: []uint32{1, 2},
		Text: &model.Text{Vocabulary: []string{"meows", "barks"}, IDF: []float64{1, 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if err := w.WriteNode(n, []uint32{uint32(n)}, []float32{1}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(model.Report{}, nil); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"M": dir, "TEXT": writeText(t, "x.txt", "cat\tmeows loudly\ndog\tbarks "+
		"loudly\ncat\tmeows and barks\n"),
		"SET": filepath.Join(t.TempDir(), "set")}
	code, stdout, stderr := runTaxon(t, "x\tIt BARKS.\n\tmeows, meows and purrs\n",
		"predict --model $M --data - --text --scores", vars)
	if code != 0 || stdout != "dog:1\ncat:1\n" {
		t.Errorf("exit %d, %q (%s)", code, stdout, stderr)
	}
	// Ingested text has an idf of its own.
	if code, _, stderr := runTaxon(t, "", "ingest --text --data $TEXT --out $SET --quiet", vars); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := runTaxon(t, "", "predict --model $M --data $SET", vars); code != 2 || !strings.Contains(stderr,
		"give the text file itself") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if code, _, stderr := runTaxon(t, "1:1\n", "predict --model $M --data -", vars); code != 2 || !strings.Contains(stderr,
		"add --text") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestPredictCutoff(t *testing.T) {
	dir := noisyFiles(t)
	t.Chdir(dir)
	if code, _, stderr := runVerb(t.Context(), newVersionCmd, strings.Fields("train --data train.svm --hierarchy "+
		"tree.txt --out model --quiet")...); code != exitDone {
		t.Fatal(stderr)
	}
	lines := func(flags string) []string {
		t.Helper()
		code, stdout, stderr := runVerb(t.Context(), newVersionCmd, strings.Fields("predict --model model --data "+
			"test.svm --quiet --scores "+flags)...)
		if code != exitDone {
			t.Fatal(stderr)
		}
		return strings.Split(strings.TrimSpace(stdout), "\n")
	}
	all := lines("--top 6")
	_, text, _ := strings.Cut(strings.Split(all[0], ",")[2], ":") // the third best of some instance
	limit, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	cut, few := lines("--cutoff "+text), lines("--top 2 --cutoff "+text)
	sizes := map[int]bool{}
	for i := range all {
		want := []string{}
		for k, pair := range strings.Split(all[i], ",") {
			_, text, _ := strings.Cut(pair, ":")
			score, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			if k == 0 || score > limit {
				want = append(want, pair)
			}
		}
		sizes[len(want)] = true
		if got := strings.Join(want, ","); cut[i] != got {
			t.Errorf("instance %d above %v: %s, want %s", i, limit, cut[i], got)
		}
		if got := strings.Join(want[:min(2, len(want))], ","); few[i] != got {
			t.Errorf("instance %d, two above %v: %s, want %s", i, limit, few[i], got)
		}
	}
	if len(sizes) < 2 {
		t.Errorf("the cutoff tells nothing: %v labels each", sizes)
	}
}
