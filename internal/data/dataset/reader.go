package dataset

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"

	"taxon/internal/data/table"
	"taxon/internal/data/textio"
	"taxon/internal/fs"
)

var (
	errNUL = errors.New("the line holds a NUL byte: is this a UTF-8 text file? (convert UTF-16 with iconv -t UTF-8)")
	errCR  = errors.New(textio.CarriageReturn)
)

// Row is one instance. The slices belong to the Reader and are valid until the next Read.
type Row struct {
	Line int64 // where it stands, 1-based
	// names as written; repeats of a name are left out; empty: no label
	Labels [][]byte
	// original feature indices, 1-based (zero-based input is shifted), ascending
	Index []uint32
	Value []float32 // finite, aligned with Index; explicit zeros are left out
	Text  []byte    // the text in text form; Index and Value are then empty

	ID, Weight string // columns of a table
	// a row that could not be read, and holds nothing but its ID
	Broken bool
}

func (r *Row) reset() {
	r.Labels, r.Index, r.Value, r.Text, r.Broken = r.Labels[:0], r.Index[:0], r.Value[:0], nil, false
}

// ReaderOptions say how a stream is to be read.
type ReaderOptions struct {
	Name string // for messages: the path as the user gave it
	// label[,label...]<TAB>text; else libsvm or XMC, told by line 1
	Text      bool
	ZeroBased bool // libsvm indices count from 0; XMC files always do
	// Pause is called before more of the stream is read, which may block. If it returns true,
	// Read returns ErrPause, and continues when it is called again. nil: never. Tables have
	// Use.Pause.
	Pause func() bool

	// lines are sequences, which become features of a string kernel
	Strings Strings

	// for paths that are tables; of lines it says how many may be broken, and what separates paths
	Table table.Options
	Use   table.Use
}

// ErrPause is returned by Read when a Pause keeps it from waiting for the stream.
var ErrPause = table.ErrPause

// Counts is what a Reader met beside plain instances. Nothing of it is an error.
type Counts struct {
	Rows           int64 `json:"rows"`            // instances
	EmptyLines     int64 `json:"empty_lines"`     // without a single character, skipped
	Comments       int64 `json:"comments"`        // lines with a comment only, skipped
	Unlabelled     int64 `json:"unlabelled"`      // rows without a label
	ZeroRows       int64 `json:"zero_rows"`       // rows without a feature
	RepeatedLabels int64 `json:"repeated_labels"` // names that stood twice in a line, taken once
	ExplicitZeros  int64 `json:"explicit_zeros"`  // idx:0, left out

	Broken int64 `json:"broken_rows,omitempty"` // of tables, left out
}

// Reader yields the instances of a stream in input order. It holds one line in memory.
type Reader struct {
	o        ReaderOptions
	lines    *splitter
	parser   svmParser
	header   *xmcHeader // nil: no XMC form
	row      Row
	sequence stringRow
	counts   Counts
	first    bool
	part     bool    // a part of a stream, which is checked as a whole elsewhere
	broken   []error // lines passed over
	err      error
}

// NewReader reads r, which must not be compressed (fs.Open decompresses).
func NewReader(r io.Reader, o ReaderOptions) *Reader {
	l := newSplitter(r, maxLineBytes)
	l.pause = o.Pause
	return &Reader{
		o:      o,
		lines:  l,
		parser: svmParser{zeroBased: o.ZeroBased, limit: maxIndex},
		first:  true,
	}
}

// restart sets the reader on a run of whole lines: the first of its stream, or a later one, whose
// header is then known.
func (r *Reader) restart(text []byte, first bool, header *xmcHeader) {
	if r.lines == nil {
		r.lines = &splitter{limit: maxLineBytes}
	}
	*r.lines = splitter{buf: text, b: len(text), limit: r.lines.limit, err: io.EOF}
	r.parser.zeroBased, r.parser.limit = r.o.ZeroBased, maxIndex
	r.counts, r.first, r.err, r.broken = Counts{}, first, nil, nil
	if r.header = header; header != nil {
		header.rule(&r.parser)
	}
}

// Counts returns what was met so far.
func (r *Reader) Counts() Counts {
	c := r.counts
	c.Broken = int64(len(r.broken))
	return c
}

// Form is "libsvm", "xmc" or "text"; it is known after the first Read.
func (r *Reader) Form() string { return formOf(r.o, r.header) }

func formOf(o ReaderOptions, header *xmcHeader) string {
	switch {
	case o.Text:
		return "text"
	case header != nil:
		return "xmc"
	}
	return "libsvm"
}

// Read returns the next instance, or io.EOF after the last. A stream without any instance is an
// error, and so is every line that breaks the form: an *fs.InputError with name and line. After
// an error, Read returns the same error again.
func (r *Reader) Read() (*Row, error) {
	if r.err == nil {
		err := r.next()
		if err == nil {
			return &r.row, nil
		}
		if errors.Is(err, ErrPause) {
			return nil, ErrPause
		}
		r.err = err
	}
	return nil, r.err
}

// next goes to the next instance. It passes over broken lines as far as ReaderOptions.Table
// allows it.
func (r *Reader) next() error {
	for {
		err := r.take()
		broken, ok := err.(*brokenLine) // exactly as take made it, not wrapped
		if !ok {
			return err
		}
		if int64(len(r.broken)) >= r.o.Table.SkipBroken {
			return broken.err
		}
		if r.broken = append(r.broken, broken.err); r.o.Use.KeepBroken {
			r.row.reset()
			r.row.Line, r.row.Broken = r.lines.line, true
			r.counts.Rows++
			return nil
		}
	}
}

