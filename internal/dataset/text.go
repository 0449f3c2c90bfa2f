package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// parseTextLine reads label[,label...]<TAB>text. A line that begins with the tab, or holds
// blanks alone, has no label. Text has no comments.
func parseTextLine(line []byte, row *Row) error {
	if len(skipBlanks(line)) == 0 {
		return nil
	}
	labels, text, ok := bytes.Cut(line, []byte{'\t'})
	if !ok {
		return errors.New("no tab in the line: want LABEL[,LABEL...]<TAB>TEXT (begin with the tab where there is no label)")
	}
	if bytes.IndexByte(labels, ' ') >= 0 {
		return fmt.Errorf("label %s holds a blank: names hold neither blanks nor commas", show(labels))
	}
	if len(labels) > 0 {
		if err := parseLabels(labels, row); err != nil {
			return err
		}
	}
	if !utf8.Valid(text) {
		return errors.New("the text is not UTF-8: convert the file (iconv -t UTF-8)")
	}
	row.Text = text
	return nil
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
