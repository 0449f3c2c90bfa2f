package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"taxon/test/command"
)

// small creates a folder of data sets with the papers' names, each of some dozens of rows over a
// tree.
func small(t *testing.T) *runner {
	t.Helper()
	r := &runner{data: t.TempDir(), work: t.TempDir(), plots: t.TempDir(), seconds: 60, folds: 2, log: io.Discard}
	var err error
	if r.program, err = command.Build(r.plots); err != nil {
		t.Fatal(err)
	}
	for set, labels := range map[string][]string{"enron": {"a1", "a2", "b", "a1,b"}, "clef": {"a1", "a2", "b", "b"},
		"news20": {"a1", "a2", "b", "b"}, "wordnet-freq": {"a1", "a2", "b", "b"}, "proteins_go": {"a1", "a2", "b", "a1,b"}} {
		dir := filepath.Join(r.data, set)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		var rows strings.Builder
		for i := range 40 {
			fmt.Fprintf(&rows, "%s %d:1 %d:0.5\n", labels[i%4], 1+i%4, 5+i%3)
		}
		edges := "r a\nr b\na a1\na a2\n"
		if set == "proteins_go" { // a graph
			edges += "b a2\n"
		}
		for name, text := range map[string]string{"train.svm.xz": rows.String(), "test.svm.xz": rows.String(),
			"hierarchy.txt": edges} {
			// the compression is recognised by content
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

// TestTables is the short form of all tables: each is computed on small data, and those of one set
// with C by cross-validation. It has one line per row, every measure in its column, and the printed
// figure after it. A second run reuses the results of the first one.
func TestTables(t *testing.T) {
	r := small(t)
	r.tuneFlags = []string{"--C", "0.1,1"}
	text := map[string]string{}
	for _, x := range tables {
		r.tune = x.data == "enron" // the others train with the C of their rows
		var out strings.Builder
		if err := r.table(t.Context(), &out, &x); err != nil {
			t.Fatalf("%s: %v", x.heading(), err)
		}
		text[x.heading()] = out.String()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		head := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "|") })
		for _, l := range lines[head+1:] {
			if !strings.Contains(l, "not run") && !strings.Contains(l, "web site") &&
				strings.Count(l, "|") != strings.Count(lines[head], "|") {
				t.Errorf("%s: %s has not the columns of %s", x.heading(), l, lines[head])
			}
		}
		if x.form != statistics && x.form != perLevel && x.form != perSize && len(lines)-head-2 != len(x.rows) {
			t.Errorf("%s: %d lines of %d rows", x.heading(), len(lines)-head-2, len(x.rows))
		}
	}
	for heading, wants := range map[string][]string{
		"[JMLR] Table 2, enron (stands in for REUTERS)": {`\| SVM \| 0\.00 \(32\.9\) \|`, `\| H-SVM \| 0\.00 \(29\.8\) \| 0\.000 \(0\.57\) \| 100\.00 \(92\.3\) \|`, `\| H-M3, delta \| .* \(75\.2\) \| [0-9.]+ \| [0-9.]+e-`},
		"[JMLR] Table 3, enron (stands in for REUTERS)": {`level 1 \| level 2 \| level 3 \| C`, `\| SVM \| 100\.0 / 100\.0 / 100\.0 \(92\.4 / 89\.4 / 90\.9\) \|`},
		"[TKDD] Table I, [KDD] Table 1, [NIPS] Table 1, clef (" + own +
			")": {`\| 40 \(10000\) \| 40 \(1006\) \| 3 \(63\) \| 3 \(4\) \| 7 \(89\) \| 1 \(1\) \|`},
		"[TKDD] Tables II to IV, [NIPS] Table 3, news20 (" + own +
			")": {`\| RR-SVM \| 100\.00 \(82\) \| 100\.00 \(82\.78\) \| [0-9.]+ \| .* \| [0-9.]+ \(0\.14 min\) \| BSVM 1 / 1 \(none\); TD 1 / 1 \(††\) \|`},
		"[TKDD] Table VII, [NIPS] Table 2, clef (" + own +
			")": {`\| CorrMNL \| not run: one to four hours \|`,
			`\| M1-flat \| 100\.00 \(52\.13\)`},
		"[TKDD] Table VIII, wordnet-freq " +
			"(stands in for DMOZ-2012)": {`\| 2 \| 100\.00 \(71\.43\) \| 100\.00 \(72\.5\) \| 0\.00 \(1\.50\) \| 2 \|`},
		"[TKDD] Table IX, wordnet-freq " +
			"(stands in for DMOZ-2012)": {`\| 6 to 10 \| 100\.00 \(24\.84\) \| 100\.00 \(26\.59\) \| 0\.00 \(7\.05\) \| 2 \|\n\| 11 to 20 \| 100\.00 \(32\.16\)`},
		"[OT] Tables 2 to 4, clef (stands in " +
			"for a part of RCV1)": {`\| TREELOSS, C = 1 \| [0-9.]+ \(26\.16\)`,
			`\| ORTHOGNL, tuned \|`},
		"[TKDD] Tables II to V, [KDD] Tables 2 to 4, wordnet-freq (stands in for " +
			"DMOZ-2010: many rare classes)": {`web site \| \(34\.12\) \| \(46\.76\) \|`},
	} {
		for _, want := range wants {
			if !regexp.MustCompile(want).MatchString(text[heading]) {
				t.Errorf("no %s in %q\n%s", want, heading, text[heading])
			}
		}
	}
	r.program = "/nowhere" // the choices are cached: no search runs again
	train, _, tree := r.set("enron")
	if c, err := r.tuned(t.Context(), r.folder("enron", "--method h-rls"), "hier_f1", []string{"--data", train,
		"--hierarchy", tree, "--method", "h-rls"}, "h-rls"); err != nil || c != "1" && c != "0.1" {
		t.Errorf("kept: C = %s, %v", c, err)
	}
}

