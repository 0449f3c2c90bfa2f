package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClaims(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range claims() {
		if seen[c.name] || trees[c.set] == "" || c.meaning() == "" || !strings.HasSuffix(c.name, c.set) &&
			c.name != "wordnet-2-cores" {
			t.Errorf("case %+v", c)
		}
		seen[c.name] = true
		if c.goal != 0 && (verdict(c, c.goal) != "goal" || c.reach != 0 && verdict(c, c.reach) != "stretch") {
			t.Errorf("%s: goals %v and %v are not in order", c.name, c.goal, c.reach)
		}
		if worse := c.goal * 2; c.goal != 0 && c.less() && verdict(c, worse) != "not yet" {
			t.Errorf("%s: %v is taken for good", c.name, worse)
		}
	}
	if !matches("flat-*,rr-1e-2-clef", "flat-hinge-clef") || !matches("all", "x") || matches("flat", "flat-hinge-clef") {
		t.Error("patterns")
	}
}

func TestSummary(t *testing.T) {
	r := &result{Figures: []float64{5, 1, 3}}
	if r.summarise(); r.Median != 3 || r.Min != 1 || r.Max != 5 {
		t.Errorf("%+v", r)
	}
	r = &result{Figures: []float64{4, 1}}
	if r.summarise(); r.Median != 2.5 {
		t.Errorf("%+v", r)
	}
}

func TestInsert(t *testing.T) {
	got, err := insert("a\n"+begin+"old\n"+end+"z\n", "new\n")
	if err != nil || got != "a\n"+begin+"new\n"+end+"z\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := insert("a\n", "new\n"); err == nil {
		t.Error("a document without markers was taken")
	}
	if lines := strings.Split(table([]*result{{Case: "flat-hinge-clef", Median: 17}}), "\n"); len(lines) != 4 ||
		!strings.Contains(lines[2], "| goal |") {
		t.Errorf("table %q", lines)
	}
}

func TestSingleLabel(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(from, []byte("a 1:1\na,b 2:1\n 3:1\nc 1:2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := singleLabel(from, to); err != nil {
		t.Fatal(err)
	}
	if n, err := repeatFile(to, from, 2); err != nil || n != 2 {
		t.Errorf("%d lines, %v", n, err)
	}
	if b, _ := os.ReadFile(from); string(b) != "a 1:1\nc 1:2\na 1:1\nc 1:2\n" {
		t.Errorf("%q", b)
	}
}

// TestDrawRace checks that all tracks are in the picture's legend, including those of peers, which
// have no certificate.
func TestDrawRace(t *testing.T) {
	out := filepath.Join(t.TempDir(), "race.svg")
	ours := track{"ours", []mark{{2, 41, 30, 3, 1}, {4, 55, 35, 2.1, 1.9}, {9, 60, 39, 2.01, 1.999}}}
	if err := drawRace([]track{ours, {"peer", []mark{{seconds: 5, micro: 60.4, macro: 39.2}}}}, out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{">ours<", ">peer<"} {
		if strings.Count(string(text), name) != 1 {
			t.Errorf("%s is not in the picture once", name)
		}
	}
}
