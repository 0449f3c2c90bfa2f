package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"taxon/internal/data/textio"
)

// maxIndex is the largest feature index allowed in a file.
const maxIndex = 1<<31 - 1

// lineKind is the kind of a line: an instance, an empty line or a comment.
type lineKind int

const (
	instance lineKind = iota
	empty
	comment
)

// svmParser reads lines of the form label[,label...] idx:val idx:val ... It keeps nothing but
// scratch memory from one line to the next.
type svmParser struct {
	zeroBased bool

	// limit is the largest index allowed, as it is written: maxIndex, or D-1 in an XMC file of D
	// features.
	limit uint32
	pairs []uint64
}

// parse resets row and reads one line into its Labels, Index and Value. Its errors do not name the
// file.
func (p *svmParser) parse(line []byte, row *Row) (lineKind, error) {
	rest := skipBlanks(line)
	if len(rest) > 0 && rest[0] == '#' {
		return comment, nil
	}
	if len(rest) > 0 && len(rest) == len(line) { // a leading blank means that the row has no label
		if !isFeature(rest[:tokenLen(rest)]) {
			var err error
			if rest, err = parseLabels(rest, row); err != nil {
				return 0, hint(err, line, nil)
			}
		}
	}
	sorted, err := p.features(rest, row)
	if err != nil {
		if len(row.Index) == 0 {
			err = hint(err, line, skipBlanks(rest))
		}
		return 0, err
	}
	if !sorted {
		return instance, p.sortRow(row)
	}
	return instance, nil
}

// features reads the idx:val pairs and reports whether the indices ascend strictly.
func (p *svmParser) features(s []byte, row *Row) (sorted bool, err error) {
	sorted = true
	last := int64(-1)
	for {
		s = skipBlanks(s)
		if len(s) == 0 || s[0] == '#' {
			return sorted, nil
		}
		i, index := 0, uint64(0)
		for ; i < len(s) && s[i]-'0' <= 9 && i < 10; i++ {
			index = index*10 + uint64(s[i]-'0')
		}
		if i == 0 || i == len(s) || s[i] != ':' {
			if index, i, err = oddIndex(s[:tokenLen(s)]); err != nil {
				return false, err
			}
		}
		if index > uint64(p.limit) || index == 0 && !p.zeroBased {
			return false, p.badIndex(index)
		}
		value, n := fastValue(s[i+1:])
		if n += i + 1; n == i+1 {
			n = tokenLen(s)
			if value, err = parseValue(s[i+1 : n]); err != nil {
				return false, fmt.Errorf("feature %s: %w", show(s[:n]), err)
			}
		}
		sorted = sorted && int64(index) > last
		last = int64(index)
		if p.zeroBased {
			index++
		}
		row.Index = append(row.Index, uint32(index))
		row.Value = append(row.Value, value)
		s = s[n:]
	}
}

func (p *svmParser) badIndex(index uint64) error {
	switch {
	case index == 0:
		return errors.New("feature index 0: indices start at 1 (use ‹zero-based› for files that count from 0)")
	case p.limit < maxIndex:
		return fmt.Errorf("feature index %d: the header on line 1 announces %d features, counted from 0", index, p.limit+1)
	}
	return fmt.Errorf("feature index %d: indices go up to %d: number the features anew", index, maxIndex)
}

// hint adds to an error the form that the line may have instead. features is the part of the line
// after its labels.
func hint(err error, line, features []byte) error {
	switch {
	case looksLikeRow(line):
		return fmt.Errorf("%w; if this is a row of a table, say ‹data-format=csv›", err)
	case looksLikeText(features):
		return fmt.Errorf("%w; if the lines are LABEL<TAB>text, add ‹text›", err)
	}
	return err
}

// looksLikeRow reports whether a line has commas or semicolons, but neither a pair nor a tab, as a
// row of a table has.
func looksLikeRow(line []byte) bool {
	return bytes.ContainsAny(line, ",;") && bytes.IndexByte(line, '\t') < 0 && !hasPair(line)
}

// looksLikeText reports whether the part of a line after its label consists of several words, none
// of which is a pair.
func looksLikeText(s []byte) bool {
	return len(bytes.Fields(s)) > 1 && !hasPair(s)
}

// hasPair reports whether one of the words is a pair, whatever its value.
func hasPair(s []byte) bool {
	for _, w := range bytes.Fields(s) {
		if i := bytes.IndexByte(w, ':'); i > 0 && isInteger(w[:i]) {
			return true
		}
	}
	return false
}

