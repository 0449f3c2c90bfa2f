// Package textio reads text line by line, and refuses what is no text. All readers of small
// line-based files (structures, predictions, names) use it. So they treat byte order marks, line
// ends, binary data and over-long lines alike, and name file and line in errors.
//
// Accepted: a UTF-8 byte order mark at the start, CRLF, a last line without an end. Refused with
// *fs.InputError: NUL bytes, UTF-16, invalid UTF-8, a lone carriage return, a byte order mark at
// a later line's start (or twice), a line above MaxBytes.
package textio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"taxon/internal/fs"
)

// MaxBytes is the longest line, as docs/formats.md says.
const MaxBytes = 64 << 20

// CarriageReturn is the error for a CR that ends no line. Old Mac files end their lines so; read
// as one line they would lose all but the first.
const CarriageReturn = `carriage return inside a line: lines end with LF or CRLF (convert the file: tr '\r' '\n')`

var byteOrderMark = []byte("\xef\xbb\xbf")

// Reader returns lines. It reads ahead, so its source must not be read elsewhere.
type Reader struct {
	in     *bufio.Reader
	source string
	max    int
	line   int    // number of the last line
	long   []byte // a line that did not fit into in's buffer
}

// NewReader reads from r; source names it in errors.
func NewReader(r io.Reader, source string) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), source: source, max: MaxBytes}
}

// Next returns the next line without its end, valid until the next call, or io.EOF.
func (r *Reader) Next() ([]byte, error) {
	b, err := r.raw()
	if err != nil {
		return nil, err
	}
	r.line++
	if r.line == 1 {
		if err := Foreign(b); err != nil {
			return nil, r.Errorf("%w", err)
		}
		b = bytes.TrimPrefix(b, byteOrderMark)
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	b = bytes.TrimSuffix(b, []byte("\r"))
	if err := check(b); err != nil {
		return b, &fs.InputError{Path: r.source, Line: int64(r.line), Msg: err.Error(), Err: ErrNoText}
	}
	return b, nil
}

// ErrNoText is the cause of an error about bytes of a line that are no text. Later lines can still
// be read.
var ErrNoText = errors.New("no text")

// Line is the number of the last line, from 1; 0 before the first.
func (r *Reader) Line() int { return r.line }

// Errorf makes an error at the last line.
func (r *Reader) Errorf(format string, args ...any) error {
	return fs.Inputf(r.source, int64(r.line), format, args...)
}

// raw returns the next line with its end, or io.EOF.
func (r *Reader) raw() ([]byte, error) {
	b, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.long = r.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			r.long = append(r.long, b...)
			if len(r.long) > r.max {
				r.line++
				return nil, r.Errorf("line longer than %d MiB: is this a text file?", r.max>>20)
			}
			b, err = r.in.ReadSlice('\n')
		}
		r.long = append(r.long, b...)
		b = r.long
	}
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, io.EOF) && len(b) > 0:
		return b, nil
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	}
	var input *fs.InputError
	if errors.As(err, &input) { // the layer below explains it better
		return nil, err
	}
	return nil, fmt.Errorf("%s:%d: %w", r.source, r.line+1, err)
}

// check refuses bytes that are no text.
func check(b []byte) error {
	if bytes.IndexByte(b, 0) >= 0 {
		return errors.New("NUL byte: this is no text file (UTF-16 must be converted to UTF-8)")
	}
	if bytes.IndexByte(b, '\r') >= 0 {
		return errors.New(CarriageReturn)
	}
	if bytes.HasPrefix(b, byteOrderMark) { // an invisible part of a name
		return errors.New("byte order mark (U+FEFF) after the file's start: were files joined that each began " +
			"with one? remove it")
	}
	if !utf8.Valid(b) {
		return errors.New("bytes that are not UTF-8: convert the file to UTF-8")
	}
	return nil
}
