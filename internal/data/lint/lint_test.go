package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/data/table"
	"taxon/internal/ui/progress"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// counts summarises the findings.
func counts(r *Report) string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("%s:%d(%s)", f.What, f.Count, strings.Join(f.Examples, ";")))
	}
	return strings.Join(out, " ")
}

func TestTables(t *testing.T) {
	o := Options{
		Data: write(t, "train.csv", "l,t\nKitchen,a pot\nkitchen ware,a pan\nKitchenware,a lid\nkitchen,A Pot!\nTools,a "+
			"saw\nTools,a saw\nSaws,one more\nCut,one more\nHand toolz,x\nHand tools,y\n"),
		Test:  write(t, "test.csv", "l,t\nTools,a  saw\nTools,an axe\nAxes,a pot with a lid\n"),
		Table: table.Options{Columns: table.Columns{Text: []string{"t"}, Label: "l"}},
	}
	r, err := Run(t.Context(), o, progress.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	data, test := o.Data, o.Test
	want := "repeated:1(" + data + ":7) contradictory:2(" + data + ":5;" + data + ":9) single_row:8(Kitchen;kitchen " +
		"ware;Kitchenware;kitchen;Saws) " +
		"same_rows:2(Kitchen = kitchen;Saws = Cut) same_name:1(Kitchen ~ kitchen (U+004B, U+006B)) alike:2(kitchen ware ~ " +
		"Kitchenware;Hand toolz ~ Hand tools) " +
		"in_both:1(" + test + ":2) test_labels_only:1(Axes) test_features_only:3(an;axe;with)"
	if got := counts(r); got != want || r.Instances != 10 || r.TestInstances != 3 || r.Classes != 9 {
		t.Errorf("%d, %d, %d: %s\nwant %s", r.Instances, r.TestInstances, r.Classes, got, want)
	}
}

// TestNames checks that labels which are the same name are found however Unicode encodes them, with
// the difference shown, and that lists in cells are found if each is one class.
func TestNames(t *testing.T) {
	text := strings.Join([]string{"caf\u00e9", "cafe\u0301", "\ufb01sh", "fish", "Stra\u00dfe", "STRASSE", "a\u00a0b",
		"a  b", "c\u200bd", "cd", "\uff21", "A", "\u2121", "tel", "e1", "e2", "x|y", "p; q", "['r', 's']", `["t"]`, "[u]",
		"v", "w", "\"v, w\"", "\"v, z\""}, ",1\n")
	text = strings.ReplaceAll(text, `["t"]`, `"[""t""]"`)
	text = strings.ReplaceAll(text, `['r', 's']`, `"['r', 's']"`)
	o := Options{Data: write(t, "train.csv", "l,t\n"+text+",1\n"),
		Table: table.Options{Columns: table.Columns{Text: []string{"t"}, Label: "l"}}}
	find := func(what string) *Finding {
		t.Helper()
		r, err := Run(t.Context(), o, progress.Discard{})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range r.Findings {
			if f.What == what {
				return &r.Findings[i]
			}
		}
		return &Finding{}
	}
	if f := find("same_name"); f.Count != 7 || strings.Join(f.Examples, "\n") != "caf\u00e9 ~ cafe\u0301 (U+00E9, "+
		"U+0065 U+0301)\n\ufb01sh ~ fish (U+FB01, U+0066 U+0069)\nStra\u00dfe ~ STRASSE (U+0074 U+0072 U+0061 U+00DF "+
		"U+0065, U+0054 U+0052 U+0041 U+0053 U+0053 U+0045)\n"+
		`"a\u00a0b" ~ a  b (U+00A0, U+0020 U+0020)`+"\n"+`"c\u200bd" ~ cd (U+200B, nothing)` {
		t.Errorf("%d\n%s", f.Count, strings.Join(f.Examples, "\n"))
	}
	if f := find("lists"); f.Count != 5 || strings.Join(f.Examples, "\n") != "x|y\np; q\n['r', 's']\n[\"t\"]\nv, w" {
		t.Errorf("%d %q", f.Count, f.Examples)
	}
	o.Table.LabelSeparator = "|"
	if f := find("lists"); f.Count != 4 {
		t.Errorf("with a separator: %d %q", f.Count, f.Examples)
	}
}

// TestBroken checks that invalid rows which are skipped are among the findings, in one finding
// only.
func TestBroken(t *testing.T) {
	bad := "b 1:x\nb y\n"
	o := Options{Data: write(t, "train.svm", "a 1:1\na 2:1\n"+bad), Test: write(t, "test.svm", "a 1:2\n"+bad),
		Table: table.Options{SkipBroken: 9}}
	r, err := Run(t.Context(), o, progress.Discard{})
	if want := "broken:2(" + o.Data + ":3;" + o.Data + ":4) test_broken:2(" + o.Test + ":2;" + o.Test +
		":3)"; err != nil || counts(r) != want || r.Instances != 2 {
		t.Errorf("%v, %s\nwant %s", err, counts(r), want)
	}
}

func TestHierarchy(t *testing.T) {
	o := Options{Data: write(t, "d.svm", "a 1:1\na 2:1\nb 1:2\nb 3:1\nr 4:1\nr 5:1\nc17 6:1\nc17 8:1\nc18 7:1\nc18 9:1\n"),
		Hierarchy: write(t, "h", "r a\nr x\n")}
	r, err := Run(t.Context(), o, progress.Discard{})
	if want := "outside_hierarchy:3(b;c17;c18) empty_leaves:1(x) inner_labels:1(r)"; err != nil || counts(r) != want {
		t.Errorf("%v, %s\nwant %s", err, counts(r), want)
	}
	o.Hierarchy = write(t, "h", "r a b\n")
	if _, err = Run(t.Context(), o, progress.Discard{}); err == nil || !strings.Contains(err.Error(), "h:1: 3 names") {
		t.Error(err)
	}
}
