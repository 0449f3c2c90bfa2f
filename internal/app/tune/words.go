package tune

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/train"
	"taxon/internal/data/dataset"
	"taxon/internal/data/text"
	"taxon/internal/fs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// groupText is the group of the text options.
const groupText = "Text"

// textOptions are the options of text data. Each value yields other features of the same rows. A
// document frequency of 1 or more is a number of rows; below 1 it is a share. A max-df of 1 means
// all rows.
var textOptions = []method.Option{
	{Name: featuresOption, Kind: method.Choice, Default: "words", Choices: []string{"words", "stems", "chars",
		"words+chars", "stems+chars"}, Group: groupText, Grid: []string{"words"},
		Help: "text: what makes features: words, chars (n-grams of characters), words+chars, and with ‹language› " +
			"stems, stems+chars"},
	{Name: "ngrams", Kind: method.Int, Default: "1", Range: method.Range{Least: 1, Most: text.MaxNgrams},
		Group: groupText, Grid: []string{"1"}, Ladder: []string{"2"},
		Help: "text: up to `N` words that stand side by side make a feature, too; 2 adds word bigrams"},
	{Name: "stop-words", Kind: method.Choice, Default: dataset.None, Choices: []string{dataset.None, dataset.English},
		Group: groupText, Grid: []string{dataset.None},
		Help: "text: words that make no feature: english, none, both, or those in a FILE"},
	{Name: "min-df", Kind: method.Float, Default: "2", Range: method.Above0, Group: groupText, Grid: []string{"2"},
		Ladder: []string{"1", "3", "5"},
		Help:   "text: features stand in so many instances at least: a `NUMBER`, or a share below 1"},
	{Name: "max-df", Kind: method.Float, Default: "1", Range: method.Above0, Group: groupText, Grid: []string{"1"},
		Ladder: []string{"0.1", "0.3"},
		Help:   "text: features stand in so many instances at most: a `NUMBER` from 2, or a share up to 1"},
}

// TextOptions returns the text options whose values a search may vary.
func TextOptions() []method.Option { return slices.Clone(textOptions) }

// tunable returns the options whose values a search may vary: the text options, then the method's.
func tunable(name string) []method.Option {
	own := slices.DeleteFunc(slices.Clone(registry.Of(name)), func(o method.Option) bool { return len(o.Grid) == 0 })
	return slices.Concat(textOptions, own)
}

// tunable returns the options that a search may vary on these data. The text options are among them
// only for text.
func (g *Grid) tunable(name string) []method.Option {
	return slices.DeleteFunc(tunable(name), func(o method.Option) bool { return o.Group == groupText && !g.Text })
}

// find returns one of the tunable options by name, or nil if there is none.
func (g *Grid) find(name, option string) *method.Option {
	all := g.tunable(name)
	if i := slices.IndexFunc(all, func(o method.Option) bool { return o.Name == option }); i >= 0 {
		return &all[i]
	}
	return nil
}

// readsText reports whether features are made from text here, so that they can be made differently.
func (o *Options) readsText() bool {
	return (o.Train.Text || len(o.Train.Table.Text) > 0) && !train.Ingested(o.Train.Data)
}

// checkText returns an error if the values of the text options are invalid.
func (o *Options) checkText() error {
	w := o.Train.Words
	o.Grid.Stems = w.Languages != ""
	kinds := cmp.Or(strings.Join(o.Grid.Values[featuresOption], "+"), "words+chars+stems")
	switch {
	case strings.Contains(kinds, "stems") && w.Languages == "" && len(o.Grid.Values[featuresOption]) > 0:
		return option.Errorf("tune: ‹features› of stems need ‹language›: %s", strings.Join(text.Stemmed(), ", "))
	case !strings.Contains(kinds, "stems") && w.Languages != "":
		return option.Errorf("tune: ‹language=%s› is for ‹features› of stems: add them, or leave it out", w.Languages)
	case !strings.Contains(kinds, "chars") && w.Chars != text.Range{}:
		return option.Errorf("tune: ‹chars=%v› is for ‹features› of chars: add them, or leave it out", w.Chars)
	}
	if w.Options = (text.Options{}); w.Check(true) != nil {
		return option.Errorf("tune: %w", w.Check(true))
	} else if w.StopWords != "" { // a file is no value of the option
		o.Grid.Values["stop-words"] = []string{dataset.None}
	}
	for _, t := range textOptions {
		values := o.Grid.Values[t.Name]
		if len(values) > 0 && train.Ingested(o.Train.Data) {
			return option.Errorf("tune: ‹%s›: the data are ingested already: give the text itself, for the "+
				"search to try other words", t.Name)
		}
		if len(values) > 0 && !o.readsText() {
			return option.Errorf("tune: ‹%s› is for ‹text›: add that, or leave it out", t.Name)
		}
		for _, v := range values {
			if _, err := t.Parse(v); err != nil {
				return option.Errorf("tune: ‹%s=%s›: %w", t.Name, format.QuoteIfNeeded(v), err)
			}
			if x, _ := strconv.ParseFloat(v, 64); x > 1 && x != math.Trunc(x) {
				return option.Errorf("tune: ‹%s=%s›: must be a whole number of instances, or a share of all up to 1", t.Name, v)
			}
		}
	}
	return nil
}

