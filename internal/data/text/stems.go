package text

import (
	"maps"
	"slices"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
)

// stemmers are Snowball's, by language: https://snowballstem.org.
var stemmers = map[string]func(*snowballstem.Env) bool{
	"ar": arabic.Stem, "da": danish.Stem, "de": german.Stem, "en": english.Stem, "es": spanish.Stem,
	"fi": finnish.Stem, "fr": french.Stem, "ga": irish.Stem, "hu": hungarian.Stem, "it": italian.Stem,
	"nl": dutch.Stem, "no": norwegian.Stem, "pt": portuguese.Stem, "ro": romanian.Stem, "ru": russian.Stem,
	"sv": swedish.Stem, "ta": tamil.Stem, "tr": turkish.Stem,
}

// Stemmed returns the codes of the languages that have stems.
func Stemmed() []string { return slices.Sorted(maps.Keys(stemmers)) }

func init() {
	register(kind{name: "stems", mark: "~", rank: 2, joins: true, of: stemsOf})
}

// stemsOf returns the stems of a word in each language.
func stemsOf(o *Options) func([]string, string, bool) []string {
	languages := o.Languages.List()
	env := snowballstem.NewEnv("")
	return func(terms []string, word string, _ bool) []string {
		from := len(terms)
		for _, l := range languages {
			env.SetCurrent(word)
			stemmers[l](env)
			if stem := env.Current(); !slices.Contains(terms[from:], stem) {
				terms = append(terms, stem)
			}
		}
		return terms
	}
}
