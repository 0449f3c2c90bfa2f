package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTable: a table with rows of three methods is made on small data, each measure in its
// column with the printed figure behind it, and a method that there is not is left out with a word.
func TestTable(t *testing.T) {
	r := &runner{data: t.TempDir(), work: t.TempDir(), seconds: 60, log: io.Discard}
	r.program = filepath.Join(r.work, "taxon")
	if out, err := exec.Command("go", "build", "-o", r.program, "../../cmd/taxon").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := filepath.Join(r.data, "enron")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for i := range 40 {
		fmt.Fprintf(&rows, "%s %d:1 %d:0.5\n", []string{"a1", "a2", "b", "a1,b"}[i%4], 1+i%4, 5+i%3)
	}
	for name, text := range map[string]string{"train.svm.xz": rows.String(), "test.svm.xz": rows.String(), "hierarchy.txt": "r a\nr b\na a1\na a2\n"} { // compression is told by content
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	small := tables[len(tables)-1]
	small.rows = append(small.rows[:3:3], row{"other", "--method nosuch", []float64{1, 2, 3, 4, 5}})
	var out strings.Builder
	if err := r.table(t.Context(), &out, &small); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`## \[JMLR\] Table 2, enron \(stands in\)`, `\| H-SVM \| 0\.00 \(29\.8\) \| 0\.000 \(0\.57\) \| 100\.00 \(92\.3\) \|`, `\| H-M3, delta \| .* \(75\.2\) \| [0-9.]+e-`, `\| other \| left out: this program has no method nosuch`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %s in\n%s", want, &out)
		}
	}
	r.tuneFlags = []string{"--C", "0.01,1", "--folds", "2"}
	c, err := r.tuned(t.Context(), []string{"--method", "h-rls"}, []string{"--data", filepath.Join(dir, "train.svm.xz"), "--hierarchy", filepath.Join(dir, "hierarchy.txt")}, "hier_f1")
	if err != nil || c != "1" && c != "0.01" {
		t.Errorf("tuned to C = %s, %v", c, err)
	}
	for _, x := range tables {
		for _, row := range x.rows {
			if len(row.printed) != len(x.measures) || !strings.HasPrefix(row.flags, "--method ") {
				t.Errorf("[%s] %s, %s: %v", x.paper, x.name, row.label, row.printed)
			}
		}
	}
}
