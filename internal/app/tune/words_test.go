package tune

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taxon/coordinator/method/registry"
	"taxon/internal/model"
	"taxon/internal/ui/progress"
)

// pairs is a search on texts whose class is which of two words stands beside which: a word alone tells
// nothing.
func pairs(t *testing.T) *Options {
	t.Helper()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	var rows strings.Builder
	for range 300 {
		class, first, second := "plain", "red", "blue"
		if r.IntN(2) == 0 {
			class, first, second = "swapped", second, first
		}
		fmt.Fprintf(&rows, "%s\tthe %s dog saw w%d and the %s cat\n", class, first, r.IntN(40), second)
	}
	o := Defaults()
	o.Train.Data, o.Train.Text, o.Train.Out = []string{filepath.Join(dir, "train.txt")}, true, filepath.Join(dir, "tuned")
	o.Methods, o.Folds = []string{"bsvm"}, 3
	if err := os.WriteFile(o.Train.Data[0], []byte(rows.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return &o
}

// TestWords: a search on text finds out by itself that pairs of words tell the classes apart, says so in
// its job file, and trains the model on them; given one value it keeps to that; and a list makes a grid.
func TestWords(t *testing.T) {
	o := pairs(t)
	o.Time = 2 * time.Minute
	for name, only := range map[string]string{"C": "1", "loss": "hinge", "bias": "1", "positive-weight": "1",
		"prior-shift": "0", "families": "none"} {
		o.Grid.Values[name] = []string{only} // but for the options of texts
	}
	r := run(t, o, "")
	job, err := os.ReadFile(r.JobFile)
	if err != nil {
		t.Fatal(err)
	}
	if r.Options.Values["ngrams"] != "2" || r.Points[r.Best].Value < 0.95 || !strings.Contains(string(job),
		"\nngrams: 2\n") {
		t.Errorf("chosen: %s, %+v\n%s", r.Options.Name(), r.Points[r.Best].Figures, job)
	}
	m, err := model.Open(r.Model)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if words := strings.Join(m.Text.Vocabulary, ","); !strings.Contains(words, "red dog") {
		t.Errorf("the model's words: %s", words)
	}
	again := run(t, o, "")
	if len(again.Points) != len(r.Points) || !again.Options.Equal(r.Options) {
		t.Errorf("run again: %s of %d points, before %s of %d", again.Options.Name(), len(again.Points), r.Options.Name(),
			len(r.Points))
	}
	o.Grid.Values["ngrams"], o.NoTrain = []string{"1"}, true
	for _, p := range run(t, o, "-words").Points {
		if p.Values["ngrams"] != "1" {
			t.Errorf("tried %s", p.Name())
		}
	}
	o.Grid.Values = map[string][]string{"ngrams": {"1", "2"}, "min-df": {"2", "3"}, "C": {"1"}, "loss": {"hinge"}}
	o.Time, o.NoTrain = 0, true
	grid := run(t, o, "-grid")
	values := map[string]float64{}
	for _, p := range grid.Points {
		values[p.Values["ngrams"]+" "+p.Values["min-df"]] = p.Value
	}
	if len(values) != 4 || !(values["2 2"] > values["1 2"]+0.2) || !(values["2 2"] > values["2 3"]-0.1) {
		t.Errorf("by ngrams and min-df: %v", values)
	}
}

// TestWordsElsewhere: options of texts are refused where there are none.
func TestWordsElsewhere(t *testing.T) {
	o := uneven(t, "1")
	o.Grid.Values["ngrams"] = []string{"2"}
	if _, err := Run(t.Context(), o, progress.Discard{}); err == nil || !strings.Contains(err.Error(),
		"‹ngrams› is for ‹text›") {
		t.Error(err)
	}
	o = pairs(t)
	o.Grid.Values["min-df"] = []string{"2.5"}
	if _, err := Run(t.Context(), o, progress.Discard{}); err == nil || !strings.Contains(err.Error(), "‹min-df=2.5›") {
		t.Error(err)
	}
	w := o.words(Point{Values: registry.Values{"ngrams": "2", "stop-words": "english", "min-df": "0.01", "max-df": "500"}})
	if got := fmt.Sprint(w.Flags()); got != "[[ngrams 2] [stop-words english] [min-df 0.01] [max-df 500]]" {
		t.Error(got)
	}
	w = o.words(Point{Values: registry.Values{"ngrams": "1", "stop-words": "none", "min-df": "2", "max-df": "1"}})
	if len(w.Flags()) > 0 {
		t.Error(w.Flags())
	}
}

// TestFeaturesFirst: of words that are inflected anew in each text, the search finds n-grams of characters
// before all else, and says what words and both would have given. Stems are tried if their language is known.
func TestFeaturesFirst(t *testing.T) {
	o := pairs(t)
	r := rand.New(rand.NewPCG(3, 4))
	var rows strings.Builder
	endings := []string{"ssa", "sta", "lla", "lta", "lle", "na", "ksi", "tta", "neen", "mme", "nne", "nsa", "kin", "han"}
	for range 300 {
		class, stem := "house", "talo"
		if r.IntN(2) == 0 {
			class, stem = "street", "katu"
		}
		fmt.Fprintf(&rows, "%s\t%c%s%s%d w%d\n", class, 'a'+r.IntN(26), stem, endings[r.IntN(len(endings))], r.IntN(40),
			r.IntN(40))
	}
	if err := os.WriteFile(o.Train.Data[0], []byte(rows.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	o.Time, o.NoTrain = 0, true
	for name, only := range map[string]string{"loss": "hinge", "bias": "1", "positive-weight": "1",
		"prior-shift": "0", "families": "none", "min-df": "2", "max-df": "1", "ngrams": "1", "stop-words": "none"} {
		o.Grid.Values[name] = []string{only}
	}
	r1 := run(t, o, "")
	worth := map[string]float64{}
	for _, e := range r1.Effects {
		if e.Option == "features" {
			worth[e.Value] = e.Difference
		}
	}
	if kind := r1.Options.Values["features"]; kind != "chars" && kind != "words+chars" || len(worth) < 2 ||
		!(worth["words"] < -0.2) {
		t.Errorf("chosen: %s; others %v", r1.Options.Name(), worth)
	}
	for _, p := range r1.Points {
		if p.C() != 1 && p.Values["features"] != r1.Options.Values["features"] {
			t.Errorf("tried %s before the features were chosen", p.Name())
		}
	}
	if !strings.Contains(strings.Join(r1.Explanation(), "\n"), "features words: -") {
		t.Errorf("the outcome does not say what words would have given: %q", r1.Explanation())
	}
	o.Train.Words.Languages = "fi"
	found := false
	for _, e := range run(t, o, "-fi").Effects {
		found = found || e.Option == "features" && e.Value == "stems"
	}
	if !found {
		t.Error("with a language stems are not tried")
	}
	o.Grid.Values["features"] = []string{"chars"}
	if _, err := Run(t.Context(), o, progress.Discard{}); err == nil || !strings.Contains(err.Error(),
		"‹language=fi›") {
		t.Errorf("a language without stems: %v", err)
	}
}
