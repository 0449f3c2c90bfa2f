package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"taxon/internal/fs"
)

// show formats a row as line id labels|text index:value @weight.
func show(r *Row) string {
	if r.Broken {
		return strings.TrimSpace(fmt.Sprintf("%d broken %s", r.Line, r.ID))
	}
	s := fmt.Sprintf("%d %s %s|%s", r.Line, r.ID, bytes.Join(r.Labels, []byte("+")), r.Text)
	for i, x := range r.Index {
		s += fmt.Sprintf(" %d:%g", x, r.Value[i])
	}
	if r.Weight != "" {
		s += "@" + r.Weight
	}
	return s
}

func readPath(t *testing.T, path string, o Options, use Use) (rows []string, r *Reader, err error) {
	t.Helper()
	if r, err = Open(t.Context(), fs.Local{}, path, o, use); err != nil {
		return nil, nil, err
	}
	defer r.Close()
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, r, nil
		}
		if err != nil {
			return rows, r, err
		}
		rows = append(rows, show(row))
	}
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	all    = Use{Labels: true, Weights: true, Features: true}
	text   = Columns{Text: []string{"t"}, Label: "l"}
	paths  = Columns{Text: []string{"t", "u"}, Label: "l", ID: "i", Weight: "w", PathSeparator: " > ", LabelSeparator: ";"}
	levels = Columns{Text: []string{"t"}, LevelColumns: []string{"u", "v"}, PathSeparator: "//"}
	nums   = Columns{Features: []string{"a", "b"}, Label: "l"}
)

// TestRows reads unusual tables and compares the rows with what a person would read.
func TestRows(t *testing.T) {
	for _, c := range []struct {
		name, content string
		o             Columns
		want          []string
	}{
		{"x.csv", "t,l\na b,c\n", text, []string{"2  c|a b"}},
		{"mark, CRLF, no last end, another order.csv", "\xef\xbb\xbfl,x,t\r\nc,1,a b\r\nd,2,e", text,
			[]string{"2  c|a b", "3  d|e"}},
		{"quotes.csv", "t,l\n\"a, \"\"b\"\"\n\nc\",\"d, e\"\nf,g\n", text, []string{"2  d, e|a, \"b\"\n\nc", "5  g|f"}},
		{"line ends within, CRLF.csv", "\"t\",\"l\"\r\n\"a\r\nb\",c\r\nd,e\r\n", text, []string{"2  c|a\r\nb", "4  e|d"}},
		{"line ends within a row behind a mark.csv", "\xef\xbb\xbf\"t\",l\r\n\"a\"\"\r\n\r\r\n\",c\r\n,\"\r\n d\re\"\r\n",
			text, []string{"2  c|a\"\r\n\r\r\n", "5  d\re|"}},
		{"empty cells and lines.csv", "t,l\n,\n\na,\n,b\n", text, []string{"2  |", "4  |a", "5  b|"}},
		{"paths.csv", "i,t,u,l,w\n7,a,b, A >  B > C,2\n 8,,c,A > D; E ;, 0.5\n", paths, []string{"2 7 A > B > C|a b@2",
			"3  8 A > D+E|c@0.5"}},
		{"numbers.csv", "a,b,l\n1,-2.5e1,x\n,NaN,y\nTRUE, 0 ,z\n", nums, []string{"2  x| 1:1 2:-25", "3  y|",
			"4  z| 1:1 2:0"}},
		{"tabs.tsv", "t\tl\n5\" disk, big\tc\n\"a\tb\"\td\n", text, []string{"2  c|5\" disk, big", "3  d|a\tb"}},
		{"quotes.tsv", "t\tl\r\n\"Small\" is a purr\tc\r\n\"a \"\"b\"\"\"\t\"d\"\r\n\r\n\"\"so\" it is\t\"e\" f\r\n\"\"\tg\n",
			text,
			[]string{"2  c|\"Small\" is a purr", "3  d|a \"b\"", "5  \"e\" f|\"\"so\" it is", "6  g|"}},
		{"quoted head.tsv", "\"t\"\t\"l\"\na\tb\n", text, []string{"2  b|a"}},
		{"a tab in quotes that separates.tsv", "t\tl\tx\n\"a\tb\"\tc\n", text, []string{"2  b\"|\"a"}},
		{"x.jsonl", "{\"t\":\"a\\nb\",\"l\":\"c\",\"i\":7}\n\n{\"l\":[\"d\",\"e f\"],\"t\":null}\n{\"t\":3.5,\"l\":12}\n",
			text, []string{"1  c|a\nb", "3  d+e f|", "4  12|3.5"}},
		{"lists.ndjson", "{\"a\":[1,2,null],\"b\":0,\"l\":\"x\"}\n{\"a\":[4,5,6],\"b\":\"7\",\"l\":\"y\"}\n{\"l\":\"z\"}",
			nums,
			[]string{"1  x| 1:1 2:2 4:0", "2  y| 1:4 2:5 3:6 4:7", "3  z|"}},
		{"a list that comes late.jsonl",
			"{\"a\":null,\"b\":1,\"l\":\"x\"}\n{\"b\":2,\"l\":\"y\"}\n{\"a\":[1,2],\"b\":null,\"l\":\"z\"}", nums,
			[]string{"1  x| 3:1", "2  y| 3:2", "3  z| 1:1 2:2"}},
		{"the other key twice.jsonl", "{\"t\":\"a: {\\\"\",\"l\":\"c\",\"x\":1,\"x\":{\"t\":1}}\n", text,
			[]string{"1  c|a: {\""}},
	} {
		rows, _, err := readPath(t, write(t, c.name, c.content), Options{Columns: c.o}, all)
		if err != nil || !slices.Equal(rows, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.name, rows, err, c.want)
		}
	}
}

