package dataset

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"taxon/internal/fs"
)

// TestRealData checks the counts of real collections; it needs TAXON_DATA.
func TestRealData(t *testing.T) {
	root := os.Getenv("TAXON_DATA")
	if root == "" {
		t.Skip("TAXON_DATA names no folder with the real collections")
	}
	for _, c := range []struct {
		name                              string
		rows, cols, nnz, labels, zeroRows int64
		labelsPerRow                      float64
	}{
		{"wordnet-freq/train", 44317, 28780, 561688, 3383, 0, 1.0203},
		{"wordnet-freq/test", 10113, 0, 122561, 2659, 1, 1.0198},
		{"clef/train", 10000, 80, 800000, 63, 0, 1},
		{"clef/test", 1006, 80, 80480, 63, 0, 1},
		{"enron/train", 988, 1001, 87268, 51, 4, 2.7389},
		{"enron/test", 660, 0, 50662, 53, 4, 3.0545},
		{"proteins_go/train", 15788, 8000, 5547270, 906, 0, 3.1578},
		{"proteins_go/test", 3822, 0, 1339942, 880, 0, 3.1536},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "set")
			r, err := Ingest(context.Background(), Options{Paths: []string{filepath.Join(root, c.name+".svm.xz")}, Out: out,
				FS: fs.Local{}})
			if err != nil {
				t.Fatal(err)
			}
			s, err := Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			st := r.Stats
			if st.Rows != c.rows || c.cols > 0 && st.Columns != c.cols || st.Nonzeros != c.nnz || st.Labels != c.labels ||
				st.ZeroRows != c.zeroRows {
				t.Errorf("got %+v", st)
			}
			if got := float64(st.LabelEntries) / float64(st.Rows); got < c.labelsPerRow-1e-4 || got > c.labelsPerRow+1e-4 {
				t.Errorf("%v labels a row, want %v", got, c.labelsPerRow)
			}
			if s.Matrix.NNZ != c.nnz || s.Matrix.Rows != int(c.rows) || len(s.Labels) != int(c.labels) ||
				s.Fingerprint != r.Fingerprint {
				t.Errorf("opened set differs: %+v", s.Stats)
			}
		})
	}
}
