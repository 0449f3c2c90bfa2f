package textio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// MaxParts is the largest number of parts of a label that is a path. No hierarchy made by people is
// as deep, and the total length of the class names grows with the square of the number.
const MaxParts = 256

// CheckPath returns an error if a label has more than MaxParts parts. Labels are not paths if
// separator is empty.
func CheckPath(label []byte, separator string) error {
	if separator == "" {
		return nil
	}
	if n := bytes.Count(label, []byte(separator)) + 1; n > MaxParts {
		return fmt.Errorf("a path of %d parts: at most %d are possible (each part is a class named by all "+
			"parts before it); is %q the separator of paths?", n, MaxParts, separator)
	}
	return nil
}

// special lists the characters that separate or end names in some line format. Control characters
// are special too.
const special = " ,:\"#"

// AppendName appends a name in the form of the line formats: unchanged, or as a JSON string if it
// is empty or contains a blank, comma, colon, quote, '#' or control character.
func AppendName(dst []byte, name string) []byte {
	if name != "" && !strings.ContainsAny(name, special) && !strings.ContainsFunc(name, isControl) {
		return append(dst, name...)
	}
	return AppendQuoted(dst, name)
}

// AppendQuoted appends a name as a JSON string.
func AppendQuoted(dst []byte, name string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(name) // a string can always be encoded
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

var errQuoted = errors.New(`a name that begins with a quote must be a JSON string, such as "#b" or "\"so\""`)

// CutName splits off the name at the beginning of s: a JSON string, or everything up to the next
// blank or tab. rest is the remainder. The error does not contain a position.
func CutName(s []byte) (name, rest []byte, err error) { return cut(s, " \t") }

// CutLabel is like CutName, but a comma ends a name as well.
func CutLabel(s []byte) (name, rest []byte, err error) { return cut(s, " \t,") }

func cut(s []byte, stops string) (name, rest []byte, err error) {
	if len(s) == 0 || s[0] != '"' {
		end := bytes.IndexAny(s, stops)
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], nil
	}
	name, rest, err = CutQuoted(s)
	if err == nil && len(rest) > 0 && strings.IndexByte(stops, rest[0]) < 0 {
		err = errQuoted
	}
	return name, rest, err
}

// CutQuoted splits off the JSON string at the beginning of s, regardless of what follows.
func CutQuoted(s []byte) (name, rest []byte, err error) {
	for i := 1; i < len(s); i++ {
		if s[i] == '\\' {
			i++
			continue
		}
		if s[i] != '"' {
			continue
		}
		var text string
		if json.Unmarshal(s[:i+1], &text) != nil {
			break
		}
		if err := CheckJSON(s[:i+1]); err != nil {
			return nil, nil, fmt.Errorf("a name: %w", err)
		}
		if strings.IndexByte(text, 0) >= 0 {
			return nil, nil, fmt.Errorf("a name: %q holds a NUL, so it is not text", text)
		}
		return []byte(text), s[i+1:], nil
	}
	return nil, nil, errQuoted
}

// AppendNames appends names in the form of a line of labels: separated by commas.
func AppendNames(dst []byte, names ...string) []byte {
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendName(dst, name)
	}
	return dst
}

// Field returns a name in the form of taxon's own files with tabs: unchanged, or as a JSON string
// if it contains a control character or begins with a quote.
func Field(name string) string {
	if strings.HasPrefix(name, `"`) || strings.ContainsFunc(name, isControl) {
		return string(AppendName(nil, name))
	}
	return name
}

// FromField is the inverse of Field. A quote that does not begin a JSON string is part of the name.
func FromField(field string) string {
	if strings.HasPrefix(field, `"`) {
		if name, rest, err := CutQuoted([]byte(field)); err == nil && len(rest) == 0 {
			return string(name)
		}
	}
	return field
}
