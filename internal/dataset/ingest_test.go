package dataset

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func ingestText(t *testing.T, text string, edit func(*Options)) (*Set, *Report) {
	t.Helper()
	dir := t.TempDir()
	in := filepath.Join(dir, "in.svm")
	if err := os.WriteFile(in, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	o := Options{Paths: []string{in}, Out: filepath.Join(dir, "set")}
	if edit != nil {
		edit(&o)
	}
	r, err := Ingest(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, r
}

func TestIngestSmall(t *testing.T) {
	s, r := ingestText(t, "b,a 7:1 3:2.5\n\n# note\na 3:-1\n 9:4\nc\n", nil)
	if got := strings.Join(s.Labels, " "); got != "b a c" {
		t.Errorf("labels %q", got)
	}
	// 3 stands in two rows; 7 and 9 tie and stand in index order.
	if s.Feature[0] != 3 || s.Feature[1] != 7 || s.Feature[2] != 9 || s.FeatureRows[0] != 2 {
		t.Errorf("features %v rows %v", s.Feature, s.FeatureRows)
	}
	if i, v := s.Matrix.Row(0); len(i) != 2 || i[0] != 0 || v[0] != 2.5 || i[1] != 1 || v[1] != 1 {
		t.Errorf("row 0: %v %v", i, v)
	}
	if r.Stats.Unlabelled != 1 || r.Stats.ZeroRows != 1 || r.Stats.EmptyLines != 1 || r.Stats.Comments != 1 {
		t.Errorf("stats %+v", r.Stats)
	}
	if s.PosBegin[1] != 1 || s.PosBegin[2] != 3 || s.PosRows[1] != 0 || s.PosRows[2] != 1 {
		t.Errorf("postings %v %v", s.PosBegin, s.PosRows)
	}
}
