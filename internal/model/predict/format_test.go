package predict

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"taxon/internal/data/table"
	"taxon/internal/fs"
	"taxon/internal/model/modeltest"
	"taxon/internal/ui/progress"
)

// All formats tell the same of each row, in order, broken ones too.
func TestFormats(t *testing.T) {
	model := modeltest.Animals(t, 10)
	data := filepath.Join(t.TempDir(), "rows.svm")
	if err := os.WriteFile(data, []byte("car 7:1\ncat 2:2 7:4\nx 0:1\n 7:2 5:9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Model: model, Top: 2, Input: Input{Path: data, Table: table.Options{SkipBroken: 1}}, Out: fs.Stdin}
	write := func(format string) []byte {
		var b bytes.Buffer
		o.Format, o.Stdout = format, &b
		if r, err := Run(t.Context(), o, progress.Discard{}); err != nil || r.Instances != 4 || r.Labels != 6 {
			t.Fatalf("%s: %+v, %v", format, r, err)
		}
		return b.Bytes()
	}
	want := [][]string{
		{"row", "id", "label_1", "score_1", "path_1", "label_2", "score_2", "path_2"},
		{"1", "", "car", "1", "car", "dog", "-0.5", "animal > dog"},
		{"2", "", "dog", "3.25", "animal > dog", "animal", "3", "animal"},
		{"3", "", "", "", "", "", "", ""},
		{"4", "", "dog", "-0.25", "animal > dog", "animal", "-0.5", "animal"},
	}
	rows, err := csv.NewReader(bytes.NewReader(write("csv"))).ReadAll()
	if err != nil || !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("csv: %q, %v", rows, err)
	}
	i := 1
	for line := range bytes.Lines(write("jsonl")) {
		var a answer
		if err := json.Unmarshal(line, &a); err != nil || !bytes.Contains(line, []byte(`"id":null,"labels":[`)) {
			t.Fatalf("%s: %v", line, err)
		}
		row := []string{fmt.Sprint(a.Row), ""}
		for _, l := range a.Labels {
			row = append(row, l.Label, fmt.Sprint(l.Score), l.Path)
		}
		if row = append(row, make([]string, 8-len(row))...); !slices.Equal(row, want[i]) {
			t.Errorf("jsonl: %q, want %q", row, want[i])
		}
		i++
	}
	if i != 5 {
		t.Errorf("jsonl: %d rows", i-1)
	}
	b := write("parquet")
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range f.Root().Columns() {
		names = append(names, c.Name())
	}
	if !slices.Equal(names, want[0]) {
		t.Errorf("parquet: columns %q", names)
	}
	in := f.RowGroups()[0].Rows()
	defer in.Close()
	got := make([]parquet.Row, 5)
	n, _ := in.ReadRows(got)
	for i, row := range got[:n] {
		var cells []string
		for _, v := range row {
			if v.IsNull() {
				cells = append(cells, "")
			} else {
				cells = append(cells, v.String())
			}
		}
		if !slices.Equal(cells, want[i+1]) {
			t.Errorf("parquet: %q, want %q", cells, want[i+1])
		}
	}
	if n != 4 {
		t.Errorf("parquet: %d rows", n)
	}
}

// A table needs to know how many labels a row may have.
func TestFormatPlaces(t *testing.T) {
	o := Options{Model: modeltest.Animals(t, 12), Format: "csv", Out: fs.Stdin}
	for format, want := range map[string]string{"csv": "add ‹top=K›", "parquet": "add ‹top=K›", "jsonl": ""} {
		var b bytes.Buffer
		o.Format, o.Stdout, o.Input = format, &b,
			Input{Path: fs.Stdin, Files: fs.Local{In: strings.NewReader("cat 2:2 7:4\n")}}
		_, err := Run(t.Context(), o, progress.Discard{})
		if want == "" {
			if err != nil || strings.Count(b.String(), `"label"`) != 3 {
				t.Errorf("%s: %v, %q", format, err, b.String())
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", format, err)
		}
	}
}
