package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"taxon/internal/data/table"
	"taxon/internal/data/textio"
	"taxon/internal/fs"
)

// show1 formats a row as label,label|index:value ...
func show1(r *Row) string {
	var b strings.Builder
	b.Write(bytes.Join(r.Labels, []byte(",")))
	b.WriteByte('|')
	for i, x := range r.Index {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d:%v", x, r.Value[i])
	}
	if r.Text != nil {
		b.Write(r.Text)
	}
	return b.String()
}

func readAll(in string, o ReaderOptions) (rows []string, c Counts, err error) {
	o.Name = "f.svm"
	r := NewReader(strings.NewReader(in), o)
	for {
		row, err := r.Read()
		if err == io.EOF {
			return rows, r.Counts(), nil
		}
		if err != nil {
			return rows, r.Counts(), err
		}
		rows = append(rows, show1(row))
	}
}

// TestGrammar has a case for each rule about instance files in docs/formats.md.
func TestGrammar(t *testing.T) {
	zero, text := ReaderOptions{ZeroBased: true}, ReaderOptions{Text: true}
	for _, c := range []struct {
		name, in string
		o        ReaderOptions
		want     string // rows joined with ;
	}{
		{"one a line", "a 1:1\nb 2:2\n", ReaderOptions{}, "a|1:1;b|2:2"},
		{"several labels", "b,a,c 1:1\n", ReaderOptions{}, "b,a,c|1:1"},
		{"names hold any text", "a:b#c/é-\u00a0+1;\"x\" 1:1\n", ReaderOptions{}, "a:b#c/é-\u00a0+1;\"x\"|1:1"},
		{"names as JSON strings", "\"a b\",c,\"d,e: #\\u00e9\\t\\\"\" 1:1\n\"1:1\"\n\"#\" 2:2\n", ReaderOptions{},
			"a b,c,d,e: #é\t\"|1:1;1:1|;#|2:2"},
		{"text with names as JSON strings", "\"a b\",c\tx \"y\n\"d\\te\"\tz\n", text, "a b,c|x \"y;d\te|z"},
		{"numbers as names", "1,-1,+1,0 1:1\n", ReaderOptions{}, "1,-1,+1,0|1:1"},
		{"zero-based", "a 0:1 5:2\n", zero, "a|1:1 6:2"},
		{"any order", "a 9:3 1:1 4:2\n", ReaderOptions{}, "a|1:1 4:2 9:3"},
		{"largest index", "a 2147483647:1\n", ReaderOptions{}, "a|2147483647:1"},
		{"largest index, zero-based", "a 2147483647:1\n", zero, "a|2147483648:1"},
		{"labels only", "a,b\nc \n", ReaderOptions{}, "a,b|;c|"},
		{"features only, by a blank", " 1:1\n\t2:2\n", ReaderOptions{}, "|1:1;|2:2"},
		{"features only, by the first token", "1:1 2:2\n3:-.5e1\n", ReaderOptions{}, "|1:1 2:2;|3:-5"},
		{"first token no INTEGER:NUMBER", "1:x 1:1\n1: 1:1\n:1 1:1\n1.5:2 1:1\n1:2,3:4 1:1\n1:0x1 1:1\n", ReaderOptions{},
			"1:x|1:1;1:|1:1;:1|1:1;1.5:2|1:1;1:2,3:4|1:1;1:0x1|1:1"},
		{"comment at the end", "a 1:1 # b 2:2\nc #\nd\t#x\n1:1 #\n", ReaderOptions{}, "a|1:1;c|;d|;|1:1"},
		{"comment line", "# x\na 1:1\n#y\n  # z\n", ReaderOptions{}, "a|1:1"},
		{"no comment within a token", "a#b 1:1\n", ReaderOptions{}, "a#b|1:1"},
		{"empty lines", "\n\na 1:1\n\r\nb 1:1\n\n", ReaderOptions{}, "a|1:1;b|1:1"},
		{"blanks alone", " \na 1:1\n\t\n \t \r\n ", ReaderOptions{}, "|;a|1:1;|;|;|"},
		{"byte order mark", "\xef\xbb\xbfa 1:1\n", ReaderOptions{}, "a|1:1"},
		{"byte order mark, no label", "\xef\xbb\xbf1:1\n", ReaderOptions{}, "|1:1"},
		{"CRLF", "a 1:1\r\nb\r\n", ReaderOptions{}, "a|1:1;b|"},
		{"no last newline", "a 1:1\nb 2:2", ReaderOptions{}, "a|1:1;b|2:2"},
		{"no last newline after CR", "a 1:1\r", ReaderOptions{}, "a|1:1"},
		{"runs of blanks and tabs", "a \t 1:1\t\t2:2  \n", ReaderOptions{}, "a|1:1 2:2"},
		{"signed and exponent numbers", "a 1:+1 2:-2.5 3:1e3 4:1E-3 5:+.5e+1 6:5.\n", ReaderOptions{},
			"a|1:1 2:-2.5 3:1000 4:0.001 5:5 6:5"},
		{"signed index", "a +2:1 007:2\n", ReaderOptions{}, "a|2:1 7:2"},
		{"underflow is zero", "a 1:1e-999 2:1\n", ReaderOptions{}, "a|2:1"},
		{"explicit zero", "a 1:0 2:-0.0 3:1\n", ReaderOptions{}, "a|3:1"},
		{"largest value", "a 1:3.4028235e38\n", ReaderOptions{}, "a|1:3.4028235e+38"},
		{"repeated label", "a,b,a 1:1\n", ReaderOptions{}, "a,b|1:1"},
		{"XMC", "2 5 3\n0,2 0:1 4:2\n 3:1\n", ReaderOptions{}, "0,2|1:1 5:2;|4:1"},
		{"XMC, short names", "1 5 30\n007,+3 0:1\n", ReaderOptions{}, "7,3|1:1"},
		{"XMC with CRLF and mark", "\xef\xbb\xbf1 1 1 \r\n0 0:1\r\n", ReaderOptions{}, "0|1:1"},
		{"XMC, zero-based anyway", "1 1 1\n0 0:1\n", zero, "0|1:1"},
		{"XMC, empty line for a row", "4 1 1\n0 0:1\n\n# c\n0 0:1\n\r\n", ReaderOptions{}, "0|1:1;|;0|1:1;|"},
		{"XMC, blanks for a row", "3 1 1\n \n0 0:1\n\t", ReaderOptions{}, "|;0|1:1;|"},
		{"XMC, empty lines behind the last row", "2 1 1\n0 0:1\n\n\n\n# c\n \n", ReaderOptions{}, "0|1:1;|"},
		{"text", "a,b\tSome text, 1:1 # no comment\n", text, "a,b|Some text, 1:1 # no comment"},
		{"text without label", "\tSome text\n", text, "|Some text"},
		{"text with tabs", "a\tx\ty\r\n", text, "a|x\ty"},
		{"empty text", "a\t\n\n\nb\tx\n\t\n\t \t\n", text, "a|;b|x;|;|"},
		{"blanks alone for a text", "a\tx\n \n\t\n", text, "a|x;|;|"},
		{"text that looks like a header", "1 2 3\n", ReaderOptions{}, "error"},
	} {
		rows, _, err := readAll(c.in, c.o)
		if c.want == "error" {
			if err == nil {
				t.Errorf("%s: no error", c.name)
			}
			continue
		}
		if got := strings.Join(rows, ";"); err != nil || got != c.want {
			t.Errorf("%s: %q gives %q, %v; want %q", c.name, c.in, got, err, c.want)
		}
	}
}

