package text

import (
	"slices"
	"strings"
)

// A kind is a kind of terms. Terms of different kinds never are the same string: each begins with
// the kind's mark, which begins no word.
type kind struct {
	name, mark string
	rank       int
	// joins says that terms are formed of several words, too.
	joins bool
	// stops says that stop words are left out.
	stops bool
	// of returns the function that appends a word's terms, without the mark. whole is false for a
	// pair of characters cut out of a script without blanks.
	of func(o *Options) func(terms []string, word string, whole bool) []string
}

var kinds []kind

// register adds a kind of terms. Of two kinds the one of the smaller rank comes first.
func register(k kind) {
	kinds = append(kinds, k)
	slices.SortFunc(kinds, func(a, b kind) int { return a.rank - b.rank })
}

// Kinds returns the names of the kinds of terms.
func Kinds() []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.name)
	}
	return out
}

// KindOf returns the name of a term's kind.
func KindOf(term string) string {
	for _, k := range kinds {
		if k.mark != "" && strings.HasPrefix(term, k.mark) {
			return k.name
		}
	}
	return "words"
}

// memoBytes bounds the memory of the words that an Analyser remembers.
const memoBytes = 64 << 20

// A Word has the terms of one word, or of several words together.
type Word struct {
	Terms []string
	// IDs are the caller's numbers for the terms. The Analyser keeps them with the word.
	IDs []uint32
	// joined has, for each kind that joins words, this word's part of a longer term. It is empty
	// where the word is left out.
	joined []string
}

// Analyser turns texts into terms. It remembers the terms of words that it has seen, so one
// Analyser serves one goroutine.
type Analyser struct {
	blocks []block
	ngrams int
	stop   func(word string) bool
	memo   map[string]*Word
	taken  int
	split  splitter
	recent []*Word // the last words, back to the last stop word
	key    []byte
}

// block is a kind of terms with its options applied.
type block struct {
	kind
	terms func(terms []string, word string, whole bool) []string
}

// New returns an Analyser by options that Check accepts. stop reports whether a normalised word is
// left out of the terms of kind words, of which it separates its neighbours; a nil stop leaves none
// out.
func New(o Options, stop func(word string) bool) *Analyser {
	a := &Analyser{ngrams: max(1, o.Ngrams), stop: stop, memo: map[string]*Word{}}
	parts, _ := o.Parts()
	for _, p := range parts {
		k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == p.Kind })]
		a.blocks = append(a.blocks, block{k, k.of(&o)})
	}
	return a
}

// Each calls f with each word of the text, in order, and with each run of words that forms terms.
func (a *Analyser) Each(text []byte, f func(w *Word)) {
	a.recent = a.recent[:0]
	a.split.each(text, func(raw []byte, whole bool) {
		w := a.word(raw, whole)
		if len(w.Terms) > 0 {
			f(w)
		}
		if a.ngrams == 1 {
			return
		}
		if len(a.recent) == a.ngrams {
			a.recent = slices.Delete(a.recent, 0, 1)
		}
		a.recent = append(a.recent, w)
		for from := len(a.recent) - 2; from >= 0; from-- {
			if w := a.join(a.recent[from:]); len(w.Terms) > 0 {
				f(w)
			}
		}
	})
}

// word returns the terms of a word as it stands in the text.
func (a *Analyser) word(raw []byte, whole bool) *Word {
	if w := a.memo[string(raw)]; w != nil {
		return w
	}
	w := &Word{}
	word := normal(raw)
	stop := a.stop != nil && a.stop(word)
	for _, b := range a.blocks {
		from := len(w.Terms)
		if word != "" && !(stop && b.stops) {
			w.Terms = b.terms(w.Terms, word, whole)
		}
		for i := range w.Terms[from:] {
			w.Terms[from+i] = b.mark + w.Terms[from+i]
		}
		if b.joins && a.ngrams > 1 {
			part := ""
			if len(w.Terms) > from {
				part = w.Terms[from][len(b.mark):]
			}
			w.joined = append(w.joined, part)
		}
	}
	return a.keep(string(raw), w)
}

// join returns the terms that the words form together.
func (a *Analyser) join(words []*Word) *Word {
	n := 0
	a.key = a.key[:0]
	for _, b := range a.blocks {
		if !b.joins {
			continue
		}
		from := len(a.key)
		a.key = append(append(a.key, '\t'), b.mark...)
		for i, w := range words {
			if w.joined[n] == "" {
				a.key = a.key[:from]
				break
			}
			if i > 0 {
				a.key = append(a.key, ' ')
			}
			a.key = append(a.key, w.joined[n]...)
		}
		n++
	}
	if known := a.memo[string(a.key)]; known != nil {
		return known
	}
	w := &Word{}
	if len(a.key) > 0 {
		w.Terms = strings.Split(string(a.key[1:]), "\t")
	}
	return a.keep(string(a.key), w)
}

// keep remembers a word, and forgets all others once they take more than memoBytes.
func (a *Analyser) keep(key string, w *Word) *Word {
	size := len(key) + 160
	for _, t := range w.Terms {
		size += len(t) + 24
	}
	if a.taken += size; a.taken > memoBytes {
		clear(a.memo)
		a.taken = size
	}
	a.memo[key] = w
	return w
}

// Words returns the words of a text, normalised.
func Words(text []byte) (out []string) {
	New(Options{}, nil).Each(text, func(w *Word) { out = append(out, w.Terms...) })
	return out
}
