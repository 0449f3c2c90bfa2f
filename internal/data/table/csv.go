package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"taxon/internal/data/textio"
)

// maxRecord is the largest size of a record in bytes, which equals the longest line of other
// formats.
const maxRecord = textio.MaxBytes

var errLong = fmt.Errorf("the row is longer than %d MiB: is a quote not closed?", maxRecord>>20)

// csvRecords reads RFC 4180 with encoding/csv. Quoted fields may contain separators, quotes and
// line ends.
type csvRecords struct {
	in    *csv.Reader
	bound *bounded
	head  []string
	row   []string
	first []string // line 1, if it is the next row
	line  int64    // start of the last record, or the position of its error
}

// bounded is a reader that fails if a record exceeds maxRecord.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}

// errEmpty is the error for a table without any line.
var errEmpty = errors.New("the table is empty: line 1 must name the columns")

func openCSV(r io.Reader, o *Options) (*csvRecords, *bufio.Reader, error) {
	b := &bounded{r: r, left: maxRecord}
	start := bufio.NewReaderSize(newKeptEnds(b, o.Delimiter), bufferBytes)
	c, err := newCSV(b, start, o)
	return c, start, err
}

func newCSV(b *bounded, start *bufio.Reader, o *Options) (*csvRecords, error) {
	if _, err := start.Peek(1); err != nil && err != io.EOF {
		return nil, err
	}
	begin, _ := start.Peek(start.Buffered())
	if err := textio.Foreign(begin); err != nil {
		return nil, err
	}
	if mark, err := start.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = start.Discard(len(mark)) // they are in the buffer
	}
	if begin, _ = start.Peek(start.Buffered()); isJSON(begin) {
		return nil, errJSON
	}
	c := &csvRecords{in: csv.NewReader(start), bound: b} // csv.NewReader uses start's buffer
	if o.Delimiter != "" {
		c.in.Comma, _ = utf8.DecodeRuneInString(o.Delimiter)
	}
	head, err := c.in.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errEmpty
	case err != nil:
		if e := (*csv.ParseError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return nil, err
	}
	c.head = slices.Clone(head)
	for i, name := range c.head {
		if strings.ContainsAny(name, "\r\x00") {
			return nil, fmt.Errorf("column %d: a carriage return or NUL in its name: %s", i+1, textio.CarriageReturn)
		}
	}
	if o.Header == NoHeader {
		c.first, c.head = c.head, numbered(len(head))
	}
	c.in.ReuseRecord = true
	return c, nil
}

// errJSON is the error for JSON lines that are read as another format.
var errJSON = errors.New("the file looks like JSON lines: say ‹data-format=jsonl›")

// isJSON reports whether a text begins with a JSON object. CSV does not, because a quote within a
// cell is doubled.
func isJSON(text []byte) bool {
	const blanks = " \t\r\n"
	inner, ok := bytes.CutPrefix(bytes.TrimLeft(text, blanks), []byte("{"))
	return ok && bytes.HasPrefix(bytes.TrimLeft(inner, blanks), []byte(`"`))
}

const byteOrderMark = "\xef\xbb\xbf"

// numbered returns the names of n columns without a header: 1, 2, ...
func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, strconv.Itoa(i+1))
	}
	return names
}

func (c *csvRecords) next() (line int64, err error) {
	if c.first != nil {
		c.row, c.first, c.line = c.first, nil, 1
		return 1, nil
	}
	c.bound.left = maxRecord
	c.row, err = c.in.Read()
	if err == nil {
		n, _ := c.in.FieldPos(0)
		c.line = int64(n)
		for _, f := range c.row {
			if strings.IndexByte(f, 0) >= 0 {
				return int64(n), &brokenRow{line: int64(n), cells: len(c.row), err: errors.New("the row holds a NUL byte: is " +
					"this a UTF-8 text file?")}
			}
		}
		return int64(n), nil
	}
	var e *csv.ParseError
	if !errors.As(err, &e) {
		return c.line + 1, err
	}
	at, end, cells, msg := int64(e.StartLine), int64(e.Line), len(c.row), e.Err
	switch {
	case errors.Is(e.Err, csv.ErrFieldCount):
		last := len(c.row) - 1
		n, _ := c.in.FieldPos(last)
		end = int64(n + strings.Count(c.row[last], "\n"))
		cells = 1 // a cell is missing or extra, but which one is unknown
		msg = fmt.Errorf("%d columns where line 1 has %d: is a separator in a text that lacks its quotes?", len(c.row),
			len(c.head))
	case errors.Is(e.Err, csv.ErrQuote):
		msg = fmt.Errorf("a text in quotes does not end where a quote stands in line %d, character %d: quotes "+
			"within are doubled (\"\")", e.Line, e.Column)
	case errors.Is(e.Err, csv.ErrBareQuote):
		msg = fmt.Errorf("a quote in line %d, character %d, in a text that does not begin with one: put the text in "+
			"quotes, and double those within", e.Line, e.Column)
	}
	c.line = end
	return at, &brokenRow{line: at, err: msg, more: end - at, cells: cells}
}

func (c *csvRecords) find(name string) int { return slices.Index(c.head, name) }
func (c *csvRecords) columns() []string    { return c.head }
func (c *csvRecords) close()               {}

func (c *csvRecords) texts(column int, dst []string) ([]string, error) {
	return textCell(c.row[column], dst)
}

func (c *csvRecords) numbers(column int, dst []float64) ([]float64, bool, error) {
	return numberCell(c.row[column], dst)
}

// textCell appends the text of a cell, unless it is empty.
func textCell(cell string, dst []string) ([]string, error) {
	if cell == "" {
		return dst, nil
	}
	return append(dst, cell), nil
}

// numberCell appends the number in a cell.
func numberCell(cell string, dst []float64) ([]float64, bool, error) {
	v, err := parseNumber(cell)
	return append(dst, v), false, err
}

// parseNumber parses a decimal number. An empty text, or a word for a missing value, gives NaN.
func parseNumber(s string) (float64, error) {
	s = strings.TrimSpace(s)
	switch strings.ToLower(s) {
	case "", "na", "nan", "null", "none":
		return math.NaN(), nil
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.ContainsAny(s, "_xXpP") || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a finite number (an empty cell is one that is missing)", s)
	}
	return v, nil
}
