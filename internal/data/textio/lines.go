// Package textio reads text line by line, and refuses invalid text. All readers of small line-based
// files (structures, predictions, names) use it, so that byte order marks, line ends, binary data
// and over-long lines are treated alike, and errors name file and line.
//
// It accepts a UTF-8 byte order mark at the start, CRLF, and a last line without an end. It
// refuses, with *fs.InputError, NUL bytes, UTF-16, invalid UTF-8, a lone carriage return, a byte
// order mark elsewhere, and a line above MaxBytes.
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

// MaxBytes is the largest length of a line, as docs/formats.md states.
const MaxBytes = 64 << 20

// CarriageReturn is the error for a CR that does not end a line. Old Mac files end their lines with
// CR; read as a single line, they would lose all but the first.
const CarriageReturn = `carriage return inside a line: lines end with LF or CRLF (convert the file: tr '\r' '\n')`

var byteOrderMark = []byte("\xef\xbb\xbf")

// Reader returns the lines of a stream. It reads ahead, so the stream must not be read elsewhere.
type Reader struct {
	in     *bufio.Reader
	source string
	max    int
	line   int    // number of the last line
	long   []byte // a line that did not fit into the buffer of in
}

// NewReader returns a Reader of r. source is its name in errors.
func NewReader(r io.Reader, source string) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), source: source, max: MaxBytes}
}

// Next returns the next line without its end, or io.EOF after the last. The line is valid until the
// next call.
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

// ErrNoText is the cause of an error about a line that is not valid text. Later lines can still be
// read.
var ErrNoText = errors.New("no text")

// Line returns the number of the last line, from 1, or 0 before the first.
func (r *Reader) Line() int { return r.line }

// Errorf returns an error at the last line.
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
	if errors.As(err, &input) { // the error of the layer below is more precise
		return nil, err
	}
	return nil, fmt.Errorf("%s:%d: %w", r.source, r.line+1, err)
}

// check returns an error if b is not valid text.
func check(b []byte) error {
	if bytes.IndexByte(b, 0) >= 0 {
		return errors.New("NUL byte: this is not a text file (UTF-16 must be converted to UTF-8)")
	}
	if bytes.IndexByte(b, '\r') >= 0 {
		return errors.New(CarriageReturn)
	}
	if bytes.HasPrefix(b, byteOrderMark) { // the mark is an invisible part of a name
		return errors.New("byte order mark (U+FEFF) after the file's start: were files joined that each began " +
			"with one? remove it")
	}
	if !utf8.Valid(b) {
		return errors.New("bytes that are not UTF-8: convert the file to UTF-8")
	}
	return nil
}