// TestBroken checks that each error names its line and a remedy.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		name, content string
		o             Columns
		line          int64
		want          string
	}{
		{"a.csv", "t,l\na,b\nc\n", text, 3, "1 columns where line 1 has 2"},
		{"a.csv", "t,l\n\"a\nb\",c\nd,e,f\n", text, 4, "3 columns where line 1 has 2"},
		{"a.csv", "t,l\na,b\n\"c,d\ne,f\n", text, 3, "does not end where a quote stands in line"},
		{"a.csv", "t,l\n\"a\"b,c\n", text, 2, "quotes within are doubled"},
		{"a.csv", "t,l\na\"b,c\n", text, 2, "put the text in quotes"},
		{"a.csv", "t,l\na,b\nc\x00,d\n", text, 3, "NUL byte"},
		{"a.csv", "t,l\na,b\ncaf\xe9,d\n", text, 3, "not UTF-8"},
		{"a.csv", "t,l\nc,caf\xe9\n", text, 2, "not UTF-8"},
		{"a.csv", "\xff\xfet\x00", text, 1, "UTF-16"},
		{"a.csv", "i,t,u,l,w\n1,a,b,c,1\n\xff\xfe2,a,b,c,1\n", paths, 3, `column "i": "\xff\xfe2" is not UTF-8 text`},
		{"a.jsonl", "{\"i\":\"a\\u0000\",\"t\":\"a\",\"l\":\"c\"}\n", paths, 1, `column "i": "a\x00" is not UTF-8 text`},
		{"a.jsonl", "{\"t\":\"a\",\"l\":\"c\\u0000\"}\n", text, 1, "is not UTF-8 text"},
		{"a.jsonl", "{\"t\":\"a\",\"l\":\"c\"}\n{\"t\":\"a\",\"l\":\"c\",\"\\u006c\":\"d\"}\n", text, 2,
			`column "l" occurs twice`},
		{"a.jsonl", "{\"a\":[],\"b\":1,\"l\":\"b\"}\n", nums, 1, `column "a": a list without numbers`},
		{"a.jsonl", "{\"b\":1,\"l\":\"b\"}\n{\"a\":1,\"l\":\"b\"}\n{\"a\":[1],\"l\":\"b\"}\n", nums, 3,
			`column "a": a list where rows before have a number`},
		{"a.csv", "t,u,v\nx,a/,b\n", levels, 2, `the levels "a/", "b" give the path "a///b", which splits into other levels`},
		{"a.csv", "t\x00,\x00l\x00\n\x00", text, 1, "UTF-16 without a byte order mark"},
		{"a.tsv", "\x00t\x00\t\x00l\x00\n", text, 1, "UTF-16 without a byte order mark"},
		{"a.csv", "PAR1\x15\x04\x15", text, 1, "is a Parquet file, whatever its name"},
		{"a.jsonl", "ARROW1\x00\x00", text, 1, "is an Arrow file, whatever its name"},
		{"a.csv", "\x93NUMPY\x01\x00", text, 1, "is a NumPy array"},
		{"a.csv", "\xd0\xcf\x11\xe0", text, 1, "old workbook"},
		{"a.csv", "SQLite format 3\x00", text, 1, "SQLite"},
		{"a.tsv", "t\tl\na\tb\n\"open\tc\n", text, 3, "column 1 begins with a quote that does not end in this line"},
		{"a.tsv", "t\tl\na\n", text, 2, "1 columns where line 1 has 2"},
		{"a.tsv", "t\tl\na\x00\tb\n", text, 2, "NUL byte"},
		{"a.tsv", "t\tl\na\rb\tc\n", text, 2, "carriage return"},
		{"a.tsv", "", text, 1, "the table is empty"},
		{"a.csv", "t,l\ra,b\r", text, 1, "carriage return"},
		{"a.csv", "", text, 1, "the table is empty"},
		{"a.csv", "t,l\n", text, 0, "no row in it"},
		{"a.csv", "tt,l\na,b\n", text, 1, `no column "t": there are "`},
		{"a.csv", "t,l,t\na,b,c\n", text, 1, `column "t" occurs twice`},
		{"a.csv", "titles,l\na,b\n", Columns{Text: []string{"title"}, Label: "l"}, 1,
			`no column "title": did you mean "titles"?`},
		{"a.csv", "x,y\na,b\n", Columns{Text: []string{"x"}}, 1, `‹label-column=NAME›; its columns are "x", "y"`},
		{"a.csv", "x,y\na,b\n", Columns{Label: "y"}, 1, "say what to learn from"},
		{"a.csv", "a,b,l\n1,2,x\n1,2x,y\n", nums, 3, `column "b": "2x" is not a finite number`},
		{"a.csv", "a,b,l\n1,2,x\n1,inf,y\n", nums, 3, "not a finite number"},
		{"a.csv", "a,b,l\n1,1e39,y\n", nums, 2, "too large for float32"},
		{"a.csv", "t,u,l,i,w\na,b,c >  > d,1,1\n", paths, 2, "has an empty part"},
		{"a.jsonl", "{\"t\":\"a\",\"l\":\"b\"}\n{\"t\":\"a\"\n", text, 2, "unexpected end of JSON"},
		{"a.jsonl", "[1]\n", text, 1, "is one JSON document over several lines, or a list"},
		{"a.jsonl", "{\n\"t\":\"a\"\n}\n", text, 1, "is one JSON document over several lines, or a list"},
		{"a.jsonl", "{\"t\":\"a\",\"l\":\"b\"}\n[1]\n", text, 2, "is no JSON object"},
		{"a.jsonl", "{\"t\":\"a\",\"l\":\"b\"}\n{\"t\":\"a\",\"l\":\"b\\ud800\"}\n", text, 2, "half of a surrogate pair"},
		{"a.jsonl", "{\"t\":\"a\\udc00\",\"l\":\"b\"}\n", text, 1, "half of a surrogate pair"},
		{"a.jsonl", "{\"t\":\"a\",\"l\":\"b\"}\n{\"t\":\"a\",\"l\":\"\xff\"}\n", text, 2, "not UTF-8"},
		{"a.jsonl", "{\"t\":{},\"l\":\"b\"}\n", text, 1, `column "t" holds an object`},
		{"a.jsonl", "{\"tt\":\"a\",\"l\":\"b\"}\n", text, 0, `no column "t": there are "`},
		{"a.jsonl", "{\"a\":[1],\"l\":\"b\",\"b\":1}\n{\"a\":[1,2],\"l\":\"b\",\"b\":1}\n", nums, 2, "a list of 2 numbers " +
			"where rows before have 1"},
		{"a.parquet", "PAR1, not really", text, 1, "is no Parquet file that can be read: it does not end as one"},
		{"a.txt", "t,l\na,b\n", text, 1, "is not a table by its name"},
	} {
		path := write(t, c.name, c.content)
		_, _, err := readPath(t, path, Options{Columns: c.o}, all)
		var in *fs.InputError
		if !errors.As(err, &in) || in.Line != c.line || in.Path != path || !strings.Contains(in.Msg, c.want) ||
			strings.ContainsAny(in.Msg, "\n\x00") {
			t.Errorf("%q: %v; want line %d, %q", c.content, err, c.line, c.want)
		}
	}
}

