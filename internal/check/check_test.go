package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/table"
	"taxon/internal/tell"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// counts are the findings in short.
func counts(r *Report) string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("%s:%d(%s)", f.What, f.Count, strings.Join(f.Examples, ";")))
	}
	return strings.Join(out, " ")
}

func TestTables(t *testing.T) {
	o := Options{
		Data:  write(t, "train.csv", "l,t\nKitchen,a pot\nkitchen ware,a pan\nKitchenware,a lid\nkitchen,A Pot!\nTools,a saw\nTools,a saw\nSaws,one more\nCut,one more\nHand toolz,x\nHand tools,y\n"),
		Test:  write(t, "test.csv", "l,t\nTools,a  saw\nTools,an axe\nAxes,a pot with a lid\n"),
		Table: table.Options{Columns: table.Columns{Text: []string{"t"}, Label: "l"}},
	}
	r, err := Run(t.Context(), o, tell.Silent{})
	if err != nil {
		t.Fatal(err)
	}
	data, test := o.Data, o.Test
	want := "repeated:1(" + data + ":7) contradictory:2(" + data + ":5;" + data + ":9) single_row:8(Kitchen;kitchen ware;Kitchenware;kitchen;Saws) " +
		"same_rows:2(Kitchen = kitchen;Saws = Cut) alike:3(kitchen ware ~ Kitchenware;Kitchen ~ kitchen;Hand toolz ~ Hand tools) " +
		"in_both:1(" + test + ":2) test_labels_only:1(Axes) test_features_only:3(an;axe;with)"
	if got := counts(r); got != want || r.Instances != 10 || r.TestInstances != 3 || r.Classes != 9 {
		t.Errorf("%d, %d, %d: %s\nwant %s", r.Instances, r.TestInstances, r.Classes, got, want)
	}
}

// Broken rows that are passed over are among the findings, and in no other.
func TestBroken(t *testing.T) {
	bad := "b 1:x\nb y\n"
	o := Options{Data: write(t, "train.svm", "a 1:1\na 2:1\n"+bad), Test: write(t, "test.svm", "a 1:2\n"+bad), Table: table.Options{SkipBroken: 9}}
	r, err := Run(t.Context(), o, tell.Silent{})
	if want := "broken:2(" + o.Data + ":3;" + o.Data + ":4) test_broken:2(" + o.Test + ":2;" + o.Test + ":3)"; err != nil || counts(r) != want || r.Instances != 2 {
		t.Errorf("%v, %s\nwant %s", err, counts(r), want)
	}
}

func TestHierarchy(t *testing.T) {
	o := Options{Data: write(t, "d.svm", "a 1:1\na 2:1\nb 1:2\nb 3:1\nr 4:1\nr 5:1\nc17 6:1\nc17 8:1\nc18 7:1\nc18 9:1\n"), Hierarchy: write(t, "h", "r a\nr x\n")}
	r, err := Run(t.Context(), o, tell.Silent{})
	if want := "outside_hierarchy:3(b;c17;c18) empty_leaves:1(x) inner_labels:1(r)"; err != nil || counts(r) != want {
		t.Errorf("%v, %s\nwant %s", err, counts(r), want)
	}
	o.Hierarchy = write(t, "h", "r a b\n")
	if _, err = Run(t.Context(), o, tell.Silent{}); err == nil || !strings.Contains(err.Error(), "h:1: 3 names") {
		t.Error(err)
	}
}
