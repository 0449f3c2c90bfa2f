package predict

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/calibration"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/pruning"
	"taxon/internal/ui/progress"
)

// calibrated is a model of animals whose probabilities are exp(score) over their sum, or of several labels
// 1/(1+exp(-score)).
func calibrated(t *testing.T, positives int64, c calibration.Calibration) string {
	t.Helper()
	dir := modeltest.Animals(t, positives)
	c.Slope, c.Joint = 1, positives == 10
	if _, err := model.AddCalibration(dir, &c, 1, 1); err != nil {
		t.Fatal(err)
	}
	return dir
}

func lines(t *testing.T, o Options, rows string) ([]string, *Report) {
	t.Helper()
	var b bytes.Buffer
	o.Out, o.Stdout, o.Input = fs.Stdin, &b, Input{Path: fs.Stdin, Files: fs.Local{In: strings.NewReader(rows)}}
	r, err := Run(t.Context(), o, progress.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), r
}

// The scores of the row 2:2 7:4 are animal 3, cat 2, dog 3.25 and car -5: as sums, animal and its two kinds have
// all but nothing of the probability.
func TestMinProbability(t *testing.T) {
	dir := calibrated(t, 10, calibration.Calibration{Kind: calibration.Temperature})
	total := math.Exp(3) + math.Exp(2) + math.Exp(3.25) + math.Exp(-5)
	dog, animal := math.Exp(3.25)/total, 1-math.Exp(-5)/total
	for _, c := range []struct {
		least float64
		want  string
		p     float64
	}{{0.3, "dog", dog}, {dog + 0.01, "animal", animal}, {0.99, "animal", animal}, {0.9999, "", 0}} {
		got, r := lines(t, Options{Model: dir, MinProbability: c.least, Scores: true}, "cat 2:2 7:4\n")
		name, number, _ := strings.Cut(got[0], ":")
		var p float64
		if number != "" && json.Unmarshal([]byte(number), &p) != nil || name != c.want || math.Abs(p-c.p) > 1e-12 ||
			(*r.Abstained == 1) != (c.want == "") {
			t.Errorf("at least %g: %q, abstained %d; want %s:%g", c.least, got, *r.Abstained, c.want, c.p)
		}
	}
	// jsonl has the path of a class that no instance is given either.
	if got, _ := lines(t, Options{Model: dir, MinProbability: 0.9, Format: "jsonl"},
		"cat 2:2 7:4\n"); !strings.Contains(got[0], `"label":"animal"`) || !strings.Contains(got[0], `"path":"animal"`) {
		t.Error(got)
	}
	plain := modeltest.Animals(t, 10)
	if _, err := Run(t.Context(), Options{Model: plain, MinProbability: 0.5, Out: fs.Stdin, Input: Input{Path: fs.Stdin}},
		progress.Discard{}); err == nil || !strings.Contains(err.Error(), "‹calibrate") {
		t.Errorf("a model without probabilities: %v", err)
	}
	if _, err := Run(t.Context(), Options{Model: dir, MinProbability: 0.5, Top: 3, Out: fs.Stdin,
		Input: Input{Path: fs.Stdin}}, progress.Discard{}); err == nil || !strings.Contains(err.Error(),
		"‹min-probability› and ‹top=3› exclude each other") {
		t.Errorf("with ‹top›: %v", err)
	}
}

// Of several labels all deepest classes that are sure; those below one, together, by 1 - product of (1 - p).
func TestMinProbabilityOfSets(t *testing.T) {
	dir := calibrated(t, 15, calibration.Calibration{Kind: calibration.Temperature})
	sigma := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	any := 1 - (1-sigma(3))*(1-sigma(2))*(1-sigma(3.25))
	for least, want := range map[float64]string{0.85: "dog,cat", sigma(2) + 1e-6: "dog", any - 1e-6: "animal",
		any + 1e-6: ""} {
		if got, _ := lines(t, Options{Model: dir, MinProbability: least}, "cat 2:2 7:4\n"); got[0] != want {
			t.Errorf("at least %g: %q, want %q", least, got[0], want)
		}
	}
}

// Calibrated probabilities are the same of whole and of pruned models, and by whatever is asked for.
func TestCalibratedAlike(t *testing.T) {
	dir := calibrated(t, 10, calibration.Calibration{Kind: calibration.Isotonic, X: []float64{0.1, 0.4, 0.6},
		Y: []float64{0.05, 0.5, 0.9}})
	want, _ := lines(t, Options{Model: dir, Scores: true, Top: 4}, "cat 2:2 7:4\ncar 7:1\n")
	sum := 0.0
	for i, part := range strings.Split(want[0], ",") {
		_, number, _ := strings.Cut(part, ":")
		var p float64
		if err := json.Unmarshal([]byte(number), &p); err != nil {
			t.Fatal(err)
		}
		if sum += p; i == 0 {
			if got, _ := lines(t, Options{Model: dir, Scores: true, Top: 1}, "cat 2:2 7:4\n"); got[0] != part {
				t.Errorf("the best alone: %s, among all %s", got[0], part)
			}
		}
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("%s sums to %g", want[0], sum)
	}
	m, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	pruned := filepath.Join(t.TempDir(), "pruned")
	if _, err := pruning.Write(t.Context(), m, pruned, pruning.Options{Threshold: 1e-9}, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(pruned, "calibration.json")); err != nil {
		t.Error(err)
	}
	if got, _ := lines(t, Options{Model: pruned, Scores: true, Top: 4}, "cat 2:2 7:4\ncar 7:1\n"); strings.Join(got,
		"\n") != strings.Join(want, "\n") {
		t.Errorf("pruned: %s, whole: %s", got, want)
	}
}
