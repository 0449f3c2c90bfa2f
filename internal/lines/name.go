package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// special are the characters that set names apart in some line format, or end them. Control
// characters come on top.
const special = " ,:\"#"

// AppendName appends a name as line formats write it: as it is, or as a JSON string if it
// holds a blank, comma, colon, quote, '#' or control character, or nothing.
func AppendName(dst []byte, name string) []byte {
	if name != "" && !strings.ContainsAny(name, special) && !strings.ContainsFunc(name, isControl) {
		return append(dst, name...)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(name) // a string always has a JSON form
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

var errQuoted = errors.New(`a name that begins with a quote must be a JSON string, such as "#b" or "\"so\""`)

// CutName cuts the first name off s, which begins with it: a JSON string, or all up to the
// next blank or tab. rest begins behind the name. The error does not say where.
func CutName(s []byte) (name, rest []byte, err error) {
	end := len(s)
	if end == 0 || s[0] != '"' {
		if i := bytes.IndexAny(s, " \t"); i >= 0 {
			end = i
		}
		return s[:end], s[end:], nil
	}
	for i := 1; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if s[i] == '"' {
			end = i + 1
			break
		}
	}
	var text string
	if json.Unmarshal(s[:end], &text) != nil || end < len(s) && s[end] != ' ' && s[end] != '\t' {
		return nil, nil, errQuoted
	}
	return []byte(text), s[end:], nil
}
