package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/model"
	"taxon/internal/model/measure"
)

// noisyFiles are training and test data whose scores are far from 0 and 1, and a tree.
func noisyFiles(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	r := rand.New(rand.NewPCG(7, 11))
	rows := func(n int) string {
		var b strings.Builder
		for range n {
			c := r.IntN(6)
			fmt.Fprintf(&b, "c%d", c)
			for range 5 {
				c = (c + r.IntN(3)) % 6
			}
			first := 1 + c
			fmt.Fprintf(&b, " %d:%.3f %d:%.3f\n", first, r.Float64(), 10+r.IntN(8), r.Float64())
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"train.svm": rows(300), "test.svm": rows(100),
		"tree.txt": "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// UnmarshalJSON is the way back from MarshalJSON.
func (d *trainedDocument) UnmarshalJSON(b []byte) error {
	d.Report = new(model.Report)
	var rest struct {
		Test *measure.Result `json:"test"`
	}
	err := errors.Join(json.Unmarshal(b, d.Report), json.Unmarshal(b, &rest))
	d.Test = rest.Test
	return err
}

// trained runs train --json in dir and returns the report, the test's figures and the trace.
func trained(t *testing.T, dir, flags string) (*trainedDocument, []model.TraceRow) {
	t.Helper()
	t.Chdir(dir)
	out := t.TempDir() + "/model"
	var stdout, stderr bytes.Buffer
	args := append(strings.Fields("train --data train.svm --test test.svm --json --quiet "+flags), "--out", out)
	if code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != exitDone {
		t.Fatalf("taxon %v: exit status %d: %s", args, code, stderr.String())
	}
	var d trainedDocument
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil {
		t.Fatalf("standard output is no JSON document: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(out, "trace.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []model.TraceRow
	for line := range bytes.Lines(data) {
		var row model.TraceRow
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("trace %q: %v", line, err)
		}
		rows = append(rows, row)
	}
	if left, err := filepath.Glob(out + "?*"); err != nil || len(left) > 0 {
		t.Errorf("left beside the model: %v (%v)", left, err)
	}
	return &d, rows
}

// TestEvalEvery checks that the scores of a sweep within a training are those of a
// training that ends with that sweep.
func TestEvalEvery(t *testing.T) {
	dir := noisyFiles(t)
	for _, flags := range []string{
		"--hierarchy tree.txt",
		"--hierarchy tree.txt --x schedule=parity",
		"--hierarchy tree.txt --x schedule=jacobi --loss squared-hinge",
		"--method bsvm --C 30 --x stores=3",
	} {
		t.Run(flags, func(t *testing.T) {
			flags += " --gap 1e-12 --eval-every 3"
			_, rows := trained(t, dir, flags+" --max-sweeps 7")
			if len(rows) < 3 || len(rows) > 7 { // a flat problem may be solved before the cap
				t.Fatalf("%d sweeps in the trace, want 3 to 7", len(rows))
			}
			for _, row := range rows {
				if has, want := row.MicroF1 != nil && row.MacroF1 != nil, row.Sweep%3 == 0; has != want {
					t.Errorf("sweep %d has scores: %v, want %v", row.Sweep, has, want)
				}
				if row.Sweep%3 == 0 && row.Gap == nil {
					t.Errorf("sweep %d was evaluated, not certified", row.Sweep)
				}
			}
			for _, sweeps := range []int{3, 6} {
				if sweeps > len(rows) {
					break
				}
				d, _ := trained(t, dir, fmt.Sprintf("%s --max-sweeps %d", flags, sweeps))
				row := rows[sweeps-1]
				if row.MicroF1 == nil || d.Test.MicroF1 != *row.MicroF1 || d.Test.MacroF1 != *row.MacroF1 {
					t.Errorf("after %d sweeps micro %v macro %v; within a longer training %+v", sweeps, d.Test.MicroF1, d.Test.MacroF1,
						row)
				}
				if d.Objective != *row.Objective || *d.Gap != *row.Gap {
					t.Errorf("after %d sweeps objective %v gap %v; within a longer training %v %v", sweeps, d.Objective, *d.Gap,
						*row.Objective, *row.Gap)
				}
				if f := d.Test.MicroF1; f < 0.05 || f > 0.95 {
					t.Errorf("micro F1 %v tells little", f)
				}
			}
		})
	}
}

// TestReportsTellTheirCertificate: of every method, as train prints it and as the model keeps it.
func TestReportsTellTheirCertificate(t *testing.T) {
	dir := noisyFiles(t)
	for _, name := range registry.Names() {
		want := method.Gap
		if registry.Has(name, "tolerance") || !registry.Has(name, "C") && !registry.Has(name, "gap") {
			want = method.Stationarity
		}
		out := filepath.Join(dir, name)
		vars := map[string]string{"d": dir, "m": out}
		var d trainedDocument
		code, stdout, stderr := runTaxon(t, "", "train --data $d/train.svm --hierarchy $d/tree.txt --max-sweeps 2 --cutoff "+
			"none --out $m --json --quiet --method "+name, vars)
		if err := json.Unmarshal([]byte(stdout), &d); code != exitDone || err != nil || d.Certificate != want ||
			d.Own["certificate"] != nil {
			t.Errorf("%s: exit status %d, %s%s, want %s", name, code, stdout, stderr, want)
		}
		var info struct{ Report struct{ Certificate string } }
		_, stdout, _ = runTaxon(t, "", "info $m --json", vars)
		if err := json.Unmarshal([]byte(stdout), &info); err != nil || info.Report.Certificate != want {
			t.Errorf("%s: info: %s", name, stdout)
		}
	}
}
