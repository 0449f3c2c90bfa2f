package dataset

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/fs"
)

// ingestString ingests text at out and opens the result.
func ingestString(t interface{ Fatalf(string, ...any) }, out, text string, o Options) *Set {
	o.Paths, o.Out, o.FS = []string{"-"}, out, fs.Local{In: strings.NewReader(text)}
	if _, err := Ingest(context.Background(), o); err != nil {
		t.Fatalf("ingest: %v", err)
	}
	s, err := Open(out)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

func TestIngestSmall(t *testing.T) {
	s := ingestString(t, filepath.Join(t.TempDir(), "set"), "b,a 7:1 3:2.5\n\n# note\na 3:-1\n 9:4\nc\n", Options{})
	defer s.Close()
	if got := strings.Join(s.Labels, " "); got != "b a c" {
		t.Errorf("labels %q", got)
	}
	// 3 occurs in two rows; 7 and 9 tie and are in the order of their indices.
	if s.Feature[0] != 3 || s.Feature[1] != 7 || s.Feature[2] != 9 || s.FeatureRows[0] != 2 {
		t.Errorf("features %v rows %v", s.Feature, s.FeatureRows)
	}
	if i, v := s.Matrix.Row(0); len(i) != 2 || i[0] != 0 || v[0] != 2.5 || i[1] != 1 || v[1] != 1 {
		t.Errorf("row 0: %v %v", i, v)
	}
	if s.Stats.Unlabelled != 1 || s.Stats.ZeroRows != 1 || s.Stats.EmptyLines != 1 || s.Stats.Comments != 1 {
		t.Errorf("stats %+v", s.Stats)
	}
	if s.PosBegin[1] != 1 || s.PosBegin[2] != 3 || s.PosRows[1] != 0 || s.PosRows[2] != 1 {
		t.Errorf("postings %v %v", s.PosBegin, s.PosRows)
	}
}
