package modellist

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/internal/app/train"
	"taxon/internal/fs"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Models are found at any depth, sorted as asked, and written as a table that reads back.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data.svm")
	must(t, os.WriteFile(data, []byte("a 1:1\na 1:1 2:1\nb 2:1\nb 2:2\nc 3:1\nc 1:0.2 3:1\n"), 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, "deep", "er"), 0o700))
	for name, o := range map[string]*taxonv1.Options{"x": methodtest.Options("bsvm",
		"gap", 0.5), "deep/er/y": methodtest.Options("blr", "gap", 1e-6)} {
		_, err := train.Run(context.Background(), &train.Options{Data: []string{data}, DAG: "graph", Out: filepath.Join(dir,
			name), Stores: 1, Store: "memory", Cutoff: "none", Pause: 10, Files: fs.Local{}, Job: o}, progress.Discard{})
		must(t, err)
	}
	for by, first := range map[string]string{"dir": "deep/er/y", "gap": "deep/er/y", "method": "deep/er/y",
		"macro_f1": "deep/er/y", "made": ""} {
		all, err := Find(dir, by)
		must(t, err)
		if len(all) != 2 || first != "" && all[0].Dir != first {
			t.Errorf("by %s: %+v", by, all)
		}
		if r := all[0]; r.Instances != 6 || r.Classes != 3 || r.Gap == nil || r.Bytes == 0 || r.Made.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	all, err := Find(dir, "dir")
	must(t, err)
	var b bytes.Buffer
	must(t, WriteCSV(&b, all))
	rows, err := csv.NewReader(&b).ReadAll()
	must(t, err)
	if len(rows) != 3 || rows[1][0] != "deep/er/y" || len(rows[0]) != len(rows[1]) {
		t.Errorf("%v", rows)
	}
	b.Reset()
	must(t, WriteTraces(&b, all))
	if rows, err = csv.NewReader(&b).ReadAll(); err != nil || len(rows) < 3 || rows[1][0] != "deep/er/y" ||
		rows[len(rows)-1][0] != "x" || rows[1][6] == "" || len(rows[0]) != len(rows[1]) {
		t.Errorf("%v, %v", rows, err)
	}
	for _, bad := range [][2]string{{dir, "size"}, {filepath.Join(dir, "none"), "dir"}, {data, "dir"}} {
		if _, err := Find(bad[0], bad[1]); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// A model that can't be read is listed with what is wrong, behind those that can, and is an error. What is no
// model, or not one yet, is passed over.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data.svm")
	must(t, os.WriteFile(data, []byte("a 1:1\na 1:1 2:1\nb 2:1\nb 2:2\n"), 0o600))
	_, err := train.Run(context.Background(), &train.Options{Data: []string{data}, DAG: "graph", Out: filepath.Join(dir,
		"whole"), Stores: 1, Store: "memory", Cutoff: "none", Pause: 10, Files: fs.Local{},
		Job: &taxonv1.Options{Method: "bsvm"}}, progress.Discard{})
	must(t, err)
	weights, err := filepath.Glob(filepath.Join(dir, "whole", "weights-*"))
	must(t, err)
	harm := map[string]func(at string) error{
		"empty": func(at string) error { return os.Truncate(filepath.Join(at, "manifest.json"), 0) },
		"cut":   func(at string) error { return os.Truncate(filepath.Join(at, "manifest.json"), 100) },
		"gone":  func(at string) error { return os.Remove(filepath.Join(at, "manifest.json")) },
		"short": func(at string) error { return os.Truncate(filepath.Join(at, filepath.Base(weights[0])), 5) },
		"folder": func(at string) error {
			return errors.Join(os.Remove(filepath.Join(at, "manifest.json")), os.Mkdir(filepath.Join(at, "manifest.json"),
				0o700))
		},
	}
	for name, do := range harm {
		at := filepath.Join(dir, "a", name)
		must(t, os.CopyFS(at, os.DirFS(filepath.Join(dir, "whole"))))
		must(t, do(at))
	}
	must(t, os.CopyFS(filepath.Join(dir, "a", "m.part"), os.DirFS(filepath.Join(dir, "whole"))))
	must(t, os.Remove(filepath.Join(dir, "a", "m.part", "manifest.json")))
	must(t, fs.Mark(filepath.Join(dir, "a", "m.part")))
	for _, by := range Sorts {
		all, err := Find(dir, by)
		must(t, err)
		if len(all) != 1+len(harm) || all[0].Dir != "whole" || all[0].Error != "" {
			t.Fatalf("by %s: %+v", by, all)
		}
		for _, r := range all[1:] {
			if harm[filepath.Base(r.Dir)] == nil || !strings.Contains(r.Error, filepath.Base(r.Dir)) {
				t.Errorf("%s: %q", r.Dir, r.Error)
			}
		}
		if err := Broken(all); !option.Is(err) || Broken(all[:1]) != nil {
			t.Errorf("all together are the error %v", err)
		}
	}
}
