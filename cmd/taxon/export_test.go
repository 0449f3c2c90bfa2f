package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/model"
	"taxon/internal/model/export"
)

// Every format goes to a file, to standard output and to a folder of parts.
func TestExportFormats(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"S": animals(t, 10), "DIR": dir}
	for _, format := range export.Names() {
		if format == "model" {
			continue
		}
		vars["F"], vars["OUT"], vars["PARTS"] = format, filepath.Join(dir, format, "w."+format), filepath.Join(dir, format+
			"-parts")
		if err := os.Mkdir(filepath.Dir(vars["OUT"]), 0o777); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := runTaxon(t, "", "export --model $S --format $F --out $OUT --json", vars)
		var r export.Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || r.Format != format || r.Nodes != 6 {
			t.Fatalf("%s: exit %d, %v: %s %s", format, code, err, stdout, stderr)
		}
		file, err := os.ReadFile(vars["OUT"])
		if err != nil || int64(len(file)) != r.Bytes {
			t.Errorf("%s: %d bytes, report says %d, %v", format, len(file), r.Bytes, err)
		}
		if code, stdout, _ = runTaxon(t, "", "export --model $S --format $F --out - --threads 1", vars); code != 0 ||
			stdout != string(file) {
			t.Errorf("%s: standard output differs from the file", format)
		}
		if code, _, stderr = runTaxon(t, "", "export --model $S --format $F --out $PARTS/", vars); code != 0 {
			t.Fatalf("%s: %s", format, stderr)
		}
		for _, name := range []string{"_SUCCESS", "part-00000" + map[string]string{"text": ".txt",
			"liblinear": ".model"}[format]} {
			if matches, _ := filepath.Glob(filepath.Join(vars["PARTS"], name+"*")); len(matches) != 1 {
				t.Errorf("%s: no %s", format, name)
			}
		}
		labels, err := os.ReadFile(filepath.Join(dir, format, "labels.txt"))
		if matrix := format != "text" && format != "parquet"; matrix != (err == nil) || matrix &&
			string(labels) != "animal\ncat\ndog\ncar\n" {
			t.Errorf("%s: labels %q, %v", format, labels, err)
		}
	}
}

// A dense file that is far larger than the model is refused before a byte is written.
func TestExportLiblinearSize(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"DATA": writeText(t, "t.svm", "a 1:1\nb 2147483647:1\n"), "M": filepath.Join(dir, "m"),
		"W": filepath.Join(dir, "w")}
	if code, _, stderr := runTaxon(t, "", "train --data $DATA --out $M", vars); code != 0 {
		t.Fatal(stderr)
	}
	for line, want := range map[string]string{
		"export --model $M --format liblinear --out $W":        "at least 6GiB: use npz",
		"export --model $M --format liblinear --out $W/":       "at least 6GiB: use npz",
		"export --model $M --format npz --out $W --force-size": "goes with --format liblinear",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitUsage || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q", line, code, stderr)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}

// The file beside the weights never replaces one of the user's.
func TestExportSparesFiles(t *testing.T) {
	dir := t.TempDir()
	labels := filepath.Join(dir, "labels.txt")
	os.WriteFile(labels, []byte("mine\n"), 0o666)
	os.Mkdir(filepath.Join(dir, "x.trial"), 0o777)
	vars := map[string]string{"S": animals(t, 10), "DIR": dir, "DATA": writeText(t, "test.svm", animalRows)}
	for line, want := range map[string]string{
		"export --model $S --format " +
			"npz --out $DIR/w.npz": "labels.txt: exists with other content",
		"export --model $S --format model --threshold auto --data $DATA --out $DIR/x": "x.trial: exists",
		"export --model $S --format liblinear --out $DIR/labels.txt":                  "goes beside the weights",
	} {
		code, _, stderr := runTaxon(t, "", line, vars)
		if stderr, _ = splitWarnings(stderr); code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr,
			want) {
			t.Errorf("%s: exit %d, %q", line, code, stderr)
		}
	}
	if b, _ := os.ReadFile(labels); string(b) != "mine\n" {
		t.Errorf("labels.txt was replaced: %q", b)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}

// A model that is there is replaced with --force only.
func TestExportModelOver(t *testing.T) {
	dir := t.TempDir()
	other := animals(t, 12)
	vars := map[string]string{"S": animals(t, 10), "NEW": filepath.Join(dir, "new"), "OTHER": other, "NONE": t.TempDir()}
	before, err := os.ReadFile(filepath.Join(other, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"--out $OTHER", "--out $OTHER/", "--out $OTHER --values float16"} {
		code, _, stderr := runTaxon(t, "", "export --model $S --format model "+line, vars)
		if code != exitUsage || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "exists already: choose "+
			"another --out, or use --force") {
			t.Errorf("%s: exit %d, %q", line, code, stderr)
		}
	}
	if code, _, stderr := runTaxon(t, "", "export --job j --coordinator 127.0.0.1:1 --format model --out $OTHER",
		vars); code != exitUsage || !strings.Contains(stderr, "exists already") {
		t.Errorf("a job's: exit %d, %q", code, stderr)
	}
	if after, err := os.ReadFile(filepath.Join(other, "manifest.json")); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the model was replaced (%v)", err)
	}
	for _, line := range []string{"--out $NEW", "--out $NONE", "--out $OTHER --force", "--out $OTHER/ --force"} {
		if code, _, stderr := runTaxon(t, "", "export --model $S --format model --quiet "+line, vars); code != 0 {
			t.Errorf("%s: exit %d, %q", line, code, stderr)
		}
	}
	if m, err := model.ReadManifest(other); err != nil || m.Pruned == nil {
		t.Errorf("--force replaced nothing (%v)", err)
	}
	if code, _, stderr := runTaxon(t, "", "export --model $S --out $NEW.txt --force", vars); code != exitUsage ||
		!strings.Contains(stderr, "goes with --format model") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

// The threshold found costs no more than allowed, and the pruned model works everywhere.
func TestExportModelAuto(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"S": animals(t, 10), "P": filepath.Join(dir, "small"), "DATA": writeText(t, "test.svm",
		"car 7:1\ndog 2:2 7:4\ndog 7:2\n")}
	code, stdout, stderr := runTaxon(t, "", "export --model $S --format model --threshold auto --data "+
		"$DATA --out $P/ --json", vars)
	var r export.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s %s", code, err, stdout, stderr)
	}
	if r.MicroF1 == nil || *r.MicroF1 != 1 || *r.MicroF1Pruned < *r.MicroF1-0.001 || r.Threshold <= 0 || r.Entries >= 10 ||
		r.Bytes == 0 {
		t.Errorf("%s", stdout)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	for line, want := range map[string]string{
		"predict --model $P --data $DATA --quiet": "car\ndog\ndog\n",
		"eval --model $P --data $DATA --json":     `"micro_f1": 1`,
		"info $P":                                 "pruned",
		"export --model $P --out -":               "node car",
		"explain --model $P --data $DATA":         "best classes",
	} {
		if code, stdout, stderr := runTaxon(t, "", line, vars); code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit %d, %s%s", line, code, stdout, stderr)
		}
	}
}
