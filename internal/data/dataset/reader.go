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

// Row is one instance. Its slices belong to the Reader and are valid until the next Read.
type Row struct {
	// Line is the number of the instance's line, which counts from 1.
	Line int64
	// Labels holds the names as written, without repeats. It is empty if the instance has no label.
	Labels [][]byte
	// Index holds the original feature indices, ascending. They count from 1: zero-based input is
	// shifted.
	Index []uint32

	// Value is aligned with Index. All values are finite and not zero.
	Value []float32

	// Text is the text of an instance in text form, whose Index and Value are empty.
	Text []byte

	// ID and Weight are the cells of these columns of a table.
	ID, Weight string
	// Broken marks a row that is invalid. Such a row has no content but its ID.
	Broken bool
}

func (r *Row) reset() {
	r.Labels, r.Index, r.Value, r.Text, r.Broken = r.Labels[:0], r.Index[:0], r.Value[:0], nil, false
}

// ReaderOptions say how a stream is read.
type ReaderOptions struct {
	// Name is the path for messages, as the user gave it.
	Name string
	// Text says that lines have the form label[,label...]<TAB>text. Otherwise line 1 tells whether
	// the form is libsvm or XMC.
	Text bool

	// ZeroBased says that libsvm indices count from 0. Those of XMC files always do.
	ZeroBased bool
	// Pause is called before each read from the stream, which may block. If it returns true, Read
	// returns ErrPause; a later call of Read continues. A nil Pause never interrupts Read. For
	// tables, Use.Pause has this role.
	Pause func() bool

	// Strings makes lines of sequences the features of a string kernel.
	Strings Strings

	// Table says how paths that are tables are read. For lines it says how many may be invalid, and
	// which separator divides the parts of a label that is a path.
	Table table.Options

	// Use says which columns of a table are read.
	Use table.Use
}

// ErrPause is returned by Read when Pause returns true.
var ErrPause = table.ErrPause

// Counts counts what a Reader has read, including the oddities of the input. None of them is an
// error.
type Counts struct {
	Rows           int64 `json:"rows"`            // instances
	EmptyLines     int64 `json:"empty_lines"`     // lines without a single character, which are skipped
	Comments       int64 `json:"comments"`        // lines with a comment only, skipped
	Unlabelled     int64 `json:"unlabelled"`      // rows without a label
	ZeroRows       int64 `json:"zero_rows"`       // rows without a feature
	RepeatedLabels int64 `json:"repeated_labels"` // repeats of a name within a line, which are ignored
	ExplicitZeros  int64 `json:"explicit_zeros"`  // idx:0, left out

	// Broken counts invalid rows that were left out.
	Broken int64 `json:"broken_rows,omitempty"`
}

// Reader yields the instances of a stream in input order. It holds one line in memory.
type Reader struct {
	o        ReaderOptions
	lines    *splitter
	parser   svmParser
	header   *xmcHeader // nil unless the form is XMC
	row      Row
	sequence stringRow
	counts   Counts
	first    bool
	// part says that the stream is a part of another one, whose end is checked elsewhere.
	part   bool
	broken []error // errors of the lines that were skipped
	err    error
}

// NewReader returns a Reader of r, which must not be compressed (fs.Open decompresses).
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

// restart resets the reader to a run of whole lines: the first run of its stream, or a later one,
// for which the header is known already.
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

// Counts returns the counts so far.
func (r *Reader) Counts() Counts {
	c := r.counts
	c.Broken = int64(len(r.broken))
	return c
}

// Form returns "libsvm", "xmc" or "text". It is known after the first Read.
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

// Read returns the next instance, or io.EOF after the last. A stream without instances is an error,
// and so is every line that violates the form: an *fs.InputError with name and line. After an
// error, Read returns the same error again.
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

// next reads the next instance. It skips as many invalid lines as ReaderOptions.Table allows.
func (r *Reader) next() error {
	for {
		err := r.readLine()
		broken, ok := err.(*brokenLine) // exactly the error that readLine returned, not wrapped
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

func (r *Reader) readLine() error {
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

// firstLine removes a byte order mark and parses an XMC header. It returns true if the line was a
// header.
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

// parse classifies a line by one rule for all forms. An empty line is not a row, except in the XMC
// form, whose header counts its lines. A line that consists of a comment is not a row, in forms
// that have comments. Every other line is a row; a line of blanks is a row without labels and
// features.
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

// finish checks, normalises and counts the row just parsed. It returns false for an empty line
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
		if taken, err := r.header.admits(r.counts.Rows, len(row.Labels)+len(row.Index)); err != nil {
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

// checkEnd checks the counts of a whole stream. It returns io.EOF if the stream is valid.
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

// fail adds the name and the line to an error.
func (r *Reader) fail(err error) error {
	return &fs.InputError{Path: r.o.Name, Line: r.lines.line, Msg: err.Error(), Err: err}
}

// named adds the file's name to the errors of the line splitter.
func (r *Reader) named(err error) error {
	var in *fs.InputError
	if errors.As(err, &in) && in.Path == "" {
		return &fs.InputError{Path: r.o.Name, Line: in.Line, Msg: in.Msg, Err: in.Err}
	}
	return err
}

// distinct drops repeated labels and keeps the first of each. A malicious row may have millions of
// labels, so long lists are compared through a map.
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