// oddIndex reads a token whose index is not a short run of digits: it has a sign, is too long, or
// is no number. It returns the index and the position of the colon.
func oddIndex(token []byte) (uint64, int, error) {
	colon := bytes.IndexByte(token, ':')
	if colon < 0 {
		return 0, 0, fmt.Errorf("feature %s: want INDEX:VALUE (labels stand first, separated by commas; one with a "+
			"blank stands in quotes)", show(token))
	}
	if !isInteger(token[:colon]) {
		return 0, 0, fmt.Errorf("feature %s: the index %s is not an integer", show(token), show(token[:colon]))
	}
	digits := bytes.TrimLeft(token[:colon], "+-0")
	if token[0] == '-' && len(digits) > 0 {
		return 0, 0, fmt.Errorf("feature index %s: indices are not negative", clip(token[:colon]))
	}
	if len(digits) > 10 {
		return 0, 0, fmt.Errorf("feature index %s: indices go up to %d: number the features anew", clip(token[:colon]),
			maxIndex)
	}
	index := uint64(0)
	for _, c := range digits {
		index = index*10 + uint64(c-'0')
	}
	return index, colon, nil
}

// sortRow sorts the features by index. A repeated index is an error.
func (p *svmParser) sortRow(row *Row) error {
	p.pairs = p.pairs[:0]
	for i, index := range row.Index {
		// The value's bits are in the low half, so equal indices have a definite order.
		p.pairs = append(p.pairs, uint64(index)<<32|uint64(floatBits(row.Value[i])))
	}
	slices.Sort(p.pairs)
	for i, pair := range p.pairs {
		row.Index[i], row.Value[i] = uint32(pair>>32), floatFrom(uint32(pair))
		if i > 0 && row.Index[i] == row.Index[i-1] {
			shown := row.Index[i]
			if p.zeroBased {
				shown--
			}
			return fmt.Errorf("feature index %d occurs twice in the line: keep one of them, or their sum", shown)
		}
	}
	return nil
}

// maxRowLabels is far beyond any real row. It keeps a malicious row of 64 MiB from allocating more
// than 24 MiB of label headers.
const maxRowLabels = 1 << 20

// parseLabels splits labels at commas, up to a blank or tab, and returns the rest of the line.
func parseLabels(s []byte, row *Row) (rest []byte, err error) {
	for {
		quoted := len(s) > 0 && s[0] == '"'
		name, rest, err := textio.CutLabel(s)
		if err != nil {
			return nil, err
		}
		if quoted {
			err = checkLabel(s[:len(s)-len(rest)]) // the message shows control characters escaped
		}
		if err == nil && (!quoted || len(name) == 0) {
			err = checkLabel(name)
		}
		if err != nil {
			return nil, err
		}
		if len(row.Labels) == maxRowLabels {
			return nil, fmt.Errorf("more than %d labels in a line: is this one instance?", maxRowLabels)
		}
		row.Labels = append(row.Labels, name)
		if len(rest) == 0 || rest[0] != ',' {
			return rest, nil
		}
		s = rest[1:]
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// checkLabel returns an error if name is empty, is invalid UTF-8, contains control characters or
// begins with a byte order mark.
func checkLabel(name []byte) error {
	if len(name) == 0 {
		return errors.New("empty label name: labels are separated by single commas")
	}
	ascii := true
	for _, c := range name {
		if c < ' ' || c == 0x7f {
			return fmt.Errorf("label %s holds a control character: is this a text file?", show(name))
		}
		if c >= utf8.RuneSelf {
			ascii = false
		}
	}
	if bytes.HasPrefix(name, byteOrderMark) { // the mark is invisible, but would be part of the name
		return errors.New("byte order mark (U+FEFF) after the file's start: were files joined that each began " +
			"with one? remove it")
	}
	if !ascii && !utf8.Valid(name) {
		return fmt.Errorf("label %s is not UTF-8: convert the file (iconv -t UTF-8)", show(name))
	}
	return nil
}

// isFeature reports whether a line's first token is INTEGER:NUMBER. NaN and infinities count as
// numbers here, so that they are refused as values and not taken for names.
func isFeature(token []byte) bool {
	colon := bytes.IndexByte(token, ':')
	if colon <= 0 || !isInteger(token[:colon]) {
		return false
	}
	_, err := parseValue(token[colon+1:])
	return err == nil || err == errRange || err == errFinite
}

func isInteger(s []byte) bool {
	if len(s) > 1 && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(s) > 0
}

func skipBlanks(s []byte) []byte {
	for i, c := range s {
		if c != ' ' && c != '\t' {
			return s[i:]
		}
	}
	return nil
}

// tokenLen returns the number of bytes before the next blank.
func tokenLen(s []byte) int {
	for i, c := range s {
		if c == ' ' || c == '\t' {
			return i
		}
	}
	return len(s)
}

// show shortens a piece of input and quotes it for a message.
func show(s []byte) string { return fmt.Sprintf("%q", clip(s)) }

// clip shortens a piece of input for a message.
func clip(s []byte) string {
	const most = 40
	if len(s) > most {
		return string(s[:most]) + "..."
	}
	return string(s)
}
