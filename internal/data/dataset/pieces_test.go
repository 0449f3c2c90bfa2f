package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"taxon/internal/fs"
)

// transcript is the complete result of reading a stream, in one string.
func transcript(rows []string, c Counts, form string, err error) string {
	if err == io.EOF {
		err = nil
	}
	if err != nil { // counts are not defined after an error
		c, form = Counts{}, ""
	}
	return fmt.Sprintf("%s\n%+v %s %v", strings.Join(rows, "\n"), c, form, err)
}

// byReader reads with a Reader.
func byReader(in io.Reader, o ReaderOptions) string {
	r := NewReader(in, o)
	var rows []string
	for {
		row, err := r.Read()
		if err != nil {
			return transcript(rows, r.Counts(), r.Form(), err)
		}
		var bits []uint32
		for _, v := range row.Value {
			bits = append(bits, floatBits(v))
		}
		rows = append(rows, fmt.Sprintf("%d %s %v %v %s", row.Line, row.Labels, row.Index, bits, row.Text))
	}
}

// byPieces reads with several goroutines and pieces of `size` bytes.
func byPieces(t interface{ Fatal(...any) }, in io.Reader, o ReaderOptions, parsers, size int) string {
	f, err := fs.Open(context.Background(), fs.Local{In: in}, "-")
	if err != nil {
		if err == io.EOF {
			return transcript(nil, Counts{}, "", nil)
		}
		t.Fatal(err)
	}
	s := startPieces(context.Background(), f, o, parsers, size, nil)
	defer s.Close()
	src := &source{o: o}
	var rows []string
	for {
		p, err := s.next()
		if err != nil {
			t.Fatal(err)
		}
		if p.first {
			src.header = s.header
		}
		line := src.line
		err = src.each(p, func(row batchRow, labels [][]byte, index, bits []uint32) error {
			rows = append(rows, fmt.Sprintf("%d %s %v %v %s", line+row.line, labels, index, bits, row.text))
			return nil
		})
		if err != nil {
			return transcript(rows, src.counts, formOf(o, src.header), err)
		}
		s.release(p)
	}
}

func comparePieces(t interface{ Fatal(...any) }, text string, o ReaderOptions, size int, broken bool) {
	o.Name = "stdin"
	open := func() io.Reader {
		in := io.Reader(strings.NewReader(text))
		if broken {
			in = io.MultiReader(in, iotest.ErrReader(errors.New("broken pipe")))
		}
		return in
	}
	f, err := fs.Open(context.Background(), fs.Local{In: open()}, "-")
	if err != nil {
		return // no stream to compare
	}
	want := byReader(f, o)
	f.Close()
	if got := byPieces(t, open(), o, 3, size); got != want {
		t.Fatal(fmt.Sprintf("%q in pieces of %d:\n%s\n\nwant\n%s", text, size, got, want))
	}
}

// TestPieces compares the parallel reader with the sequential one: rows, lines, counts, errors.
func TestPieces(t *testing.T) {
	texts := []string{
		"", "\n\n", "a 1:1", "a 1:1\r\nb 2:2 # c\n\n# d\n 3:4\n", "a 1:1\nb 1:1 1:2\n", "a 1:1\nb 0:1\n",
		"2 5 3\n0,2 0:1 4:2\n 3:1\n", "1 5 3\n0 0:1\n1 2:1\n", "3 5 3\n0 0:1\n", "1 5 3\n7 0:1\n", "9 0 3\n", "\xff\xfea",
		"\xef\xbb\xbfa 1:1\nb 2:x\n", "a 1:1\n" + strings.Repeat("b", 5000) + " 2:1\nc 3:1\n", "a 1:1\x00\n",
		"5 5 3\n0 0:1\n\n# c\n \n1 1:1\n\n\n\n# c\n", "3 5 3\n\n0 0:1\n\n \n\n1 1:1\n", "3 5 3\n\n0 0:1\n", "0 5 3\n\n",
		" \n\t\na 1:1\n ", "a 1:1\rb 1:1\n",
	}
	for _, text := range texts {
		for _, size := range []int{1, 3, 16, 1000, 1 << 16} {
			comparePieces(t, text, ReaderOptions{}, size, false)
			comparePieces(t, text, ReaderOptions{}, size, true)
		}
	}
	comparePieces(t, smallText, ReaderOptions{Text: true}, 20, false)
}

func TestPiecesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		comparePieces(t, drawLines(t), ReaderOptions{}, rapid.IntRange(1, 200).Draw(t, "size"),
			rapid.Bool().Draw(t, "broken"))
	})
}

func FuzzPieces(f *testing.F) {
	f.Add("2 5 3\n0,2 0:1 4:2\n 3:1\n", 5, false, true)
	f.Add("a 1:1\r\nb 2:2 # c\n\n# d\n 3:4\n", 2, true, false)
	f.Add("a\tb c\n", 2, false, false)
	f.Add("3 5 3\n\n0 0:1\n\n\n", 4, false, false)
	f.Fuzz(func(t *testing.T, text string, size int, zeroBased, broken bool) {
		if size < 1 || size > 1<<16 {
			return
		}
		comparePieces(t, text, ReaderOptions{ZeroBased: zeroBased}, size, broken)
		comparePieces(t, text, ReaderOptions{Text: true}, size, broken)
	})
}

// TestPiecesCancelled cancels the reading of a stream that never returns a byte.
func TestPiecesCancelled(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	go io.WriteString(out, "a 1:1 2:2\nb 1:1\nc 3:1\n")
	f, err := fs.Open(context.Background(), fs.Local{In: in}, "-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := startPieces(ctx, f, ReaderOptions{}, 2, 1<<10, nil)
	cancel()
	if _, err := s.next(); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	s.Close()
}
