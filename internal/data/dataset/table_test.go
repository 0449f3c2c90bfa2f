package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"taxon/internal/data/table"
	"taxon/internal/fs"
)

func ingestPath(t *testing.T, name, content string, o Options) *Set {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Paths, o.Out = []string{path}, filepath.Join(t.TempDir(), "set")
	if _, err := Ingest(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s, err := Open(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func sameRows(a, b *Set) error {
	if a.Matrix.Rows != b.Matrix.Rows || !slices.Equal(a.Labels, b.Labels) || !slices.Equal(a.Vocabulary, b.Vocabulary) ||
		!slices.Equal(a.IDF, b.IDF) ||
		!slices.Equal(a.LabelIndex, b.LabelIndex) || !slices.Equal(a.LabelBegin, b.LabelBegin) || !slices.Equal(a.Weight,
		b.Weight) {
		return fmt.Errorf("%d rows, labels %q, words %q, weights %v; want %d, %q, %q, %v", a.Matrix.Rows, a.Labels,
			a.Vocabulary, a.Weight, b.Matrix.Rows, b.Labels, b.Vocabulary, b.Weight)
	}
	for i := range a.Matrix.Rows {
		ai, av := a.Matrix.Row(i)
		bi, bv := b.Matrix.Row(i)
		if !slices.Equal(ai, bi) || !slices.Equal(av, bv) {
			return fmt.Errorf("row %d is %v %v, want %v %v", i, ai, av, bi, bv)
		}
	}
	return nil
}

// TestTableOfTexts checks that a table of texts in any format gives the same set as lines of the
// same texts, including names and weights.
func TestTableOfTexts(t *testing.T) {
	var lines, csv, jsonl strings.Builder
	csv.WriteString("w,class,text\n")
	weights := filepath.Join(t.TempDir(), "weights")
	var w strings.Builder
	for i := range 40 {
		label, words := []string{"a, b", "c", "d \"e\""}[i%3], fmt.Sprintf("one%d two%d Three four%d", i%5, i%7, i%3)
		fmt.Fprintf(&lines, "%q\t%s\n", label, words)
		fmt.Fprintf(&csv, "%d,\"%s\",\"%s\"\n", i%4, strings.ReplaceAll(label, `"`, `""`), strings.ReplaceAll(words, " ",
			",\n"))
		fmt.Fprintf(&jsonl, "{\"class\":%q,\"text\":%q,\"w\":%d}\n", label, words, i%4)
		fmt.Fprintf(&w, "%d\n", i%4)
	}
	if err := os.WriteFile(weights, []byte(w.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	want := ingestPath(t, "x.txt", lines.String(), Options{Text: true, Weights: weights})
	o := Options{Table: table.Options{Columns: table.Columns{Text: []string{"text"}, Label: "class", Weight: "w"}}}
	for name, content := range map[string]string{"x.csv": csv.String(), "x.jsonl": jsonl.String()} {
		got := ingestPath(t, name, content, o)
		if err := sameRows(got, want); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got.Stats.LeftOut != 10 || !slices.Equal(got.Table.Text, o.Table.Text) || got.Table.Label != "class" {
			t.Errorf("%s: %+v, %+v", name, got.Stats, got.Table)
		}
	}
}

// TestTableOfTextAndNumbers checks that rows of text and numbers have the features of the text
// alone and of the numbers alone. Reader and projection agree. An invalid first row does not decide
// which columns have lists.
func TestTableOfTextAndNumbers(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"text":"broken","age":1,"v":"x","l":"c0"}` + "\n")
	for i := range 12 {
		fmt.Fprintf(&b, "{\"text\":\"word%d common thing%d\",\"age\":%d,\"same\":7,\"v\":[%d,0.5],\"l\":\"c%d\"}\n", i%3, i%4,
			20+3*i, i, i%2)
	}
	both := Options{Table: table.Options{SkipBroken: 1, Columns: table.Columns{Text: []string{"text"},
		Features: []string{"age", "same", "v"}, Label: "l"}}}
	words, numbers := both, both
	words.Table.Features, numbers.Table.Text = nil, nil
	words.Table.SkipBroken = 0
	lines := strings.SplitAfterN(b.String(), "\n", 2)
	got, w, n := ingestPath(t, "x.jsonl", b.String(), both), ingestPath(t, "x.jsonl", lines[1], words),
		ingestPath(t, "x.jsonl", b.String(), numbers)
	terms := got.Table.Terms()
	if want := []string{`"age"`, `"same"`, `"v" 1`, `"v" 2`}; !slices.Equal(terms, want) {
		t.Fatalf("terms %q, want %q", terms, want)
	}
	if len(got.Vocabulary) != len(w.Vocabulary)+len(n.Feature) || got.Stats.Broken != 1 {
		t.Fatalf("vocabulary %q beside %q and %d numbers, %d broken", got.Vocabulary, w.Vocabulary, len(n.Feature),
			got.Stats.Broken)
	}
	p, err := got.Projection()
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(t.Context(), fs.Local{}, got.Source.Paths[0], ReaderOptions{Table: both.Table.Over(got.Table),
		Use: table.Use{Schema: got.Table, Labels: true, Features: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var v Vector
	for i := range got.Matrix.Rows {
		want := map[string]float32{}
		index, value := w.Matrix.Row(i)
		for k, c := range index {
			want[w.Vocabulary[c]] = value[k]
		}
		index, value = n.Matrix.Row(i)
		for k, c := range index {
			want[terms[n.Feature[c]-1]] = value[k]
		}
		index, value = got.Matrix.Row(i)
		for k, c := range index {
			if term := got.Vocabulary[c]; want[term] != value[k] {
				t.Errorf("row %d: %s has %v, alone %v", i, term, value[k], want[term])
			}
		}
		row, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		if p.Row(row, &v); len(index) != len(want) || !slices.Equal(v.Index, index) || !slices.Equal(v.Value, value) {
			t.Errorf("row %d reads as %v %v, the set has %v %v", i, v.Index, v.Value, index, value)
		}
	}
}

// TestTableOfNumbers checks that numbers are standardised over the rows that have them, that a
// constant number is not a feature, and that lists are not scaled. A reader with the schema gives
// the same values.
func TestTableOfNumbers(t *testing.T) {
	var b strings.Builder
	for i := range 10 {
		age := fmt.Sprint(20 + 3*i)
		if i == 4 {
			age = "null"
		}
		fmt.Fprintf(&b, "{\"age\":%s,\"same\":7,\"v\":[%d,0.5],\"l\":\"c%d\"}\n", age, i, i%2)
	}
	o := Options{Table: table.Options{Columns: table.Columns{Features: []string{"age", "same", "v"}, Label: "l"}}}
	s := ingestPath(t, "x.jsonl", b.String(), o)
	if !slices.Equal(s.Feature, []uint32{3, 4, 1}) || !slices.Equal(s.Table.Widths, []int{0, 0, 2}) {
		t.Fatalf("features %v, widths %v", s.Feature, s.Table.Widths)
	}
	sum, squares, n := 0.0, 0.0, 0.0
	r, err := OpenReader(t.Context(), fs.Local{}, s.Source.Paths[0], ReaderOptions{Table: o.Table.Over(s.Table),
		Use: table.Use{Schema: s.Table, Labels: true, Features: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := s.Projection()
	if err != nil {
		t.Fatal(err)
	}
	var v Vector
	for i := range s.Matrix.Rows {
		index, value := s.Matrix.Row(i)
		for k, c := range index {
			x := float64(value[k])
			switch s.Feature[c] {
			case 1:
				sum, squares, n = sum+x, squares+x*x, n+1
			case 3:
				if x != float64(i) {
					t.Errorf("row %d: list holds %v", i, x)
				}
			}
		}
		row, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		if p.Row(row, &v); !slices.Equal(v.Index, index) || !slices.Equal(v.Value, value) {
			t.Errorf("row %d reads as %v %v, the set has %v %v", i, v.Index, v.Value, index, value)
		}
	}
	if n != 9 || math.Abs(sum) > 1e-6 || math.Abs(squares/n-1) > 1e-6 {
		t.Errorf("%v values, sum %v, squares %v", n, sum, squares)
	}
	if _, err := r.Read(); err != io.EOF {
		t.Error(err)
	}
}

// TestTableOfLargeNumbers checks that large numbers with small differences, such as times, ids and
// coordinates, lose no digits before their mean is subtracted, in any kind of table. A constant
// column is reported.
func TestTableOfLargeNumbers(t *testing.T) {
	type line struct {
		T    int64   `parquet:"t" json:"t"`
		East float64 `parquet:"east" json:"east"`
		ID   int64   `parquet:"id" json:"id"`
		L    string  `parquet:"l" json:"l"`
	}
	var rows []line
	var csv, jsonl strings.Builder
	csv.WriteString("t,east,id,l\n")
	for i := range 40 {
		r := line{1_600_000_000 + int64(i)*7%60, 345_678_901.25 + float64(i%7)/64, 9_007_199_254_740_990, "c" +
			strconv.Itoa(i%2)}
		rows = append(rows, r)
		fmt.Fprintf(&csv, "%d,%f,%d,%s\n", r.T, r.East, r.ID, r.L)
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		jsonl.Write(append(b, '\n'))
	}
	var packed bytes.Buffer
	if err := parquet.Write(&packed, rows); err != nil {
		t.Fatal(err)
	}
	mean, squares := 0.0, 0.0
	for _, r := range rows {
		mean += float64(r.T) / float64(len(rows))
	}
	for _, r := range rows {
		squares += (float64(r.T) - mean) * (float64(r.T) - mean)
	}
	o := Options{Table: table.Options{Columns: table.Columns{Features: []string{"t", "east", "id"}, Label: "l"}}}
	first := ingestPath(t, "x.csv", csv.String(), o)
	if !slices.Equal(first.Feature, []uint32{1, 2}) || !slices.Contains(first.Warnings,
		`columns left out, because all rows that have a number there have the same: "id"`) {
		t.Errorf("features %v, warnings %q", first.Feature, first.Warnings)
	}
	for name, content := range map[string]string{"x.tsv": strings.ReplaceAll(csv.String(), ",", "\t"),
		"x.jsonl": jsonl.String(), "x.parquet": packed.String()} {
		if err := sameRows(ingestPath(t, name, content, o), first); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, err := OpenReader(t.Context(), fs.Local{}, first.Source.Paths[0], ReaderOptions{Table: o.Table,
		Use: table.Use{Schema: first.Table, Features: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, want := range rows {
		_, value := first.Matrix.Row(i)
		if w := float32((float64(want.T) - mean) / math.Sqrt(squares/float64(len(rows)))); math.Abs(float64(value[0]-w)) > 1e-6 {
			t.Errorf("row %d: %v, want %v", i, value[0], w)
		}
		row, err := r.Read()
		if err != nil || !slices.Equal(row.Value[:2], value) {
			t.Errorf("row %d reads as %v, %v; the set has %v", i, row, err, value)
		}
	}
}

// TestNarrowColumns checks that a column counts as constant only if all its numbers are equal, and
// not if they differ in the last digits of a float64.
func TestNarrowColumns(t *testing.T) {
	const rows = 50
	for name, at := range map[string]func(i int) float64{
		"epoch nanoseconds": func(i int) float64 { return 1.7e18 + float64(256*i) },
		"beyond 1e15":       func(i int) float64 { return 9e15 + float64(i) },
		"at 2^53":           func(i int) float64 { return 1<<53 + float64(2*i) },
		"below -1e15":       func(i int) float64 { return -1e15 - float64(i) },
		"last bits of 1":    func(i int) float64 { return 1 + float64(i)*0x1p-52 },
		"alternating bit":   func(i int) float64 { return 1 + 0x1p-52*float64(1+i%2) },
		"one that differs":  func(i int) float64 { return 1e15 + float64(i/(rows-1)) },
		"tiny":              func(i int) float64 { return float64(i%2) * 1e-200 },
	} {
		var csv, jsonl strings.Builder
		csv.WriteString("x,l\n")
		mean := 0.0
		for i := range rows {
			l, text := strconv.Itoa(i%2), strconv.FormatFloat(at(i), 'g', -1, 64)
			csv.WriteString(text + "," + l + "\n")
			jsonl.WriteString(`{"x": ` + text + `, "l": "` + l + `"}` + "\n")
			mean += (at(i) - at(0)) / rows
		}
		squares := 0.0
		for i := range rows {
			d := at(i) - at(0) - mean
			squares += d * d
		}
		o := Options{Table: table.Options{Columns: table.Columns{Features: []string{"x"}, Label: "l"}}}
		set := ingestPath(t, "x.csv", csv.String(), o)
		if err := set.Featureless(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := sameRows(ingestPath(t, "x.jsonl", jsonl.String(), o), set); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if squares == 0 { // they underflow in float64
			continue
		}
		sd := math.Sqrt(squares / rows)
		if got := set.Table.Scale[0]; math.Abs(got-sd) > 1e-9*sd {
			t.Errorf("%s: deviation %g, want %g", name, got, sd)
		}
		if got := set.Table.Mean[0]; math.Abs(got-at(0)-mean) > math.Abs(at(0))*0x1p-52 {
			t.Errorf("%s: mean %g, want %g + %g", name, got, at(0), mean)
		}
	}
	o := Options{Table: table.Options{Columns: table.Columns{Features: []string{"x"}, Label: "l"}}}
	if s := ingestPath(t, "x.csv", "x,l\n0.1,a\n0.1,b\n0.1,a\n", o); s.Featureless() == nil || !slices.Equal(s.Table.Mean,
		[]float64{0.1}) {
		t.Errorf("0.1 in all rows: %+v", s.Table)
	}
}

// TestFeatureless checks that the error for data without a feature fits the kind of the data.
func TestFeatureless(t *testing.T) {
	number := Options{Table: table.Options{Columns: table.Columns{Features: []string{"a", "b"}, Label: "l"}}}
	var least Bound
	if err := least.Set("5"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, content string
		o             Options
		want          string
	}{
		{"x.csv", "a,b,l\n1,2,x\n1,2,y\n", number, `no column of numbers tells rows apart: "a", "b"`},
		{"x.csv", "a,b,l\n,,x\nNA,,y\n", number, `no row has a number in "a", "b"`},
		{"x.svm", "x\ny\n", Options{}, "lines are LABEL[,LABEL...] INDEX:VALUE ... (for LABEL<TAB>text add ‹text›)"},
		{"x.svm", "a,l\n1,x\n2,y\n", Options{}, "add ‹text›; these look like rows of a table: say ‹data-format=csv›)"},
		{"x.svm", "a;l\n1;x\n2;y\n", Options{}, "add ‹text›; these look like rows of a table: say ‹data-format=csv›)"},
		{"x.txt", "x\ta b\ny\tb c\n", Options{Text: true, Words: Words{MinDF: least}}, "no word stands in 5 or more of the " +
			"2 instances (‹min-df›)"},
		{"x.txt", "x\ta b\ny\tc d\n", Options{Text: true}, "no word stands in 2 or more of the 2 instances (‹min-df›)"},
		{"x.txt", "x\ta b\ny\tb c\nz\tb\nz\tc\n", Options{Text: true}, ""},
	} {
		if err := ingestPath(t, c.name, c.content, c.o).Featureless(); (err == nil) != (c.want == "") || err != nil &&
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.content, err, c.want)
		}
	}
}

// TestSkipBrokenLines checks that --skip-broken skips the given number of lines, for any number of
// threads, and that callers who need a result for each row get them as empty rows.
func TestSkipBrokenLines(t *testing.T) {
	var b strings.Builder
	broken := 0
	for i := range 20000 {
		if i%5000 == 77 {
			b.WriteString("a 0:1\n")
			broken++
		} else {
			fmt.Fprintf(&b, "c%d %d:1 %d:0.5\n", i%3, i%50+1, i%7+100)
		}
	}
	for threads := 1; threads < 4; threads++ {
		o := Options{Threads: threads, MemoryBytes: 1 << 20, Table: table.Options{SkipBroken: int64(broken)}}
		s := ingestPath(t, "x.svm", b.String(), o)
		if s.Matrix.Rows != 20000-broken || s.Stats.Broken != int64(broken) || !slices.Contains(s.Warnings,
			"4 broken rows left out") {
			t.Errorf("%d threads: %d rows, %d broken, %q", threads, s.Matrix.Rows, s.Stats.Broken, s.Warnings)
		}
		o.Table.SkipBroken--
		o.Paths, o.Out = s.Source.Paths, filepath.Join(t.TempDir(), "set")
		if _, err := Ingest(t.Context(), o); err == nil || !strings.Contains(err.Error(), "x.svm:15078: feature index 0") {
			t.Errorf("%d threads: %v", threads, err)
		}
	}
	r := NewReader(strings.NewReader("a 1:1\nb x\n 2:1\n"), ReaderOptions{Table: table.Options{SkipBroken: 1},
		Use: table.Use{KeepBroken: true}})
	for i, want := range []bool{false, true, false} {
		if row, err := r.Read(); err != nil || row.Broken != want || len(row.Index) != map[bool]int{true: 0, false: 1}[want] {
			t.Errorf("row %d: %+v, %v", i, row, err)
		}
	}
}

// TestTableMistakes checks that kinds of files cannot be mixed, and that inapplicable flags are
// refused.
func TestTableMistakes(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a.csv": "t,l,w\nx,y,1\n", "b.svm": "y 1:1\n",
		"deep.txt": "a/b\tx\n" + strings.Repeat("a/", 256) + "b\tx\n",
		"zero.csv": "t,l,w\nx,y,0\n", "minus.csv": "t,l,w\nx,y,1\nx,y,-1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	columns := table.Columns{Text: []string{"t"}, Label: "l"}
	weighed := columns
	weighed.Weight = "w"
	for want, o := range map[string]Options{
		"is not a table":                   {Paths: []string{"a.csv", "b.svm"}, Table: table.Options{Columns: columns}},
		"is a table, but the files before": {Paths: []string{"b.svm", "a.csv"}},
		"say what to learn from":           {Paths: []string{"a.csv"}},
		"is not a table by its name":       {Paths: []string{"b.svm"}, Table: table.Options{Columns: columns}},
		"has no indices": {Paths: []string{"a.csv"}, ZeroBased: true,
			Table: table.Options{Columns: columns}},
		"deep.txt:2: a path of 257 parts": {Paths: []string{"deep.txt"}, Text: true,
			Table: table.Options{Columns: table.Columns{PathSeparator: "/"}}},
		"all weights are 0":                 {Paths: []string{"zero.csv"}, Table: table.Options{Columns: weighed}},
		"minus.csv:3: weight -1 is below 0": {Paths: []string{"minus.csv"}, Table: table.Options{Columns: weighed}},
		"exclude each other": {Paths: []string{"a.csv"}, Weights: "w.txt",
			Table: table.Options{Columns: weighed}},
	} {
		for i, p := range o.Paths {
			o.Paths[i] = filepath.Join(dir, p)
		}
		o.Out = filepath.Join(dir, "set")
		if _, err := Ingest(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if fs.Exists(o.Out) {
			t.Errorf("%s: something was written", want)
		}
	}
}
