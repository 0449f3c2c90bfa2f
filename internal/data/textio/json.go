package textio

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// CheckJSON returns an error if strings of the JSON text are not valid Unicode: if they contain
// bytes that are not UTF-8, or unpaired surrogates. Package json would replace all of these by the
// same character.
func CheckJSON(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("bytes that are not UTF-8: convert the text to UTF-8")
	}
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 || at+1 >= len(text) {
			return nil
		}
		text = text[at:]
		first, ok := escaped(text)
		switch second, both := escaped(text[min(len(text), 6):]); {
		case !ok:
			text = text[2:]
		case !utf16.IsSurrogate(first):
			text = text[6:]
		case both && utf16.DecodeRune(first, second) != utf8.RuneError:
			text = text[12:]
		default:
			return fmt.Errorf("%s is half of a surrogate pair, and no character: was a text cut there?", text[:6])
		}
	}
}

// escaped parses an escape \uXXXX at the start of text.
func escaped(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