// TestSkipBroken checks that --skip-broken skips the given number of rows, and that callers who
// need a result for each row get them as empty rows.
func TestSkipBroken(t *testing.T) {
	path := write(t, "a.csv", "t,l\na,b\nc\nd,e,f\ng,h\n")
	for skip, want := range map[int64]string{0: "a.csv:3", 1: "a.csv:4", 2: "", 9: ""} {
		rows, r, err := readPath(t, path, Options{Columns: text, SkipBroken: skip}, all)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("skip %d: %v, want %s", skip, err, want)
			}
			continue
		}
		if n, first := r.Broken(); err != nil || n != 2 || !strings.Contains(first.Error(), "a.csv:3") ||
			!slices.Equal(rows, []string{"2  b|a", "5  h|g"}) {
			t.Errorf("skip %d: %q, %v, %d broken", skip, rows, err, n)
		}
	}
	keep := all
	keep.KeepBroken = true
	rows, _, err := readPath(t, path, Options{Columns: text, SkipBroken: 2}, keep)
	if err != nil || !slices.Equal(rows, []string{"2  b|a", "3 broken", "4 broken", "5  h|g"}) {
		t.Errorf("%q, %v", rows, err)
	}
	// a quote that is not closed includes the following lines, which are counted
	path = write(t, "q.csv", "t,l\n\"a,b\nc,d\ne,f\n")
	if _, _, err = readPath(t, path, Options{Columns: text, SkipBroken: 1}, all); err == nil ||
		!strings.Contains(err.Error(), "q.csv:2") {
		t.Errorf("three lines in a quote that is not closed: %v", err)
	}
	// each line of an invalid row is returned and counted, with its id if that is readable
	ids := Columns{Text: []string{"t"}, ID: "i"}
	for _, c := range []struct {
		name, content string
		broken        int64
		want          []string
	}{
		{"a.csv", "i,t\n1,red apple\n2,\"green\n3,red\n4,\"x\" y\n5,pear\n6,red\n", 3, []string{"2 1 |red apple",
			"3 broken 2", "4 broken", "5 broken", "6 5 |pear", "7 6 |red"}},
		{"end.csv", "i,t\n1,a\n2,\"b\n3,c\n", 2, []string{"2 1 |a", "3 broken 2", "4 broken"}},
		{"cells.csv", "i,t\n1,\"a\nb\",c\n2,d\n3\n", 3, []string{"2 broken 1", "3 broken", "4 2 |d", "5 broken 3"}},
		{"behind.csv", "t,i\na,x,1\nb\"c,2\nd,3\n", 2, []string{"2 broken", "3 broken", "4 3 |d"}}, // cells may have moved
		{"text.csv", "t,i\ncaf\xe9,1\n\"a\nb\",2\n", 1, []string{"2 broken 1", "3 2 |a\nb"}},
		{"a.tsv", "i\tt\n1\t\"a\n2\tb\n3\"\tc\td\n4\te\n", 2, []string{"2 broken 1", "3 2 |b", "4 broken", "5 4 |e"}},
		{"text.tsv", "i\tt\n1\tcaf\xe9\n2\tb\n", 1, []string{"2 broken 1", "3 2 |b"}},
		{"a.jsonl", "{\"i\":1,\"t\":{}}\n{\"i\":2\n{\"i\":3,\"t\":\"a\"}\n", 2, []string{"1 broken 1", "2 broken", "3 3 |a"}},
	} {
		rows, r, err := readPath(t, write(t, c.name, c.content), Options{Columns: ids, SkipBroken: 9},
			Use{Features: true, KeepBroken: true})
		if err != nil || !slices.Equal(rows, c.want) {
			t.Errorf("%q: %q, %v; want %q", c.content, rows, err, c.want)
		} else if n, _ := r.Broken(); n != c.broken {
			t.Errorf("%q: %d broken rows, want %d", c.content, n, c.broken)
		}
	}
}

// TestFiles checks that several files of a pattern are one table, each with its own header.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"1.csv": "t,l\na,b\n", "2.csv": "l,t\nd,c\ne\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rows, _, err := readPath(t, filepath.Join(dir, "*.csv"), Options{Columns: text}, all)
	if !slices.Equal(rows, []string{"2  b|a", "2  d|c"}) || err == nil || !strings.Contains(err.Error(),
		"2.csv:3: 1 columns") {
		t.Errorf("%q, %v", rows, err)
	}
}

// TestParquet reads texts, numbers, missing values and lists, over several row groups and pages.
func TestParquet(t *testing.T) {
	type record struct {
		T string    `parquet:"t,optional"`
		A *float64  `parquet:"a,optional"`
		B []float32 `parquet:"b,list"`
		I int64     `parquet:"i"`
		L []string  `parquet:"l,list"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[record](&b, parquet.MaxRowsPerRowGroup(700), parquet.PageBufferSize(256))
	var wantText, wantNumbers []string
	for i := range 2000 {
		r := record{T: fmt.Sprintf("text %d", i), B: []float32{float32(i), 0.5}, I: int64(i)}
		want := fmt.Sprintf("%d %d ", i+1, i)
		if x := float64(i) / 4; i%3 > 0 {
			r.A = &x
		}
		for k := range i % 3 {
			r.L = append(r.L, fmt.Sprintf("l%d", k))
		}
		want += strings.Join(r.L, "+") + "|"
		wantText = append(wantText, want+r.T)
		if r.A != nil {
			want += fmt.Sprintf(" 1:%g", float32(*r.A))
		}
		wantNumbers = append(wantNumbers, want+fmt.Sprintf(" 2:%d 3:0.5", i))
		if _, err := w.Write([]record{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := write(t, "a.parquet", b.String())
	rows, _, err := readPath(t, path, Options{Columns: Columns{Text: []string{"t"}, Label: "l", ID: "i"}}, all)
	if err != nil || !slices.Equal(rows, wantText) {
		t.Errorf("text: %v, %d rows, %q", err, len(rows), rows[:min(len(rows), 4)])
	}
	rows, r, err := readPath(t, path, Options{Columns: Columns{Features: []string{"a", "b"}, Label: "l", ID: "i"}}, all)
	if err != nil || !slices.Equal(rows, wantNumbers) || !slices.Equal(r.Schema().Widths, []int{0, 2}) {
		t.Errorf("numbers: %v, %d rows, %q", err, len(rows), rows[:min(len(rows), 4)])
	}
	cut := write(t, "cut.parquet", b.String()[:b.Len()/2]+b.String()[b.Len()/2+5:])
	if _, _, err = readPath(t, cut, Options{Columns: Columns{Text: []string{"t"}, Label: "l"}}, all); !fs.IsInput(err) {
		t.Errorf("a damaged file: %v", err)
	}
}

// TestArrow checks that Arrow files read like JSON lines of the same rows: dictionary-encoded
// texts, numbers of any width, lists of fixed and variable length, missing values.
func TestArrow(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		a, l := fmt.Sprint(float64(i)/4), fmt.Sprintf("[%q,%q]", fmt.Sprint("l", i%3), "all")
		if i%3 == 0 {
			a, l = "null", "null"
		}
		fmt.Fprintf(&b, "{\"t\":\"text %d\",\"a\":%s,\"b\":[%d,0.5],\"h\":[0.25,%d],\"i\":%d,\"l\":%s,\"ok\":%v}\n", i%7, a,
			i%100, i%9, i, l, i%2 == 0)
	}
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	fields := []arrow.Field{{Name: "t", Type: dict, Nullable: true}, {Name: "a", Type: arrow.PrimitiveTypes.Float64,
		Nullable: true}, {Name: "b", Type: arrow.ListOf(arrow.PrimitiveTypes.Float32)},
		{Name: "h", Type: arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Float16)},
		{Name: "i", Type: arrow.PrimitiveTypes.Int64}, {Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String),
			Nullable: true},
		{Name: "ok", Type: arrow.FixedWidthTypes.Boolean}}
	schema := arrow.NewSchema(fields, nil)
	all300, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(b.String()),
		array.WithMultipleDocs())
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := ipc.NewFileWriter(&file, ipc.WithSchema(schema), ipc.WithLZ4())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []arrow.RecordBatch{all300.NewSlice(0, 100), all300.NewSlice(100, 200),
		all300.NewSlice(200, 300)} {
		if err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path, lines := write(t, "a.feather", file.String()), write(t, "a.jsonl", b.String())
	for _, c := range []Columns{{Text: []string{"t"}, Label: "l", ID: "i"}, {Features: []string{"a", "b", "h", "ok"},
		Label: "l", ID: "i"}, {Features: []string{"i"}, Label: "t"}} {
		want, _, err := readPath(t, lines, Options{Columns: c}, Use{Labels: true, Features: true})
		if err != nil || len(want) != 300 {
			t.Fatal(err)
		}
		got, _, err := readPath(t, path, Options{Columns: c}, Use{Labels: true, Features: true})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v: %v, %d rows, %q, want %q", c, err, len(got), got[:min(len(got), 4)], want[:4])
		}
	}
	for name, content := range map[string]string{"cut": file.String()[:file.Len()/2],
		"holed": file.String()[:2000] + file.String()[2100:], "old": "FEA1" + file.String()} {
		if _, _, err := readPath(t, write(t, name+".arrow", content), Options{Columns: Columns{Features: []string{"a", "b"},
			Label: "l"}}, all); !fs.IsInput(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAgainstWriter checks that any content of a CSV file written by encoding/csv is read back
// unchanged, and that each row has the right line.
func TestAgainstWriter(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		delimiter := rapid.SampledFrom([]rune(",;|§\t")).Draw(rt, "delimiter")
		characters, name, o := "ab ,;\"\r\n\t#:é|", "x.csv", Options{Columns: text}
		switch delimiter {
		case '\t':
			characters, name = "ab ,;\"\t#:é|", "x.tsv" // a row is one line
		case ';', '|', '§':
			o.Delimiter = string(delimiter)
		}
		cell := rapid.StringOf(rapid.SampledFrom([]rune(characters)))
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.UseCRLF, w.Comma = rapid.Bool().Draw(rt, "crlf"), delimiter
		_ = w.Write([]string{"t", "l"})
		var want []string
		line := 2
		for range rapid.IntRange(1, 6).Draw(rt, "rows") {
			text, label := cell.Draw(rt, "text"), cell.Draw(rt, "label")
			_ = w.Write([]string{text, label})
			lines := 1 + strings.Count(text+label, "\n")
			if w.UseCRLF { // the writer inserts no other carriage return
				ends := strings.NewReplacer("\r", "", "\n", "\r\n")
				text, label = ends.Replace(text), ends.Replace(label)
			}
			want = append(want, fmt.Sprintf("%d  %s|%s", line, strings.TrimSpace(label), text))
			line += lines
		}
		w.Flush()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			rt.Fatal(err)
		}
		rows, _, err := readPath(t, path, o, all)
		if err != nil || !slices.Equal(rows, want) {
			rt.Fatalf("%q: %q, %v; want %q", b.String(), rows, err, want)
		}
	})
}

// TestPlainTSV checks that TSV without quoting is read like lines of text: one row per line, each
// quote a character, unless a whole cell is in quotes or begins with a quote that is not closed,
// which is an error with its line. No row is lost.
func TestPlainTSV(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		cell := rapid.StringOf(rapid.SampledFrom([]rune("ab \"\",")))
		var b strings.Builder
		b.WriteString("t\tl\n")
		var want []string
		broken := int64(0)
		for i := range rapid.IntRange(1, 6).Draw(rt, "rows") {
			text := cell.Draw(rt, "text")
			fmt.Fprintf(&b, "%s\tc%d\n", text, i)
			whole := len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' &&
				strings.Count(strings.ReplaceAll(text[1:len(text)-1], `""`, ""), `"`) == 0
			// whether the first quote is closed, doubled quotes aside
			open := strings.HasPrefix(text, `"`) && !strings.Contains(strings.ReplaceAll(text[1:], `""`, ""), `"`)
			switch {
			case open:
				broken++
				continue
			case whole:
				text = strings.ReplaceAll(text[1:len(text)-1], `""`, `"`)
			}
			want = append(want, fmt.Sprintf("%d  c%d|%s", i+2, i, text))
		}
		path := filepath.Join(dir, "x.tsv")
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			rt.Fatal(err)
		}
		if len(want) == 0 {
			return
		}
		rows, r, err := readPath(t, path, Options{Columns: text, SkipBroken: 9}, all)
		if err != nil || !slices.Equal(rows, want) {
			rt.Fatalf("%q: %q, %v; want %q", b.String(), rows, err, want)
		}
		if n, _ := r.Broken(); n != broken {
			rt.Fatalf("%q: %d broken rows, want %d", b.String(), n, broken)
		}
	})
}

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]string{"a.csv": "csv", "b/A.CSV.GZ": "csv", "x.tsv.zst": "tsv", "x.ndjson": "jsonl",
		"hdfs://h/x.jsonl.xz": "jsonl",
		"dir/*.parquet":       "parquet", "a.arrows": "arrow", "a.svm": "", "-": "", "csv": "", "a.csv.bak": ""} {
		if got := (&Options{}).FormatOf(name, false); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	o := Options{Format: "lines"}
	if o.FormatOf("a.csv", false) != "" || (&Options{}).FormatOf("a.tsv", true) != "" ||
		(&Options{Columns: text}).FormatOf("a.tsv", true) != "tsv" || (&Options{Format: "csv"}).FormatOf("-",
		false) != "csv" {
		t.Error("what is said counts before the name")
	}
}

