package predict

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/model/modeltest"
	"taxon/internal/ui/progress"
)

// Threads, and whether the input is a stream or a file, change no byte of the labels.
func TestRun(t *testing.T) {
	rows := strings.Repeat("car 7:1\ncat,dog 2:2 7:4\n\n 7:2 5:9 # no label\n", 700)
	want := strings.Repeat("car:1\ndog:3.25,animal:3,cat:2\ndog:-0.25\n", 700)
	dir := t.TempDir()
	data := filepath.Join(dir, "rows")
	if err := os.WriteFile(data, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Model: modeltest.Animals(t, 12), Scores: true}
	for threads := range 4 {
		for name, in := range map[string]Input{"file": {Path: data}, "stream": {Path: fs.Stdin,
			Files: fs.Local{In: strings.NewReader(rows)}}} {
			for _, to := range []string{fs.Stdin, filepath.Join(dir, "out")} {
				if in.Path == fs.Stdin && to != fs.Stdin {
					continue // it is read but once
				}
				var out strings.Builder
				o.Input, o.Out, o.Stdout = in, to, &out
				o.Input.Threads = threads
				r, err := Run(t.Context(), o, progress.Discard{})
				if err != nil {
					t.Fatal(err)
				}
				got := out.String()
				if to != fs.Stdin {
					b, err := os.ReadFile(to)
					if err != nil {
						t.Fatal(err)
					}
					got = string(b)
				}
				if got != want || r.Instances != 2100 || r.Labels != 3500 {
					t.Errorf("%s to %s, %d threads: %+v, %d bytes, want %d", name, to, threads, r, len(got), len(want))
				}
			}
		}
	}
}

// What is read is not written to, under whatever name.
func TestSpareInput(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.WriteFile(data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := RefuseOverwrite("predict", "out", filepath.Join(dir, ".", "data"), data, dir+"/model"); err == nil ||
		!strings.Contains(err.Error(), "would overwrite ‹data=") {
		t.Errorf("the data: %v", err)
	}
	if err := RefuseOverwrite("predict", "out", filepath.Join(dir, "model", "new"), "", dir); err == nil ||
		!strings.Contains(err.Error(), "lies in the model's folder") {
		t.Errorf("in the model: %v", err)
	}
	if err := RefuseOverwrite("predict", "out", filepath.Join(dir, "labels"), data, dir+"/model"); err != nil {
		t.Error(err)
	}
}

// A line of a table with commas, given to a model of INDEX:VALUE lines, is refused by its line.
func TestLineOfCells(t *testing.T) {
	for rows, want := range map[string]string{"cat,none\ncat 7:1\n": "", "car 7:1\n5.1,3.5\n": "stdin:2: commas"} {
		var out strings.Builder
		o := Options{Model: modeltest.Animals(t, 12), Stdout: &out, Out: fs.Stdin, Input: Input{Path: fs.Stdin, Threads: 1,
			Files: fs.Local{In: strings.NewReader(rows)}}}
		if _, err := Run(t.Context(), o, progress.Discard{}); (err == nil) != (want == "") || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", rows, err, want)
		}
	}
}
