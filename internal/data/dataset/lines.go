package dataset

import (
	"bytes"
	"io"

	"taxon/internal/fs"
)

// maxLineBytes bounds the length of a line without its line end, and thus the memory that a file
// without line ends, for example a binary file, can claim.
const maxLineBytes = 64 << 20

// firstBufferBytes is the initial size of the buffer. It holds some hundred lines of usual length;
// the buffer grows only for longer ones.
const firstBufferBytes = 128 << 10

// splitter splits a stream into lines without copying them.
type splitter struct {
	r     io.Reader
	buf   []byte
	a, b  int   // unread bytes: buf[a:b]
	limit int   // the longest line allowed, in bytes
	line  int64 // number of the line returned last, 1-based
	err   error // the error, or io.EOF, that ended the stream

	// pause is ReaderOptions.Pause. It is never called if it is nil.
	pause func() bool
}

func newSplitter(r io.Reader, limit int) *splitter {
	return &splitter{r: r, limit: limit, buf: make([]byte, min(firstBufferBytes, limit+2))}
}

// next returns the next line without its LF or CRLF. The line is valid until the next call. At the
// end of the stream next returns io.EOF; an error of the stream carries the number of its line.
func (l *splitter) next() ([]byte, error) {
	seen := 0 // no line end is among the first `seen` bytes of buf[a:b]
	for {
		if i := bytes.IndexByte(l.buf[l.a+seen:l.b], '\n'); i >= 0 {
			line := l.buf[l.a : l.a+seen+i]
			l.a += seen + i + 1
			return l.consume(line)
		}
		seen = l.b - l.a
		if l.err != nil {
			break
		}
		if seen > l.limit+1 { // a CR may follow a line of full length
			return nil, l.tooLong()
		}
		if l.pause != nil && l.pause() {
			return nil, ErrPause
		}
		l.fill()
	}
	if l.err != io.EOF {
		return nil, fs.AtLine(l.err, l.line+1)
	}
	if seen == 0 {
		return nil, io.EOF
	}
	line := l.buf[l.a:l.b]
	l.a = l.b
	return l.consume(line)
}

// consume removes the CR of a line, checks its length and counts it.
func (l *splitter) consume(line []byte) ([]byte, error) {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if len(line) > l.limit {
		return nil, l.tooLong()
	}
	l.line++
	return line, nil
}

// errTooLong is the error for a line beyond maxLineBytes. tooLong adds its line number.
var errTooLong = &fs.InputError{Msg: "the line is longer than 64 MiB: is this a text file with one instance a line?"}

func (l *splitter) tooLong() error { return fs.AtLine(errTooLong, l.line+1) }

// fill makes room in the buffer, then reads from the stream once.
func (l *splitter) fill() {
	if l.a > 0 {
		copy(l.buf, l.buf[l.a:l.b])
		l.a, l.b = 0, l.b-l.a
	}
	if l.b == len(l.buf) {
		grown := make([]byte, min(2*len(l.buf), l.limit+2))
		copy(grown, l.buf)
		l.buf = grown
	}
	n, err := l.r.Read(l.buf[l.b:])
	l.b += n
	l.err = err
}
