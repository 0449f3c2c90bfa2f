package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// parseTextLine reads label[,label...]<TAB>text. A line that begins with the tab has no
// label. Text has no comments.
func parseTextLine(line []byte, row *Row) (lineKind, error) {
	row.reset()
	if len(skipBlanks(line)) == 0 {
		return blank, nil
	}
	if bytes.IndexByte(line, 0) >= 0 {
		return 0, errNUL
	}
	labels, text, ok := bytes.Cut(line, []byte{'\t'})
	if !ok {
		return 0, errors.New("no tab in the line: want LABEL[,LABEL...]<TAB>TEXT (begin with the tab where there is no label)")
	}
	if bytes.IndexByte(labels, ' ') >= 0 {
		return 0, fmt.Errorf("label %s holds a blank: names hold neither blanks nor commas", show(labels))
	}
	if len(labels) > 0 {
		if err := parseLabels(labels, row); err != nil {
			return 0, err
		}
	}
	if !utf8.Valid(text) {
		return 0, errors.New("the text is not UTF-8: convert the file (iconv -t UTF-8)")
	}
	row.Text = text
	return instance, nil
}

// eachWord calls f with each word of the text: a longest run of letters and numbers
// (categories L and N), lower-cased rune by rune. word is valid during the call; scratch
// is its memory, returned for the next text.
func eachWord(text, scratch []byte, f func(word []byte)) []byte {
	word := scratch[:0]
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
				word = append(word, c)
				continue
			}
		} else {
			r, size := utf8.DecodeRune(text[i:])
			i += size
			if unicode.IsLetter(r) || unicode.IsNumber(r) {
				word = utf8.AppendRune(word, unicode.ToLower(r))
				continue
			}
		}
		if len(word) > 0 {
			f(word)
			word = word[:0]
		}
	}
	if len(word) > 0 {
		f(word)
	}
	return word
}
