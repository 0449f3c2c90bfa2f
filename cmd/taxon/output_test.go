package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is read is never overwritten, whatever name the command line gives it.
func TestOutSparesInput(t *testing.T) {
	data := writeText(t, "test.svm", animalRows)
	dir := t.TempDir()
	vars := map[string]string{"S": animals(t, 10), "DATA": data, "DIR": filepath.Dir(data), "LINK": filepath.Join(dir,
		"link"), "MLINK": filepath.Join(dir, "model")}
	if err := os.Symlink(data, vars["LINK"]); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(vars["S"], vars["MLINK"]); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(vars["S"])
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"predict --model $S --data $DATA --out $DATA":             "would overwrite --data",
		"vectors --model $S --data $DATA --out $DATA":             "would overwrite --data",
		"vectors --model $S --data $DATA --words $DATA":           "would overwrite --data",
		"vectors --model $S --data $DATA --words $S/words":        "lies in the model's folder",
		"predict --model $S --data $DATA --out $DIR/./test.svm":   "would overwrite --data",
		"predict --model $S --data $DATA --out $LINK":             "would overwrite --data",
		"predict --model $S --data $LINK --out $DATA":             "would overwrite --data",
		"predict --model $S --data $DATA --out $S/labels.txt":     "lies in the model's folder",
		"predict --model $S --data $DATA --out $MLINK/new/labels": "lies in the model's folder",
		"export --model $S --out $S/weights.txt":                  "lies in the model's folder",
		"export --model $S --out $S/parts/":                       "lies in the model's folder",
		"export --model $MLINK --out $S/":                         "lies in the model's folder",
	} {
		code, _, stderr := runTaxon(t, "", line, vars)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q", line, code, stderr)
		}
	}
	if b, _ := os.ReadFile(data); string(b) != animalRows {
		t.Errorf("the data are now %q", b)
	}
	if after, _ := os.ReadDir(vars["S"]); len(after) != len(before) {
		t.Errorf("the model's folder had %d files and has %d", len(before), len(after))
	}
	for _, line := range []string{"predict --model $S --data $DATA --out $S.txt", "predict --model $S --data " +
		"$DATA --out $DATA.labels", "export --model $S --out $S-parts/"} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != 0 {
			t.Errorf("%s: exit %d, %q", line, code, stderr)
		}
	}
}

// export has no --force, and does not speak of it.
func TestExportExistingFolder(t *testing.T) {
	vars := map[string]string{"S": animals(t, 10), "DIR": filepath.Dir(writeText(t, "mine.txt", "mine"))}
	code, _, stderr := runTaxon(t, "", "export --model $S --out $DIR/", vars)
	if code != exitUsage || !strings.Contains(stderr, "exists already: choose another --out") || strings.Contains(stderr,
		"--force") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

// What is left out of labels and measures is counted, once.
func TestModelVerbWarnings(t *testing.T) {
	vars := map[string]string{"S": animals(t, 10), "DATA": writeText(t, "test.svm",
		"car 7:1\nemu,ant 2:2\n\n\ndog 7:2\nemu,bee 2:1\n"),
		"BARE": writeText(t, "bare.svm", "dog 2:1\n \ncat 1:1\n\n"),
		"FINE": writeText(t, "fine.svm", "dog 2:1\n"), "GOOD": writeText(t, "good.txt", "dog\n"), "FOREIGN": writeText(t,
			"foreign.txt", "horse\n"),
		"TREE": writeText(t, "tree.txt", "root dog\n"), "THREE": writeText(t, "three.txt", "dog\n\ncat\n")}
	for line, want := range map[string][]string{
		"predict --model $S --data $DATA": {"test.svm: 2 empty lines skipped"},
		"predict --model $S --data $BARE": {"bare.svm: 1 empty line skipped", "bare.svm: 2 instances have no " +
			"feature that the model knows"},
		"predict --model $S --data $FINE": nil,
		"eval --model $S --data $DATA": {"test.svm: 2 empty lines skipped", "3 labels unknown to the model: " +
			"it can never predict them (ant, bee, ...)", "4 labels outside the class structure"},
		"eval --model $S --data $BARE --compare $S": {"bare.svm: 1 empty line skipped", "bare.svm: 2 instances have no " +
			"feature that the model knows"},
		"eval --pred $THREE --data $BARE": {"bare.svm: 1 empty line skipped"},
		"eval --model $S --data $FINE":    nil,

		"eval --pred $GOOD --data $FINE": nil,
		"eval --pred $FOREIGN --data $FINE": {"foreign.txt: 1 label not in",
			"are both of the same classes? (horse)"},
		"eval --pred $FOREIGN --data $FINE --hierarchy $TREE": {"foreign.txt: 1 label not in", "foreign.txt: 1 label " +
			"outside the class structure"},
		"eval --model $S --compare $FOREIGN --data $FINE": {"foreign.txt: 1 label unknown to the training data: " +
			"never right (horse)", "foreign.txt: 1 label outside the class structure"},
	} {
		code, _, stderr := runTaxon(t, "", line+" --quiet", vars) // which leaves warnings
		if n := strings.Count(stderr, "warning: "); code != 0 || n > len(want) || n == 0 && want != nil {
			t.Errorf("%s: exit %d, %q", line, code, stderr)
		}
		for _, w := range want {
			if !strings.Contains(stderr, w) {
				t.Errorf("%s: no %q in %q", line, w, stderr)
			}
		}
	}
}