// brokenLine is an error after which later lines can still be read.
type brokenLine struct{ err error }

func (e *brokenLine) Error() string { return e.err.Error() }

func (r *Reader) take() error {
	for {
		line, err := r.lines.next()
		if err == io.EOF {
			if r.part {
				return err
			}
			return checkEnd(r.o.Name, r.header, r.counts)
		}
		if err != nil {
			return r.named(err)
		}
		if r.first {
			r.first = false
			used, err := r.firstLine(&line)
			if err != nil {
				return r.fail(err)
			}
			if used {
				continue
			}
		}
		kind, err := r.parse(line)
		if err != nil {
			return &brokenLine{r.fail(err)}
		}
		switch kind {
		case empty:
			r.counts.EmptyLines++
		case comment:
			r.counts.Comments++
		default:
			if taken, err := r.finish(); taken || err != nil {
				return err
			}
		}
	}
}

// firstLine removes a byte order mark and reads an XMC header; used says that the line was one.
func (r *Reader) firstLine(line *[]byte) (used bool, err error) {
	if err := textio.Foreign(*line); err != nil {
		return false, err
	}
	*line = bytes.TrimPrefix(*line, byteOrderMark)
	if r.o.Text || bytes.IndexByte(*line, '\r') >= 0 {
		return false, nil
	}
	r.header, err = parseXMCHeader(*line)
	if r.header == nil {
		return false, err
	}
	r.header.rule(&r.parser)
	return true, err
}

// parse says what a line is, by one rule for all forms. An empty line is no row, except in the
// XMC form, whose header counts its lines. A line with only a comment is no row, in forms that
// have comments. Every other line is a row; blanks alone are a row without labels and features.
func (r *Reader) parse(line []byte) (lineKind, error) {
	r.row.reset()
	switch {
	case len(line) == 0 && r.header == nil:
		return empty, nil
	case bytes.IndexByte(line, 0) >= 0:
		return 0, errNUL
	case bytes.IndexByte(line, '\r') >= 0:
		return 0, errCR
	case r.o.Strings.Kernel != "":
		r.sequence.o = r.o.Strings
		return instance, r.sequence.parse(line, &r.row)
	case r.o.Text:
		return instance, parseTextLine(line, &r.row)
	}
	return r.parser.parse(line, &r.row)
}

// finish checks, tidies and counts the row just parsed. It is not taken if it is an empty line
// after an XMC file's last row.
func (r *Reader) finish() (taken bool, err error) {
	row := &r.row
	row.Line = r.lines.line
	if r.header != nil {
		if err := r.header.checkLabels(row); err != nil {
			return false, &brokenLine{r.fail(err)}
		}
	}
	for _, label := range row.Labels {
		if err := textio.CheckPath(label, r.o.Table.PathSeparator); err != nil {
			return false, &brokenLine{r.fail(err)}
		}
	}
	if n := len(row.Labels); n > 1 {
		row.Labels = distinct(row.Labels)
		r.counts.RepeatedLabels += int64(n - len(row.Labels))
	}
	r.counts.ExplicitZeros += dropZeros(row)
	if r.header != nil && !r.part {
		if taken, err := r.header.take(r.counts.Rows, len(row.Labels)+len(row.Index)); err != nil {
			return false, r.fail(err)
		} else if !taken {
			r.counts.EmptyLines++
			return false, nil
		}
	}
	r.counts.Rows++
	if len(row.Labels) == 0 {
		r.counts.Unlabelled++
	}
	if len(row.Index) == 0 && !r.o.Text {
		r.counts.ZeroRows++
	}
	return true, nil
}

// checkEnd checks a stream as a whole; io.EOF means that it is sound.
func checkEnd(name string, header *xmcHeader, c Counts) error {
	if c.Rows == 0 {
		return fs.Inputf(name, 0, "no instance in it: the file is empty")
	}
	if header != nil {
		if err := header.checkEnd(c); err != nil {
			return fs.Inputf(name, 1, "%w", err)
		}
	}
	return io.EOF
}

// fail adds name and line to an error.
func (r *Reader) fail(err error) error {
	return &fs.InputError{Path: r.o.Name, Line: r.lines.line, Msg: err.Error(), Err: err}
}

// named gives the errors of the line splitter their file.
func (r *Reader) named(err error) error {
	var in *fs.InputError
	if errors.As(err, &in) && in.Path == "" {
		return &fs.InputError{Path: r.o.Name, Line: in.Line, Msg: in.Msg, Err: in.Err}
	}
	return err
}

// distinct drops repeated labels and keeps first places. A hostile row may have millions of
// labels, so long lists go through a set.
func distinct(labels [][]byte) [][]byte {
	const few = 32
	out := labels[:0]
	if len(labels) <= few {
		for _, l := range labels {
			if !slices.ContainsFunc(out, func(o []byte) bool { return bytes.Equal(o, l) }) {
				out = append(out, l)
			}
		}
		return out
	}
	seen := make(map[string]bool, len(labels))
	for _, l := range labels {
		if !seen[string(l)] {
			seen[string(l)] = true
			out = append(out, l)
		}
	}
	return out
}

func dropZeros(row *Row) int64 {
	if !slices.Contains(row.Value, 0) {
		return 0
	}
	n := 0
	for i, v := range row.Value {
		if v != 0 {
			row.Index[n], row.Value[n] = row.Index[i], v
			n++
		}
	}
	dropped := len(row.Index) - n
	row.Index, row.Value = row.Index[:n], row.Value[:n]
	return int64(dropped)
}

func floatBits(v float32) uint32 { return math.Float32bits(v) }
func floatFrom(b uint32) float32 { return math.Float32frombits(b) }
