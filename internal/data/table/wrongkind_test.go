package table

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"taxon/internal/fs"
)

// tarred is the first header of a tar archive and the content after it.
var tarred = "a.csv" + strings.Repeat("\x00", 252) + "ustar\x0000" + strings.Repeat("\x00", 248) + "t,l\na,b\n"

// TestWrongKind checks that the error for a file of another kind than its name or format says names
// the kind and the way to read it.
func TestWrongKind(t *testing.T) {
	const csv, tsv, jsonl = "say ‹data-format=csv›", "say ‹data-format=tsv›", "say ‹data-format=jsonl›"
	for _, c := range []struct{ name, content, want string }{
		{"a.parquet", "", "is no Parquet file: the file is empty"},
		{"a.arrow", "", "is no Arrow file: the file is empty"},
		{"a.npy", "", "is no NumPy array (.npy): the file is empty"},
		{"a.npz", "", "is no .npz file: the file is empty"},
		{"a.parquet", "ARROW1\x00\x00", "is an Arrow file, whatever its name: say ‹data-format=arrow›"},
		{"a.arrow", "PAR1\x15\x04\x15", "is a Parquet file, whatever its name: say ‹data-format=parquet›"},
		{"a.parquet", "\x93NUMPY\x01\x00", "is a NumPy array, whatever its name: say ‹data-format=npy›"},
		{"a.npy", "PAR1\x15\x04\x15", "is a Parquet file"},
		{"a.npz", "\x93NUMPY\x01\x00", "is a NumPy array"},
		{"a.parquet", "PK\x03\x04", "is a zip archive"},
		{"a.feather", "FEA1\x00\x00", "is a Feather file of version 1"},
		{"a.arrow", "\xff\xff\xff\xff\x10\x00", "is a stream of Arrow record batches"},
		{"a.feather", "t,l\na,b\n", csv},
		{"a.arrow", "t,l\na,b\n", csv},
		{"a.parquet", "\xef\xbb\xbft;l\na;b\n", csv},
		{"a.parquet", strings.Repeat("é", kindBytes), csv},
		{"a.parquet", "t\tl\na\tb\n", tsv},
		{"a.npy", "\n{\"t\": 1}\n", jsonl},
		{"a.csv", "{\"t\": 1}\n", jsonl},
		{"a.csv", "\xef\xbb\xbf \n{ \"t\": 1,\n", jsonl},
		{"a.tsv", "{\"t\": 1}\n", jsonl},
		{"a.csv", tarred, "is a tar archive"},
		{"a.tsv", tarred, "is a tar archive"},
		{"a.parquet", tarred, "is no Parquet file: the file is a tar archive"},
		{"a.csv", "\xff\xfe\x00\x00t\x00\x00\x00,\x00\x00\x00\n\x00\x00\x00", "is UTF-32: "},
		{"a.parquet", "[{\"t\": 1}]\n", "a list in JSON"},
		{"a.parquet", "<!DOCTYPE html>\n", "HTML"},
		{"a.parquet", "\x01\x02\x03\x04\x05\x06", "of no kind that is known"},
	} {
		path := write(t, c.name, c.content)
		_, _, err := readPath(t, path, Options{Columns: text}, Use{Features: true})
		if !fs.IsInput(err) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %q: %v; want %q", c.name, c.content, err, c.want)
		}
	}
	for _, c := range []struct{ name, format, content, want string }{
		{"a.parquet", "", "t,l\na,b\n", csv}, {"a.arrow.gz", "", "t,l\na,b\n", csv}, {"a", "parquet", "t,l\na,b\n", csv},
		{"a.csv.gz", "", tarred, "is a tar archive"}, {"a.tar.gz", "tsv", tarred, "is a tar archive"},
	} {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write([]byte(c.content)); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		_, _, err := readPath(t, write(t, c.name, packed.String()), Options{Columns: text, Format: c.format}, all)
		if !fs.IsInput(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestBrace checks that a column's name may begin with a brace and, in TSV, with a brace and a
// quote.
func TestBrace(t *testing.T) {
	for name, content := range map[string]string{"a.csv": "{t,l\na,b\n", "b.csv": "\"{t\",l\na,b\n",
		"a.tsv": "{t\tl\na\tb\n", "b.tsv": "{t\tl\t{\"u\"\na\tb\tc\n"} {
		o := Options{Columns: Columns{Text: []string{"{t"}, Label: "l"}}
		rows, _, err := readPath(t, write(t, name, content), o, all)
		if err != nil || len(rows) != 1 || rows[0] != "2  b|a" {
			t.Errorf("%s: %q, %v", name, rows, err)
		}
	}
	o := Options{Columns: Columns{Text: []string{"1"}, Label: "2", Header: NoHeader}}
	rows, _, err := readPath(t, write(t, "a.tsv", "{\"t\": 1}\tb\n"), o, all)
	if err != nil || len(rows) != 1 || rows[0] != `1  b|{"t": 1}` {
		t.Errorf("%q, %v", rows, err)
	}
}

// TestDevice checks that a device is refused as a file to copy, because it may be endless.
func TestDevice(t *testing.T) {
	for _, format := range []string{"parquet", "arrow", "npz"} {
		_, _, err := readPath(t, "/dev/zero", Options{Columns: text, Format: format}, Use{Features: true})
		if !fs.IsInput(err) || !strings.Contains(err.Error(), "/dev/zero: is a device") &&
			!strings.Contains(err.Error(), "/dev/zero:1: is a device") {
			t.Errorf("%s: %v", format, err)
		}
	}
	if _, _, err := readPath(t, "/dev/zero", Options{Format: "npy"}, Use{Features: true}); !fs.IsInput(err) ||
		!strings.Contains(err.Error(), "is no NumPy array") {
		t.Error(err)
	}
}