// words returns the text options of a point. Options that the point lacks have their defaults.
func (o *Options) words(p Point) dataset.Words {
	w := o.Train.Words
	bound := func(b *dataset.Bound, option string, share func(x float64) bool) {
		x := p.number(option, 0)
		if t := textOptions[slices.IndexFunc(textOptions, func(t method.Option) bool { return t.Name == option })]; x == 0 ||
			p.Values[option] == t.Default {
			return
		}
		number := strconv.FormatFloat(x, 'f', -1, 64)
		if share(x) && !strings.Contains(number, ".") {
			number += ".0"
		}
		_ = b.Set(number) // checkText has looked at it
	}
	kinds := cmp.Or(p.Values[featuresOption], "words")
	if w.Features = kinds; kinds == "words" {
		w.Features = ""
	}
	if !strings.Contains(kinds, "chars") {
		w.Chars = text.Range{}
	}
	if !strings.Contains(kinds, "stems") {
		w.Languages = ""
	}
	if n := p.number("ngrams", 1); n > 1 && kinds != "chars" {
		w.Ngrams = int(n)
	}
	if v := p.Values["stop-words"]; v != "" && v != dataset.None {
		w.StopWords = v
	}
	bound(&w.MinDF, "min-df", func(x float64) bool { return x < 1 })
	bound(&w.MaxDF, "max-df", func(x float64) bool { return x <= 1 })
	return w
}

// trained returns the options of a point's trainings outside the job's options.
func (o *Options) trained(p Point) train.Options {
	t := o.Train
	t.Words = o.words(p)
	return t
}

// features returns the whole data with the features of a point. It computes them unless an earlier
// point had the same. It must be called from one goroutine.
func (s *search) features(ctx context.Context, p Point) (*train.Training, error) {
	if !s.o.Grid.Text {
		return s.whole, nil
	}
	words := s.o.words(p)
	if t := s.vectors[words]; t != nil {
		return t, nil
	}
	began := s.clock.now()
	o := s.o.trained(p)
	o.Said, o.Job = nil, s.o.job(p)
	scratch := s.work.Join("words-" + strconv.Itoa(len(s.vectors)))
	if err := fs.MkdirAll(scratch); err != nil {
		return nil, err
	}
	t, err := train.Open(ctx, &o, progress.Discard{}, scratch)
	if err != nil {
		return nil, err
	}
	if s.clock.limit > 0 {
		s.reading = max(s.reading, s.clock.now().Sub(began).Seconds())
	}
	for _, known := range s.vectors {
		if known.Set.Fingerprint == t.Set.Fingerprint {
			t.Close()
			s.vectors[words] = known
			return known, nil
		}
	}
	if s.o.Cluster == nil {
		if _, err := t.Fit(1); err != nil {
			t.Close()
			return nil, err
		}
		s.rememberLargest(t)
		if err := s.fit(); err != nil {
			t.Close()
			return nil, err
		}
	}
	s.vectors[words] = t
	return t, nil
}

// vectorsOf returns the result of an earlier call of features, or nil.
func (s *search) vectorsOf(p Point) *train.Training {
	if !s.o.Grid.Text {
		return s.whole
	}
	return s.vectors[s.o.words(p)]
}

// repeats reports whether two points differ only in text options that yield the same features.
func (s *search) repeats(p, of Point) bool {
	without := func(p Point) registry.Values {
		values := maps.Clone(p.Values)
		maps.DeleteFunc(values, func(name, _ string) bool {
			return slices.ContainsFunc(textOptions, func(t method.Option) bool { return t.Name == name })
		})
		return values
	}
	return p.Method == of.Method && s.vectorsOf(p) == s.vectorsOf(of) && maps.Equal(without(p), without(of))
}

// closeFeatures closes the data that features opened.
func (s *search) closeFeatures() {
	closed := map[*train.Training]bool{}
	for _, t := range s.vectors {
		if !closed[t] {
			closed[t] = true
			t.Close()
		}
	}
}

// bigramSize is the assumed number of nonzeros with word bigrams, relative to words alone, before
// bigrams are computed.
const bigramSize = 2.5

// size returns the cost of a training on a point's features, divided by the cost of one on the
// features with which the search started.
func (s *search) size(p Point) float64 {
	switch t := s.vectorsOf(p); {
	case t != nil:
		return float64(max(t.Set.Matrix.NNZ, 1)) / float64(max(s.whole.Set.Matrix.NNZ, 1))
	case p.number("ngrams", 1) > 1:
		return bigramSize
	}
	return 1
}
