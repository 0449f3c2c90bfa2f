package text

import (
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// normal returns a word in Unicode's form NFKC with its case folded (ß becomes ss), in the form
// NFKC again. So composed and decomposed letters, wide and narrow ones give the same word.
func normal(word []byte) string {
	ascii := true
	for _, c := range word {
		ascii = ascii && c < utf8.RuneSelf
	}
	if ascii {
		out := make([]byte, len(word))
		for i, c := range word {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			out[i] = c
		}
		return string(out)
	}
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(string(word))))
}
