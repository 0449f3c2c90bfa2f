package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"taxon/internal/data/textio"
)

// tsvRecords reads cells that are separated by tabs. Each line is a row: quotes never make a row
// span lines.
type tsvRecords struct {
	in    *textio.Reader
	head  []string
	first []string // line 1, if it is the next row
	row   []string
}

func openTSV(r io.Reader, source string, o *Options) (*tsvRecords, *bufio.Reader, error) {
	start := bufio.NewReaderSize(r, bufferBytes)
	t := &tsvRecords{in: textio.NewReader(start, source)} // textio.NewReader uses start's buffer
	line, err := t.in.Next()
	if errors.Is(err, io.EOF) {
		return nil, nil, errEmpty
	}
	if err == nil && o.Header != NoHeader && isJSON(line) && bytes.IndexByte(line, '\t') < 0 {
		err = errJSON
	}
	if err == nil {
		t.head, err = splitTabs(nil, string(line), -1)
	}
	if o.Header == NoHeader {
		t.first, t.head = t.head, numbered(len(t.head))
	}
	return t, start, err
}

func (t *tsvRecords) next() (int64, error) {
	if t.first != nil {
		t.row, t.first = t.first, nil
		return 1, nil
	}
	for {
		b, err := t.in.Next()
		line := int64(t.in.Line())
		if err != nil && !errors.Is(err, textio.ErrNoText) {
			return line, err
		}
		if len(b) == 0 {
			continue
		}
		row, wrong := splitTabs(t.row[:0], string(b), len(t.head))
		if t.row = row; err == nil {
			err = wrong
		}
		if err != nil {
			return line, &brokenRow{line: line, err: err, cells: len(t.row)}
		}
		return line, nil
	}
}

// splitTabs appends the cells of a line. A cell that is quoted as in CSV, with the closing quote
// before a tab or the end of the line, is parsed as in CSV and may hold tabs and doubled quotes.
// Other quotes are part of the text. want is the required number of cells, or -1 for any number.
// After an error, the cells before it are returned.
func splitTabs(dst []string, line string, want int) ([]string, error) {
	begin, joined := len(dst), false
	for rest := line; ; {
		var c string
		if quoted, behind, state := cutQuoted(rest); state == quoteOpen {
			return dst, fmt.Errorf("column %d begins with a quote that does not end in this line: a row is one "+
				"line; a quote that is text stands in quotes and doubled (\"\"\"so\")", len(dst)-begin+1)
		} else if state == quoteClosed {
			joined = joined || strings.ContainsRune(quoted, '\t')
			c, rest = quoted, behind
		} else if at := strings.IndexByte(rest, '\t'); at >= 0 {
			c, rest = rest[:at], rest[at:]
		} else {
			c, rest = rest, ""
		}
		if dst = append(dst, c); rest == "" {
			break
		}
		rest = rest[1:] // the tab
	}
	switch cells := len(dst) - begin; {
	case want < 0 || cells == want:
		return dst, nil
	case joined && strings.Count(line, "\t")+1 == want && !slices.ContainsFunc(strings.Split(line, "\t"), isQuoted):
		return append(dst[:begin], strings.Split(line, "\t")...), nil // the quoted tab is a separator
	default:
		return dst[:begin], fmt.Errorf("%d columns where line 1 has %d: is there a tab in a text?", cells, want)
	}
}

// cutQuoted returns one of these states of a cell.
const (
	quoteNone   = iota // unquoted: the cell ends at the next tab
	quoteClosed        // quoted as in CSV
	quoteOpen          // the opening quote has no end in the line
)

// cutQuoted splits a quoted cell off a line, if the line begins with one. rest is empty or begins
// with a tab.
func cutQuoted(line string) (cell, rest string, state int) {
	if !strings.HasPrefix(line, `"`) {
		return "", "", quoteNone
	}
	for i := 1; ; i++ {
		at := strings.IndexByte(line[i:], '"')
		if at < 0 {
			return "", "", quoteOpen
		}
		if i += at; strings.HasPrefix(line[i+1:], `"`) {
			i++
			continue
		}
		if rest = line[i+1:]; rest == "" || rest[0] == '\t' {
			return strings.ReplaceAll(line[1:i], `""`, `"`), rest, quoteClosed
		}
		return "", "", quoteNone
	}
}

// isQuoted reports whether a cell is in quotes.
func isQuoted(cell string) bool {
	_, _, state := cutQuoted(cell)
	return state == quoteClosed
}

func (t *tsvRecords) find(name string) int { return slices.Index(t.head, name) }
func (t *tsvRecords) columns() []string    { return t.head }
func (t *tsvRecords) close()               {}

func (t *tsvRecords) texts(column int, dst []string) ([]string, error) {
	return textCell(t.row[column], dst)
}

func (t *tsvRecords) numbers(column int, dst []float64) ([]float64, bool, error) {
	return numberCell(t.row[column], dst)
}