func TestCounts(t *testing.T) {
	for in, want := range map[string]Counts{
		"\n# c\na,a 1:0\n 2:1\n\n\n 3:1 4:0\nb\n \n": {Rows: 5, EmptyLines: 3, Comments: 1, Unlabelled: 3, ZeroRows: 3,
			RepeatedLabels: 1, ExplicitZeros: 2},
		"4 5 1\n\n# c\n0,0 1:0\n 2:1\n0 2:1\n\n\n# c\n": {Rows: 4, EmptyLines: 2, Comments: 2, Unlabelled: 2, ZeroRows: 2,
			RepeatedLabels: 1, ExplicitZeros: 1},
	} {
		_, c, err := readAll(in, ReaderOptions{})
		if err != nil || c != want {
			t.Errorf("%q: got %+v, %v; want %+v", in, c, err, want)
		}
	}
}

// TestLineNumbers checks the line numbers of rows.
func TestLineNumbers(t *testing.T) {
	r := NewReader(strings.NewReader("\n# c\na 1:1\n\nb"), ReaderOptions{})
	for _, want := range []int64{3, 5} {
		if row, err := r.Read(); err != nil || row.Line != want {
			t.Fatalf("%v, %v; want line %d", row, err, want)
		}
	}
}

// TestBroken checks that each invalid input gives an input error with the right line and a remedy.
func TestBroken(t *testing.T) {
	text, zero := ReaderOptions{Text: true}, ReaderOptions{ZeroBased: true}
	paths := ReaderOptions{Text: true, Table: table.Options{Columns: table.Columns{PathSeparator: "/"}}}
	ok, long := "a 1:1\n", strings.Repeat("a/", textio.MaxParts)
	for _, c := range []struct {
		name, in string
		o        ReaderOptions
		line     int64
		want     string
	}{
		{"index 0", ok + "b 0:1\n", ReaderOptions{}, 2, "feature index 0: indices start at 1 (use ‹zero-based› for " +
			"files that count from 0)"},
		{"index 0 without label", "0:1 2:1\n", ReaderOptions{}, 1, "feature index 0"},
		{"negative index", ok + "b -3:1\n", ReaderOptions{}, 2, "feature index -3: indices are not negative"},
		{"negative zero", ok + "b -0:1\n", ReaderOptions{}, 2, "feature index 0"},
		{"negative index without label", "-3:1\n", ReaderOptions{}, 1, "not negative"},
		{"index 2^31", ok + "b 2147483648:1\n", ReaderOptions{}, 2, "up to 2147483647"},
		{"index 2^31, zero-based", "b 2147483648:1\n", zero, 1, "up to 2147483647"},
		{"index 2^32+1", ok + "b 4294967297:1\n", ReaderOptions{}, 2, "up to 2147483647"},
		{"index 2^64+1", ok + "b 18446744073709551617:1\n", ReaderOptions{}, 2, "up to 2147483647"},
		{"fractional index", ok + "b 1.5:1\n", ReaderOptions{}, 2, "not an integer"},
		{"no index", ok + "b :1\n", ReaderOptions{}, 2, "not an integer"},
		{"sign alone", ok + "b +:1\n", ReaderOptions{}, 2, "not an integer"},
		{"repeated index", ok + "b 1:1 2:1 1:2\n", ReaderOptions{}, 2, "feature index 1 occurs twice"},
		{"repeated index, zero-based", "b 1:1 1:1\n", zero, 1, "feature index 1 occurs twice"},
		{"repeated index with a zero", "b 7:0 7:1\n", ReaderOptions{}, 1, "feature index 7 occurs twice"},
		{"NaN", ok + "b 1:nan\n", ReaderOptions{}, 2, "values must be finite"},
		{"NaN without label", "1:NaN 2:1\n", ReaderOptions{}, 1, "values must be finite"},
		{"infinity", ok + "b 1:-Inf\n", ReaderOptions{}, 2, "values must be finite"},
		{"Infinity", ok + "b 1:infinity\n", ReaderOptions{}, 2, "values must be finite"},
		{"overflow", ok + "b 1:1e39\n", ReaderOptions{}, 2, "too large for float32"},
		{"overflow by rounding", ok + "b 1:3.4028236e38\n", ReaderOptions{}, 2, "too large for float32"},
		{"overflow of float64", ok + "b 1:-1e999\n", ReaderOptions{}, 2, "too large for float32"},
		{"overflow, many digits", ok + "b 1:" + strings.Repeat("9", 400) + "\n", ReaderOptions{}, 2, "too large for float32"},
		{"no value", ok + "b 1:\n", ReaderOptions{}, 2, "not a number"},
		{"word for a value", ok + "b 1:x\n", ReaderOptions{}, 2, `feature "1:x": not a number`},
		{"two values", ok + "b 1:2:3\n", ReaderOptions{}, 2, "not a number"},
		{"hexadecimal", ok + "b 1:0x10\n", ReaderOptions{}, 2, "not a number"},
		{"underscore", ok + "b 1:1_000\n", ReaderOptions{}, 2, "not a number"},
		{"decimal comma", ok + "b 1:0,5\n", ReaderOptions{}, 2, "not a number"},
		{"two points", ok + "b 1:1.2.3\n", ReaderOptions{}, 2, "not a number"},
		{"bare exponent", ok + "b 1:1e\n", ReaderOptions{}, 2, "not a number"},
		{"signs", ok + "b 1:+-1\n", ReaderOptions{}, 2, "not a number"},
		{"point alone", ok + "b 1:.\n", ReaderOptions{}, 2, "not a number"},
		{"comment without blank", ok + "b 1:1#c\n", ReaderOptions{}, 2, "not a number"},
		{"no colon", ok + "b 1:1 7\n", ReaderOptions{}, 2, `feature "7": want INDEX:VALUE`},
		{"text with a colon", "a\tarticle: the dog\n", ReaderOptions{}, 1,
			`feature "article:": the index "article" is not an integer; if the lines are LABEL<TAB>text, add ‹text›`},
		{"a pair behind a word", "a\tdog 3:1\n", ReaderOptions{}, 1,
			`feature "dog": want INDEX:VALUE (labels stand first, separated by commas; one with a blank stands in quotes)`},
		{"text", "a\tthe small dog\n", ReaderOptions{}, 1,
			`feature "the": want INDEX:VALUE (labels stand first, separated by commas; one with a blank stands in quotes); if the lines are LABEL<TAB>text, add ‹text›`},
		{"row of a table", ok + "the small dog,cat\n", ReaderOptions{}, 2,
			"one with a blank stands in quotes); if this is a row of a table, say ‹data-format=csv›"},
		{"row of a table with gaps", "1,,3\n", ReaderOptions{}, 1,
			"empty label name: labels are separated by single commas; if this is a row of a table, say ‹data-format=csv›"},
		{"row of a table with semicolons", "1; 2; cat\n", ReaderOptions{}, 1,
			"if this is a row of a table, say ‹data-format=csv›"},
		{"row of a table with quotes", "\"a \"\"b\"\"\",cat\n", ReaderOptions{}, 1,
			"if this is a row of a table, say ‹data-format=csv›"},
		{"text with a comma", "a\tthe small, dog\n", ReaderOptions{}, 1, "if the lines are LABEL<TAB>text, add ‹text›"},
		{"blank in a label", ok + "my label 1:1\n", ReaderOptions{}, 2, `feature "label": want INDEX:VALUE`},
		{"blank after a comma", ok + "a, b 1:1\n", ReaderOptions{}, 2, "empty label name"},
		{"label after a blank", ok + " a 1:1\n", ReaderOptions{}, 2, `feature "a"`},
		{"empty label", ok + ",a 1:1\n", ReaderOptions{}, 2, "empty label name"},
		{"two commas", ok + "a,,b 1:1\n", ReaderOptions{}, 2, "empty label name"},
		{"endless labels", ok + strings.Repeat("a,", maxRowLabels) + "a 1:1\n", ReaderOptions{}, 2, "labels in a line"},
		{"control character", ok + "a\x01b 1:1\n", ReaderOptions{}, 2, "control character"},
		{"mark in a later line", ok + "\ufeffb 1:1\n", ReaderOptions{}, 2, "byte order mark"},
		{"mark in a later line, no label", ok + "\ufeff1:1\n", ReaderOptions{}, 2, "byte order mark"},
		{"Latin-1 label", ok + "caf\xe9 1:1\n", ReaderOptions{}, 2, "not UTF-8"},
		{"CR line ends", "a 1:1\rb 2:1\r", ReaderOptions{}, 1, "carriage return inside a line"},
		{"CR line ends, text", "a\tdog\rb\tcat\r", text, 1, `(convert the file: tr '\r' '\n')`},
		{"CR line ends, XMC", "2 5\r3\n0 0:1\n", ReaderOptions{}, 1, "carriage return"},
		{"CR line ends, labels alone", "a\rb\n", ReaderOptions{}, 1, "carriage return"},
		{"CR line ends behind a comment", "# a\rb 1:1\n", ReaderOptions{}, 1, "carriage return"},
		{"two carriage returns", ok + "b 1:1\r\r\n", ReaderOptions{}, 2, "carriage return"},
		{"NUL", ok + "b 1:1\x00\n", ReaderOptions{}, 2, "NUL byte"},
		{"NUL in a comment", ok + "b 1:1 # \x00\n", ReaderOptions{}, 2, "NUL byte"},
		{"NUL in text", "a\tb\x00c\n", text, 1, "NUL byte"},
		{"UTF-16", "\xff\xfea\x00 \x001\x00:\x001\x00\n\x00", ReaderOptions{}, 1, "UTF-16"},
		{"UTF-16, big-endian", "\xfe\xff\x00a\x00\n", text, 1, "UTF-16"},
		{"UTF-16 without mark", "a\x00 \x001\x00:\x001\x00\n\x00", ReaderOptions{}, 1, "UTF-16 without a byte order mark"},
		{"UTF-32", "\xff\xfe\x00\x00a\x00\x00\x00\n", ReaderOptions{}, 1, "UTF-32"},
		{"tar", "a.svm" + strings.Repeat("\x00", 252) + "ustar\x0000\n", text, 1, "is a tar archive"},
		{"binary junk", "\x7fELF\x02\x01\x01\xff\xfe\x99\n", ReaderOptions{}, 1, "control character"},
		{"empty file", "", ReaderOptions{}, 0, "no instance"},
		{"only empty lines", "\n\n", ReaderOptions{}, 0, "no instance"},
		{"only comments", "# a 1:1\n", ReaderOptions{}, 0, "no instance"},
		{"only a mark", "\xef\xbb\xbf", ReaderOptions{}, 0, "no instance"},
		{"empty text file", "", text, 0, "no instance"},
		{"header alone", "0 5 3\n", ReaderOptions{}, 0, "no instance"},
		{"XMC, too few rows", "3 5 3\n0 0:1\n\n", ReaderOptions{}, 1, "announces 3 instances, the file has 2"},
		{"XMC, one more behind an empty line", "2 5 3\n0 0:1\n\n0 0:1\n", ReaderOptions{}, 4, "an empty one too"},
		{"XMC, too many rows", "1 5 3\n0 0:1\n0 0:1\n", ReaderOptions{}, 3, "one instance more than the 1"},
		{"XMC, index too large", "1 5 3\n0 5:1\n", ReaderOptions{}, 2, "announces 5 features"},
		{"XMC, label too large", "1 5 3\n3 0:1\n", ReaderOptions{}, 2, "announces 3 labels"},
		{"XMC, name for a label", "1 5 3\nx 0:1\n", ReaderOptions{}, 2, "announces 3 labels"},
		{"XMC, no features", "1 0 3\n0\n", ReaderOptions{}, 1, "number of features"},
		{"XMC, huge", "1 99999999999999999999 3\n0\n", ReaderOptions{}, 1, "header"},
		{"XMC, negative", "-1 5 3\n0\n", ReaderOptions{}, 1, "header"},
		{"a quote that does not end", ok + "\"b 1:1\n", ReaderOptions{}, 2, "must be a JSON string"},
		{"text behind a quote", ok + "\"b\"c 1:1\n", ReaderOptions{}, 2, "must be a JSON string"},
		{"control character in quotes", ok + "\"b\x01\" 1:1\n", ReaderOptions{}, 2, "must be a JSON string"},
		{"empty name in quotes", ok + "a,\"\" 1:1\n", ReaderOptions{}, 2, "empty label name"},
		{"blank behind a quoted text label", "\"a b\", c\tx\n", text, 1, "empty label name"},
		{"blank between text labels", "\"a b\" c\tx\n", text, 1, "blank between"},
		{"a path too long", long[2:] + "b\tx\n" + "c," + long + "b\tx\n", paths, 2, "a path of 257 parts: at most 256"},
		{"a path too long, of numbers", ok + long + "b 1:1\n", ReaderOptions{Table: paths.Table}, 2, "a path of 257 parts"},
		{"text without tab", "a\tx\nb x\n", text, 2, "no tab"},
		{"blank in a text label", "a b\tx\n", text, 1, "holds a blank"},
		{"blank around a text label", "a, b\tx\n", text, 1, "holds a blank"},
		{"empty text label", "a,\tx\n", text, 1, "empty label name"},
		{"text not UTF-8", "a\tcaf\xe9\n", text, 1, "not UTF-8"},
	} {
		_, _, err := readAll(c.in, c.o)
		var in *fs.InputError
		if !errors.As(err, &in) || in.Line != c.line || in.Path != "f.svm" || !strings.Contains(in.Msg, c.want) ||
			strings.ContainsAny(in.Msg, "\n\x00") {
			t.Errorf("%s: %v; want line %d, %q", c.name, err, c.line, c.want)
		}
	}
}