// TestCheckColumns checks that a label is not predicted from itself.
func TestCheckColumns(t *testing.T) {
	for _, c := range []Columns{{Text: []string{"t"}, Label: "t"}, {Text: []string{"t", "t"}, Label: "l"},
		{Features: []string{"a", "l"}, Label: "l"}} {
		if c.Check() == nil {
			t.Errorf("%+v passes", c)
		}
	}
}

// TestOver checks that options which are not set are taken from the model's schema.
func TestOver(t *testing.T) {
	s := &Schema{Columns: paths}
	o := Options{Columns: Columns{Text: []string{"x"}, ID: "k"}}.Over(s)
	if !slices.Equal(o.Text, []string{"x"}) || o.ID != "k" || o.Label != "l" || o.PathSeparator != " > " ||
		o.Weight != "" {
		t.Errorf("%+v", o)
	}
	s = &Schema{Columns: nums, Mean: []float64{2, 0}, Scale: []float64{4, 1}}
	if s.Standardise(1, 10) != 2 || s.Standardise(2, 3) != 3 || s.Standardise(7, 3) != 3 {
		t.Error("standardised wrong")
	}
}

// TestSchemaCheck checks that a schema which does not match its data is refused before it is used.
func TestSchemaCheck(t *testing.T) {
	good := func() *Schema {
		return &Schema{Columns: Columns{Features: []string{"a", "b"}, Label: "l"}, Widths: []int{0, 2},
			Mean: []float64{1, 0, 0}, Scale: []float64{2, 1, 1}}
	}
	if err := good().Check(false, []uint32{1, 3}); err != nil {
		t.Error(err)
	}
	if err := (&Schema{Columns: text}).Check(true, []uint32{1, 200}); err != nil {
		t.Error(err)
	}
	if err := (&Schema{Matrix: 7}).Check(false, []uint32{7}); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(s *Schema){
		"no scale":        func(s *Schema) { s.Scale = nil },
		"short scale":     func(s *Schema) { s.Scale = s.Scale[:2] },
		"scale 0":         func(s *Schema) { s.Scale[0] = 0 },
		"negative scale":  func(s *Schema) { s.Scale[1] = -1 },
		"infinite scale":  func(s *Schema) { s.Scale[0] = math.Inf(1) },
		"scale no number": func(s *Schema) { s.Scale[0] = math.NaN() },
		"short mean":      func(s *Schema) { s.Mean = s.Mean[1:] },
		"infinite mean":   func(s *Schema) { s.Mean[2] = math.Inf(-1) },
		"no widths":       func(s *Schema) { s.Widths = nil },
		"short widths":    func(s *Schema) { s.Widths = []int{3} },
		"wide":            func(s *Schema) { s.Widths[1] = 1 << 62 },
		"negative width":  func(s *Schema) { s.Widths[1] = -2 },
		"width 3":         func(s *Schema) { s.Widths[1] = 3 },
		"no column":       func(s *Schema) { s.Features = nil },
		"text":            func(s *Schema) { s.Text = []string{"t"} },
		"same column":     func(s *Schema) { s.Features[1] = "a" },
		"matrix":          func(s *Schema) { s.Matrix = -1 },
	} {
		s := good()
		if change(s); s.Check(false, []uint32{1, 3}) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, feature := range []uint32{0, 4} {
		if good().Check(false, []uint32{feature}) == nil {
			t.Errorf("feature %d: accepted", feature)
		}
	}
}
