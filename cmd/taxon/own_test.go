package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder or file that bears the name of one that taxon would make beside --out is not
// touched: one line, status 2.
func TestOutSparesNeighbours(t *testing.T) {
	vars := map[string]string{"DATA": writeText(t, "t.svm", graphData), "M": animals(t, 10)}
	lines := map[string]string{
		"train --data $DATA --out $OUT":                ".train",
		"train --data $DATA --out $OUT --force":        ".train",
		"tune --data $DATA --out $OUT --C 1 --folds 2": ".train",
		"ingest --data $DATA --out $OUT":               ".part",
		"ingest --data $DATA --out $OUT --force":       ".part",
		"export --model $M --format model --out $OUT":  ".part",
		"export --model $M --out $OUT/":                ".part",
		"generate --scale 0.0001 --out $OUT":           ".part",
	}
	for line, suffix := range lines {
		for _, file := range []bool{false, true} {
			dir := t.TempDir()
			vars["OUT"] = filepath.Join(dir, "x")
			thesis := vars["OUT"] + suffix
			if !file {
				if err := os.Mkdir(thesis, 0o777); err != nil {
					t.Fatal(err)
				}
				thesis = filepath.Join(thesis, "thesis")
			}
			if err := os.WriteFile(thesis, []byte("precious"), 0o666); err != nil {
				t.Fatal(err)
			}
			code, _, stderr := runTaxon(t, "", line, vars)
			if code != exitUsage || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "x"+suffix) {
				t.Errorf("%s: exit %d, %q", line, code, stderr)
			}
			if b, _ := os.ReadFile(thesis); string(b) != "precious" {
				t.Errorf("%s: %s is gone", line, thesis)
			}
			if left, _ := os.ReadDir(dir); len(left) != 1 {
				t.Errorf("%s: left %v", line, left)
			}
		}
	}
}

// A finished model that is named like the working folder of another stays, and so does a
// folder of the user's that is named as the state of a training.
func TestTrainSparesModel(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"DATA": writeText(t, "t.svm", graphData), "OUT": filepath.Join(dir, "x"), "DIR": dir}
	vars["CONF"] = writeText(t, "hadoop.yaml", "state: "+dir+"\n")
	if code, _, stderr := runTaxon(t, "", "train --data $DATA --out $OUT.train", vars); code != 0 {
		t.Fatal(stderr)
	}
	for _, line := range []string{"train --data $DATA --out $OUT", "tune --data $DATA --out $OUT --C 1 --folds 2",
		"train --data $DATA --out $OUT-2 --engine mapreduce --hadoop-conf $CONF --force"} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitUsage || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q", line, code, stderr)
		}
		if code, _, stderr := runTaxon(t, "", "info $OUT.train", vars); code != 0 {
			t.Errorf("%s: the model is damaged: %q", line, stderr)
		}
	}
}

// ingest --force replaces a data set, and nothing else.
func TestIngestSparesFolder(t *testing.T) {
	out := filepath.Dir(writeText(t, "thesis", "precious"))
	vars := map[string]string{"DATA": writeText(t, "t.svm", graphData), "OUT": out}
	if code, _, stderr := runTaxon(t, "", "ingest --data $DATA --out $OUT --force", vars); code != exitUsage ||
		!strings.Contains(stderr, "something other than a data set") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if b, _ := os.ReadFile(filepath.Join(out, "thesis")); string(b) != "precious" {
		t.Error("the thesis is gone")
	}
	vars["OUT"] = filepath.Join(out, "set")
	for range 2 {
		if code, _, stderr := runTaxon(t, "", "ingest --data $DATA --out $OUT --force", vars); code != 0 {
			t.Errorf("exit %d, %q", code, stderr)
		}
	}
}