// TestErrorSticks checks that a failed reader does not continue after the invalid line.
func TestErrorSticks(t *testing.T) {
	r := NewReader(strings.NewReader("a 0:1\nb 1:1\n"), ReaderOptions{})
	_, first := r.Read()
	if _, second := r.Read(); first == nil || second != first {
		t.Errorf("%v, then %v", first, second)
	}
}

type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.n += int64(len(p))
	return len(p), nil
}

// TestLongLine checks that a line above 64 MiB is refused as soon as the limit is reached, and one
// of 64 MiB is not.
func TestLongLine(t *testing.T) {
	e := &endless{}
	r := NewReader(io.MultiReader(strings.NewReader("a 1:1\n"), e), ReaderOptions{Name: "f.svm"})
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Read()
	if err == nil || !strings.HasPrefix(err.Error(), "f.svm:2: the line is longer than 64 MiB") || e.n > maxLineBytes+16 {
		t.Errorf("%v after %d bytes", err, e.n)
	}
	for _, c := range []struct {
		in string
		ok bool
	}{{"12345678\n", true}, {"12345678\r\n", true}, {"12345678", true}, {"123456789\n", false}, {"123456789", false},
		{"12345678\r\r\n", false}} {
		if _, err := newSplitter(strings.NewReader(c.in), 8).next(); (err == nil) != c.ok {
			t.Errorf("limit 8, %q: %v", c.in, err)
		}
	}
}

// TestReadError checks that an error of the stream gets its line, and that the incomplete line is
// not returned as a row.
func TestReadError(t *testing.T) {
	cut := fs.Inputf("f.gz", 0, "cut short")
	r := NewReader(io.MultiReader(strings.NewReader("a 1:1\nb 1:"), errReader{cut}), ReaderOptions{Name: "f.gz"})
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(); err == nil || err.Error() != "f.gz:2: cut short" {
		t.Errorf("got %v", err)
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }
