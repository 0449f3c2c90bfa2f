package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"taxon/internal/model/explain"
)

// Scores of animals by hand: row 2, x7 = 4 and x2 = 2, is a dog: 3.25.
func TestExplain(t *testing.T) {
	vars := map[string]string{"S": animals(t, 10), "DATA": writeText(t, "test.svm", animalRows)}
	code, stdout, stderr := runTaxon(t, "", "explain --model $S --data $DATA --row 2", vars)
	want := `dog  +3.250
  (above all)  +1.000  (bias -1.000)
      for      feature 7 +2.000
    animal  +2.000
        for      feature 2 +3.000
        against  feature 7 -1.000
      dog  +0.250  (bias +0.250)
best classes
  +3.250  dog
  +3.000  animal
  +2.000  cat
  -5.000  car
`
	if code != 0 || stdout != want {
		t.Errorf("exit %d, %s\n%s\nwant\n%s", code, stderr, stdout, want)
	}
	code, stdout, _ = runTaxon(t, animalRows, "explain --model $S --data - --label car --top 2 --json", vars)
	var e explain.Explanation
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s", code, err, stdout)
	}
	if e.Label != "car" || e.Score != 1 || e.Place != 1 || len(e.Path) != 2 || len(e.Best) != 2 ||
		e.Path[1].Against[0] != (explain.Term{Feature: 7, Value: 1, Gain: -2.5}) {
		t.Errorf("%+v", e)
	}
}

func TestExplainMistakes(t *testing.T) {
	vars := map[string]string{"S": animals(t, 10), "DATA": writeText(t, "test.svm", animalRows)}
	for line, want := range map[string]string{
		"explain --data $DATA":                          "--model",
		"explain --model $S":                            "give an instance",
		"explain --model $S --data $DATA --text dog":    "exclude each other",
		"explain --model $S --data $DATA --text":        "trained on feature vectors",
		"explain --model $S --text":                     "give an instance",
		"explain --model $S dog":                        "as in --text 'the small dog barked'",
		"explain --model $S --text dog":                 "trained on feature vectors",
		"explain --model $S --data $DATA --row 6":       "has 5 instances: no --row 6",
		"explain --model $S --data $DATA --row 0":       "--row 0",
		"explain --model $S --data $DATA --label horse": "no such class",
		"explain --model $S/none --data $DATA":          "no such model",
		"explain --model $S --data $DATA/none":          "test.svm/none",
	} {
		code, stdout, stderr := runTaxon(t, "", line, vars)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q, want %q", line, code, stderr, want)
		}
	}
}

// A text model explains a text by its words.
func TestExplainText(t *testing.T) {
	dir := t.TempDir() + "/m"
	data := writeText(t, "train.txt", strings.Repeat("dog\tit barks and runs\ncat\tit meows and purrs\n", 4)+
		"dog\tbarks it does\ncat\tdoes it purrs\n")
	vars := map[string]string{"M": dir, "DATA": data}
	if code, _, stderr := runTaxon(t, "", "train --data $DATA --text --out $M --quiet", vars); code != 0 {
		t.Fatal(stderr)
	}
	code, stdout, stderr := runTaxon(t, "", "explain --model $M --text BARKS --json", vars)
	var e explain.Explanation
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s", code, err, stderr)
	}
	last := e.Path[len(e.Path)-1]
	if e.Label != "dog" || e.Known != 1 || len(last.For) != 1 || last.For[0].Word != "barks" {
		t.Errorf("%+v", e)
	}
	if code, _, stderr := runTaxon(t, "", "explain --model $M --text zzz", vars); code != 0 || !strings.Contains(stderr,
		"its scores are those of the bias alone") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	code, stdout, stderr = runTaxon(t, "", "explain --model $M --json --text barks meows", vars)
	var both []explain.Explanation
	if err := json.Unmarshal([]byte(stdout), &both); err != nil || code != 0 || len(both) != 2 || both[0].Label != "dog" ||
		both[1].Label != "cat" {
		t.Errorf("two texts: exit %d, %v, %s: %+v", code, err, stderr, both)
	}
	code, stdout, stderr = runTaxon(t, "", "explain --model $M --json --text --data $DATA --row 2", vars)
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || code != 0 || e.Label != "cat" {
		t.Errorf("a line of texts: exit %d, %v, %s: %+v", code, err, stderr, e)
	}
}

// TestExplainPrecisions: levels of an hblr model add up to the score; what is expected of a feature
// is a/b of its prior, worked out from the data: two leaves below r, of 4 and 2 of 6 rows.
func TestExplainPrecisions(t *testing.T) {
	data, tree := "a 1:1 2:1\na 1:2\na 1:1 3:1\na 2:2 1:1\nb 3:1\nb 3:2 2:1\n", "r a\nr b\n"
	vars := map[string]string{"D": writeText(t, "train.svm", data), "T": writeText(t, "tree.txt", tree), "M": t.TempDir() +
		"/m"}
	for method, want := range map[string]string{"hblr-m1": "children's weights within", "hblr-m2": "(expected)",
		"hblr-m3": "weights within"} {
		vars["M"] += "m"
		if code, _, stderr := runTaxon(t, "", "train --data $D --hierarchy $T --method "+method+
			" --x tolerance=1e-10 --out $M --quiet", vars); code != 0 {
			t.Fatal(stderr)
		}
		code, stdout, stderr := runTaxon(t, "", "explain --model $M --data $D --row 1", vars)
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit %d, %s%s, want %q", method, code, stdout, stderr, want)
		}
		_, stdout, _ = runTaxon(t, "", "explain --model $M --data $D --row 1 --json", vars)
		var e explain.Explanation
		if err := json.Unmarshal([]byte(stdout), &e); err != nil || len(e.Path) != 2 ||
			math.Abs(e.Path[0].Gain+e.Path[1].Gain-e.Best[0].Score) > 1e-9 {
			t.Fatalf("%s: %v: %s", method, err, stdout)
		}
		if method != "hblr-m2" {
			continue
		}
		traits := append(e.Path[0].Shared, e.Path[0].Apart...)
		for _, x := range traits {
			squares := map[uint32]float64{0: 6, 1: 7, 2: 6, 3: 6}[x.Feature] // rows 1 to 6, bias 1
			if prior := 2 / (2 / (4. / 6 * 2 / 6 * squares)); math.Abs(x.Expected/prior-1) > 1e-5 {
				t.Errorf("feature %d: %g expected, the prior's mean is %g", x.Feature, x.Expected, prior)
			}
		}
		if len(traits) != 3 { // features 1 and 2, and the bias
			t.Errorf("%+v", e.Path[0])
		}
	}
}