// TestFigures is the short form of the plots.
func TestFigures(t *testing.T) {
	r := small(t)
	for _, f := range figures {
		if err := f.draw(t.Context(), r, f.data, filepath.Join(r.plots, f.file)); err != nil {
			t.Fatalf("[%s] %s: %v", f.paper, f.name, err)
		}
	}
	for _, name := range []string{"few-micro", "few-macro", "curve-objective", "curve-loss"} {
		if drawn, err := os.ReadFile(filepath.Join(r.plots, "papers-"+name+".svg")); err != nil ||
			!strings.Contains(string(drawn), "<path") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRows checks that every row has the paper's figures or none, and is compared with rows above
// it.
func TestRows(t *testing.T) {
	for _, x := range tables {
		above := map[string]bool{}
		for _, row := range x.rows {
			want := len(x.measures)
			if x.form == perMethod && row.printed != nil && len(row.printed) != want || row.flags != "" &&
				!strings.HasPrefix(row.flags, "--method ") {
				t.Errorf("%s, %s: %v", x.heading(), row.label, row.printed)
			}
			for _, a := range row.against {
				if !above[a.label] {
					t.Errorf("%s, %s: no row %s above it", x.heading(), row.label, a.label)
				}
			}
			above[row.label] = true
		}
	}
}

// TestConsistent checks that a label counts only if all nodes above it are predicted, and that the
// lowest such labels are returned.
func TestConsistent(t *testing.T) {
	above := map[string]string{"a": "r", "b": "r", "a1": "a", "a2": "a", "x": "a1"}
	for in, want := range map[string]string{"a a1": "a1", "a1": "", "a a1 a2 b": "a1 a2 b", "a x": "a", "a a1 x": "x",
		"": ""} {
		if got := strings.Join(consistent(strings.Fields(in), above), " "); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
}
