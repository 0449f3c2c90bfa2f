package explain

import (
	"strings"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/predict"
	"taxon/internal/ui/progress"
)

// The second row, x7 = 4 and x2 = 2, is a dog by 3.25, and no car by -5.
func TestRun(t *testing.T) {
	o := Options{Model: modeltest.Animals(t, 10), Row: 2, Top: 2, Words: 1}
	for label, want := range map[string]Explanation{
		"":    {Label: "dog", Score: 3.25, Place: 1},
		"car": {Label: "car", Score: -5},
	} {
		o.Label = label
		o.Data = predict.Input{Path: fs.Stdin, Files: fs.Local{In: strings.NewReader("car 7:1\ncat 2:2 7:4\n")}}
		all, err := Run(t.Context(), o, progress.Discard{})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		e := all[0]
		if e.Label != want.Label || e.Score != want.Score || e.Place != want.Place || len(e.Best) != 2 || e.Known != 2 {
			t.Errorf("%s: %+v", label, e)
		}
		sum := 0.0
		for _, l := range e.Path {
			sum += l.Gain
			if len(l.For) > 1 || len(l.Against) > 1 {
				t.Errorf("more than one word of a side: %+v", l)
			}
		}
		if sum != e.Score {
			t.Errorf("%s: the levels give %g of %g", label, sum, e.Score)
		}
	}
}

func TestMistakes(t *testing.T) {
	o := Options{Model: modeltest.Animals(t, 10), Row: 1, Top: 1}
	for want, change := range map[string]func(*Options){
		"give an instance":   func(o *Options) {},
		"exclude each other": func(o *Options) { o.Texts, o.Data.Path = []string{"a"}, "x" },
		"a text is empty":    func(o *Options) { o.Texts, o.Data.Text = []string{" "}, true },
		"feature vectors":    func(o *Options) { o.Texts, o.Data.Text = []string{"a"}, true },
		"no --row 2": func(o *Options) {
			o.Row, o.Data = 2, predict.Input{Path: fs.Stdin, Files: fs.Local{In: strings.NewReader("car 7:1\n")}}
		},
		"has no such class": func(o *Options) {
			o.Label, o.Data = "horse", predict.Input{Path: fs.Stdin, Files: fs.Local{In: strings.NewReader("car 7:1\n")}}
		},
	} {
		changed := o
		change(&changed)
		if _, err := Run(t.Context(), changed, progress.Discard{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
