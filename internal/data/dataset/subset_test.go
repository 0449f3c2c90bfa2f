package dataset

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/linalg/sparse"
)

// TestSubset compares a subset with the rows from which it was made.
func TestSubset(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "d.svm")
	text := "a 1:1 2:0.5\nb,a 2:1 7:3\nc\n3:1 5:1\nb 1:2 5:1 7:1\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Ingest(context.Background(), Options{Paths: []string{file}, Out: filepath.Join(dir, "set"),
		FS: fs.Local{}}); err != nil {
		t.Fatal(err)
	}
	s, err := Open(filepath.Join(dir, "set"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows := []uint32{1, 3, 4}
	sub := s.Subset(rows)
	counts := make([]uint32, len(s.FeatureRows))
	var positives [3][]uint32
	for i, r := range rows {
		wantIndex, wantValue := s.Matrix.Row(int(r))
		index, value := sub.Matrix.Row(i)
		if !slices.Equal(index, wantIndex) || !slices.Equal(value, wantValue) {
			t.Errorf("row %d: %v %v, want %v %v", i, index, value, wantIndex, wantValue)
		}
		for _, f := range index {
			counts[f]++
		}
		labels, want := sub.LabelIndex[sub.LabelBegin[i]:sub.LabelBegin[i+1]], s.LabelIndex[s.LabelBegin[r]:s.LabelBegin[r+1]]
		if !slices.Equal(labels, want) {
			t.Errorf("row %d: labels %v, want %v", i, labels, want)
		}
		for _, l := range want {
			positives[l] = append(positives[l], uint32(i))
		}
	}
	for l, want := range positives {
		if got := sub.PosRows[sub.PosBegin[l]:sub.PosBegin[l+1]]; !slices.Equal(got, want) {
			t.Errorf("label %d: rows %v, want %v", l, got, want)
		}
	}
	if !slices.Equal(sub.FeatureRows, counts) || sub.Matrix.Cols != s.Matrix.Cols || !reflect.DeepEqual(sub.Labels,
		s.Labels) || sub.Stats.Rows != 3 {
		t.Errorf("features %v, want %v; stats %+v", sub.FeatureRows, counts, sub.Stats)
	}
	if a := s.Subset(rows).Fingerprint; a != sub.Fingerprint || a == s.Fingerprint || a == s.Subset(rows[1:]).Fingerprint {
		t.Error("a fingerprint must follow from data and rows")
	}
	if empty := s.Subset(nil); empty.Matrix.Rows != 0 || len(empty.PosBegin) != 4 {
		t.Errorf("no rows: %+v", empty)
	}
}

// TestPart checks that the bits select rows, and that bits of another set are refused.
func TestPart(t *testing.T) {
	s := &Set{Matrix: sparse.FromRows(1, make([][]uint32, 11), make([][]float32, 11)), LabelBegin: make([]uint64, 12),
		Fingerprint: "f"}
	for _, rows := range [][]uint32{{0, 7, 8, 10}, {3}, {}} {
		part, err := s.Part(Bitmap(rows, 11))
		if err != nil || part.Matrix.Rows != len(rows) || part.Fingerprint != s.Subset(rows).Fingerprint {
			t.Errorf("rows %v: %+v, %v", rows, part, err)
		}
	}
	for _, bits := range [][]byte{{1}, {1, 1, 1}, {0, 8}} {
		if _, err := s.Part(bits); err == nil {
			t.Errorf("bits %v fit 11 rows", bits)
		}
	}
}
