package text

import "unicode/utf8"

func init() {
	register(kind{name: "chars", mark: "#", rank: 3, of: func(o *Options) func([]string, string, bool) []string {
		lengths := o.Chars
		if lengths == (Range{}) {
			lengths = DefaultChars
		}
		return lengths.within
	}})
}

// within appends the n-grams of a word's code points between blanks, as char_wb of scikit-learn
// has them: a word that is shorter than n with its blanks is one term, whatever further lengths
// follow. A pair out of a script without blanks is a term by itself.
func (r Range) within(terms []string, word string, whole bool) []string {
	if !whole {
		return append(terms, word)
	}
	padded := " " + word + " "
	size := utf8.RuneCountInString(padded)
	for n := r.From; n <= r.To; n++ {
		if n >= size {
			return append(terms, padded)
		}
		from, to := 0, 0
		for range n {
			_, w := utf8.DecodeRuneInString(padded[to:])
			to += w
		}
		for {
			terms = append(terms, padded[from:to])
			if to == len(padded) {
				break
			}
			_, w := utf8.DecodeRuneInString(padded[from:])
			from += w
			_, w = utf8.DecodeRuneInString(padded[to:])
			to += w
		}
	}
	return terms
}
