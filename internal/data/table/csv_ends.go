package table

import (
	"bytes"
	"cmp"
	"io"
)

// keptEnds doubles the carriage return of each CRLF in quotes. encoding/csv turns every CRLF into
// LF; the doubling makes it return quoted text as it is in the file. keptEnds tracks the reader's
// state, including its recovery from broken rows, each of which ends at a line end.
type keptEnds struct {
	r         io.Reader
	delimiter []byte
	state     csvState
	matched   int     // bytes of the delimiter matched after a cellQuote
	tail      [4]byte // the last bytes
	in, out   []byte  // the bytes read, and the output not yet returned
}

// csvState is the state of a CSV parser.
type csvState int

const (
	cellStart csvState = iota
	cellText           // within an unquoted cell
	cellQuoted
	// cellQuote is the state after a quote in a quoted cell. The quote ends the cell or is doubled.
	cellQuote
	// cellBroken is the state in the rest of a line that has a misplaced quote or ends with CR.
	cellBroken
)

func newKeptEnds(r io.Reader, delimiter string) *keptEnds {
	return &keptEnds{r: r, delimiter: []byte(cmp.Or(delimiter, ",")), in: make([]byte, bufferBytes/2)}
}

func (k *keptEnds) Read(p []byte) (n int, err error) {
	if len(k.out) == 0 {
		n, err = k.r.Read(k.in[:min(len(k.in), max(1, len(p)/2))])
		k.out = k.pass(k.in[:n])
	}
	n = copy(p, k.out)
	k.out = k.out[n:]
	if len(k.out) > 0 {
		err = nil // it is returned again at the next read
	}
	return n, err
}

// pass returns the text with the carriage returns doubled.
func (k *keptEnds) pass(text []byte) []byte {
	if k.state <= cellText && bytes.IndexByte(text, '"') < 0 { // the usual case
		for _, c := range text[max(0, len(text)-len(k.tail)):] {
			k.next(c)
		}
		return text
	}
	var grown []byte
	from := 0
	for i, c := range text {
		if c == '\n' && k.state == cellQuoted && k.tail[3] == '\r' {
			grown = append(append(grown, text[from:i]...), '\r')
			from = i
		}
		k.next(c)
	}
	if from == 0 && grown == nil {
		return text
	}
	return append(grown, text[from:]...)
}

// next advances the state by one byte.
func (k *keptEnds) next(c byte) {
	k.tail = [4]byte{k.tail[1], k.tail[2], k.tail[3], c}
	switch state := k.state; {
	case state == cellQuoted && c == '"':
		k.state, k.matched = cellQuote, 0
	case state == cellQuoted:
	case c == '\n':
		k.state = cellStart
	case state == cellBroken:
	case c == '"' && state == cellText:
		k.state = cellBroken
	case c == '"':
		k.state = cellQuoted
	case state == cellQuote && c != k.delimiter[k.matched]:
		k.state = cellBroken
	case state == cellQuote:
		if k.matched++; k.matched == len(k.delimiter) {
			k.state = cellStart
		}
	// a byte order mark is not part of the text
	case bytes.HasSuffix(k.tail[:], k.delimiter), k.tail == [4]byte{0, 0xef, 0xbb, 0xbf}:
		k.state = cellStart
	default:
		k.state = cellText
	}
}
