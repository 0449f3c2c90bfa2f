package text

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Options say how a text becomes terms. A data set and a model keep them. The zero value takes
// single words.
type Options struct {
	// Features are the kinds of terms joined by +, such as words+chars, each with a weight behind a
	// colon unless it is 1. "" stands for words.
	Features string `json:"features,omitempty"`
	// Chars are the lengths of the n-grams of characters. The zero value stands for 3 to 5.
	Chars Range `json:"chars,omitzero"`
	// Languages are those of the stems, as codes of ISO 639-1 joined by commas. A word has a stem in
	// each.
	Languages Languages `json:"languages,omitempty"`
	// Ngrams is the greatest number of words, or stems, that form a term together. 0 stands for 1.
	Ngrams int `json:"ngrams,omitempty"`
}

// Bounds of Options.
const (
	MaxNgrams = 5
	MaxChars  = 10
)

// Range is an inclusive range of lengths.
type Range struct{ From, To int }

// DefaultChars are the lengths of n-grams of characters where none are given.
var DefaultChars = Range{3, 5}

// String returns FROM-TO, and nothing for the zero Range.
func (r Range) String() string {
	if r == (Range{}) {
		return ""
	}
	return fmt.Sprintf("%d-%d", r.From, r.To)
}

// Set reads FROM-TO, or one number.
func (r *Range) Set(s string) error {
	from, to, both := strings.Cut(s, "-")
	if !both {
		to = from
	}
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	if errA != nil || errB != nil || a < 1 || b < a || b > MaxChars {
		return fmt.Errorf("must be lengths from 1 to %d, such as %v", MaxChars, DefaultChars)
	}
	*r = Range{a, b}
	return nil
}

// Type names the values in help texts.
func (r *Range) Type() string { return "FROM-TO" }

// MarshalText implements encoding.TextMarshaler.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Range) UnmarshalText(text []byte) error { return r.Set(string(text)) }

// A Part is a kind of terms with its weight: the length of its part of a row beside those of others.
type Part struct {
	Kind   string
	Weight float64
}

// Parts reads Features.
func (o *Options) Parts() ([]Part, error) {
	var out []Part
	for text := range strings.SplitSeq(cmp.Or(o.Features, "words"), "+") {
		name, weight, weighed := strings.Cut(text, ":")
		part := Part{name, 1}
		if weighed {
			var err error
			if part.Weight, err = strconv.ParseFloat(weight, 64); err != nil || !(part.Weight >= 1e-3 && part.Weight <= 1e3) {
				return nil, fmt.Errorf("%s: the weight must be from 0.001 to 1000", text)
			}
		}
		if !slices.Contains(Kinds(), name) {
			return nil, fmt.Errorf("%q: the kinds are %s, joined by +", name, strings.Join(Kinds(), ", "))
		}
		if slices.ContainsFunc(out, func(p Part) bool { return p.Kind == name }) {
			return nil, fmt.Errorf("%s twice", name)
		}
		out = append(out, part)
	}
	return out, nil
}

// Languages are codes of languages, joined by commas. They are the value of a flag that is repeated.
type Languages string

// Set adds codes.
func (l *Languages) Set(s string) error {
	for code := range strings.SplitSeq(s, ",") {
		if stemmers[code] == nil {
			return fmt.Errorf("must be one of %s", strings.Join(Stemmed(), ", "))
		}
		if !slices.Contains(l.List(), code) {
			*l = Languages(strings.Join(append(l.List(), code), ","))
		}
	}
	return nil
}

// String returns the codes, joined by commas.
func (l *Languages) String() string { return string(*l) }

// Type names the values in help texts.
func (l *Languages) Type() string { return "CODE" }

// List returns the codes.
func (l *Languages) List() []string {
	if *l == "" {
		return nil
	}
	return strings.Split(string(*l), ",")
}

// Check returns what is wrong with the options.
func (o *Options) Check() error {
	parts, err := o.Parts()
	if err != nil {
		return fmt.Errorf("‹features=%s›: %w", o.Features, err)
	}
	for _, l := range o.Languages.List() {
		if stemmers[l] == nil {
			return fmt.Errorf("‹language=%s›: there are stems for %s", l, strings.Join(Stemmed(), ", "))
		}
	}
	takes := func(kind string) bool { return slices.ContainsFunc(parts, func(p Part) bool { return p.Kind == kind }) }
	switch {
	case o.Ngrams < 0 || o.Ngrams > MaxNgrams:
		return fmt.Errorf("‹ngrams=%d›: must be from 1 to %d", o.Ngrams, MaxNgrams)
	case o.Ngrams > 1 && !takes("words") && !takes("stems"):
		return fmt.Errorf("‹ngrams=%d› is for ‹features=words› and ‹features=stems›", o.Ngrams)
	case o.Chars != Range{} && !takes("chars"):
		return fmt.Errorf("‹chars=%v› is for ‹features=chars›: add that, or leave it out", o.Chars)
	case takes("stems") && o.Languages == "":
		return fmt.Errorf("‹features=stems› needs ‹language›: %s", strings.Join(Stemmed(), ", "))
	case o.Languages != "" && !takes("stems"):
		return fmt.Errorf("‹language=%s› is for ‹features=stems›: add that, or leave it out", o.Languages)
	}
	return nil
}
