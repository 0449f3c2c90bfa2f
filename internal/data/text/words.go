package text

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

func init() {
	itself := func(terms []string, word string, _ bool) []string { return append(terms, word) }
	register(kind{name: "words", rank: 1, joins: true, stops: true,
		of: func(*Options) func([]string, string, bool) []string { return itself }})
}

// unspaced are the scripts that are written without blanks between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
	unicode.Khmer, unicode.Myanmar}

// isUnspaced reports whether a letter belongs to a script without blanks. The sign that lengthens
// Japanese vowels belongs to several scripts.
func isUnspaced(r rune) bool {
	return r >= 0xe00 && (r == 'ー' || r == 'ｰ' || unicode.In(r, unspaced...))
}

// splitter finds the words of texts. Its zero value is ready.
type splitter struct {
	characters []int
}

// each calls f with each word of a text as it is written. A word is a piece between two of
// Unicode's word boundaries (UAX #29) that holds a letter or a number. whole is false for what is
// cut out of a script without blanks: each two neighbouring characters of a run, or its only one.
func (s *splitter) each(text []byte, f func(word []byte, whole bool)) {
	for len(text) > 0 {
		// Boundaries lie on both sides of a blank, so what is between blanks can be cut for itself.
		n, ascii := 0, true
		for n < len(text) && text[n] > ' ' {
			ascii = ascii && text[n] < utf8.RuneSelf
			n++
		}
		if ascii {
			eachASCII(text[:n], f)
		} else {
			s.eachUnicode(text[:n], f)
		}
		text = text[min(n+1, len(text)):]
	}
}

// classes of ASCII characters.
const (
	letter = 1 << iota
	digit
	underscore
	midLetter // within a word, between letters
	midNumber // within a word, between digits
)

var class = func() (c [utf8.RuneSelf]uint8) {
	for r := range c {
		switch {
		case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
			c[r] = letter
		case '0' <= r && r <= '9':
			c[r] = digit
		}
	}
	c['_'] = underscore
	c['.'], c['\''] = midLetter|midNumber, midLetter|midNumber
	c[','], c[';'] = midNumber, midNumber
	c[':'] = midLetter
	return c
}()

// eachASCII is eachUnicode for ASCII, where the boundaries are simple.
func eachASCII(text []byte, f func(word []byte, whole bool)) {
	for i := 0; i < len(text); i++ {
		if class[text[i]]&(letter|digit|underscore) == 0 {
			continue
		}
		from, seen := i, uint8(0)
		for i < len(text) {
			c := class[text[i]]
			if c&(letter|digit|underscore) != 0 {
				seen |= c
				i++
				continue
			}
			if i+1 == len(text) {
				break
			}
			before, after := class[text[i-1]], class[text[i+1]]
			if c&midLetter != 0 && before&after&letter != 0 || c&midNumber != 0 && before&after&digit != 0 {
				i++
				continue
			}
			break
		}
		if seen&(letter|digit) != 0 {
			f(text[from:i], true)
		}
	}
}

func (s *splitter) eachUnicode(text []byte, f func(word []byte, whole bool)) {
	run := 0 // text[run:at] is in a script without blanks
	at := 0
	for it := words.FromBytes(text); it.Next(); {
		word := it.Value()
		if first, _ := utf8.DecodeRune(word); isUnspaced(first) {
			at += len(word)
			continue
		}
		s.pairs(text[run:at], f)
		at += len(word)
		run = at
		if bytes.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			f(word, true)
		}
	}
	s.pairs(text[run:at], f)
}

// pairs calls f with each two neighbouring characters, each with its marks.
func (s *splitter) pairs(run []byte, f func(word []byte, whole bool)) {
	if len(run) == 0 {
		return
	}
	run = norm.NFKC.Bytes(run)
	s.characters = s.characters[:0]
	for i, r := range string(run) {
		if i == 0 || !unicode.IsMark(r) {
			s.characters = append(s.characters, i)
		}
	}
	s.characters = append(s.characters, len(run))
	if len(s.characters) == 2 {
		f(run, false)
	}
	for k := 2; k < len(s.characters); k++ {
		f(run[s.characters[k-2]:s.characters[k]], false)
	}
}
