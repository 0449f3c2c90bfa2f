package textio

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"taxon/internal/fs"
)

func readAll(r *Reader) ([]string, error) {
	var got []string
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got = append(got, string(b))
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200<<10) // longer than the buffer
	cases := []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"ends", "a\nb\r\n\nc", []string{"a", "b", "", "c"}},
		{"mark", "\xef\xbb\xbfa\nb\ufeff\n", []string{"a", "b\ufeff"}},
		{"mark only", "\xef\xbb\xbf", []string{""}},
		{"last line ends with a carriage return", "a\r", []string{"a"}},
		{"long lines", long + "\r\nb\n" + long, []string{long, "b", long}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(iotest.HalfReader(strings.NewReader(c.text)), "f")
			got, err := readAll(r)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %d lines, %v", len(got), err)
			}
			if r.Line() != len(c.want) {
				t.Errorf("line %d, want %d", r.Line(), len(c.want))
			}
		})
	}
}

// tarred is the first header of a tar archive and the content after it.
var tarred = "a.svm" + strings.Repeat("\x00", tarAt-5) + tarMagic + "\x0000" + strings.Repeat("\x00", 248) + "a 1:1\n"

func TestRefused(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"NUL", "a\n\x00\n", "f:2: NUL byte"},
		{"UTF-16 LE", "\xff\xfea\x00\n\x00", "f:1: the file is UTF-16: "},
		{"UTF-16 BE", "\xfe\xff\x00a", "f:1: the file is UTF-16: "},
		{"UTF-16 LE, no mark", "a\x00b\x00\n\x00", "f:1: the file is UTF-16 without a byte order mark: convert it to " +
			"UTF-8 (iconv -f UTF-16LE"},
		{"UTF-16 BE, no mark", "\x00a\x00b\x00\n", "f:1: the file is UTF-16 without a byte order mark: convert it to " +
			"UTF-8 (iconv -f UTF-16BE"},
		{"UTF-32 LE", "\xff\xfe\x00\x00a\x00\x00\x00\n\x00\x00\x00", "f:1: the file is UTF-32: "},
		{"UTF-32 BE", "\x00\x00\xfe\xff\x00\x00\x00a", "f:1: the file is UTF-32: "},
		{"UTF-32 LE, no mark", "a\x00\x00\x00\n\x00\x00\x00", "f:1: the file is UTF-32 without a byte order mark: convert " +
			"it to UTF-8 (iconv -f UTF-32LE"},
		{"UTF-32 BE, no mark", "\x00\x00\x00a\x00\x00\x00\n", "f:1: the file is UTF-32 without a byte order mark: convert " +
			"it to UTF-8 (iconv -f UTF-32BE"},
		{"tar", tarred, "f:1: the file is a tar archive: unpack it"},
		{"Parquet", "PAR1\x15\x04\n", "f:1: the file is a Parquet file"},
		{"twice", "\x1f\x8b\x08\x00\n", "f:1: the file was compressed twice, by gzip within"},
		{"latin-1", "a\nb\n\xe9\n", "f:3: bytes that are not UTF-8"},
		{"lone carriage return", "a\rb\n", "f:1: carriage return"},
		{"mark in a later line", "\ufeffa\n\ufeffb\n", "f:2: byte order mark"},
		{"two marks", "\ufeff\ufeffa\n", "f:1: byte order mark"},
		{"too long", "a\n" + strings.Repeat("x", 1<<20+1<<17) + "\n", "f:2: line longer than 1 MiB"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(c.text), "f")
			r.max = 1 << 20
			_, err := readAll(r)
			var input *fs.InputError
			if !errors.As(err, &input) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
