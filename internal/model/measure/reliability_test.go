package measure

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestReliability: the bins give the calibration error back, and the picture is XML that has a
// bar for each bin that isn't empty, a title with the error, and every bin in words.
func TestReliability(t *testing.T) {
	for _, several := range []bool{false, true} {
		r := rand.New(rand.NewPCG(7, 11))
		a, err := NewAccumulator(Options{Classes: []string{"a", "b", "c"}})
		if err != nil {
			t.Fatal(err)
		}
		probabilities := int64(0)
		for range 300 {
			p := []float64{r.Float64(), 0.1 * r.Float64(), 0.1 * r.Float64()}
			truth := []int32{int32(r.IntN(3))}
			if several {
				truth = []int32{0, 1}
			}
			a.AddProbabilities(truth, []int32{0, 1, 2}, p)
			probabilities++
			if several {
				probabilities += 2
			}
		}
		got := a.Result()
		error, count, bars := 0.0, int64(0), 0
		for i, b := range got.Reliability {
			if math.Abs(b.Low-float64(i)/15) > 1e-15 || math.Abs(b.High-float64(i+1)/15) > 1e-15 ||
				(b.Count == 0) != (b.Accuracy == nil) || (b.Count == 0) != (b.Confidence == nil) {
				t.Errorf("bin %d: %+v", i, b)
			}
			if b.Count > 0 {
				if *b.Confidence < b.Low || *b.Confidence > b.High {
					t.Errorf("bin %d: mean %g", i, *b.Confidence)
				}
				error += float64(b.Count) * math.Abs(*b.Confidence-*b.Accuracy)
				bars++
			}
			count += b.Count
		}
		if len(got.Reliability) != 15 || count != probabilities || math.Abs(error/float64(count)-got.ECE) > 1e-12 {
			t.Errorf("%d bins of %d probabilities, error %g, want %g", len(got.Reliability), count, error/float64(count),
				got.ECE)
		}
		var picture strings.Builder
		if err := got.WriteReliability(&picture, "a<b & c"); err != nil {
			t.Fatal(err)
		}
		rects, texts := elements(t, picture.String())
		if rects != bars+1 { // and the ground
			t.Errorf("%d bars, want %d", rects-1, bars)
		}
		for _, want := range []string{fmt.Sprintf("Reliability diagram, ECE %.4f", got.ECE), "a<b & c"} {
			if !slices.ContainsFunc(texts, func(s string) bool { return strings.HasPrefix(s, want) }) {
				t.Errorf("no text %q in %q", want, texts)
			}
		}
		for _, b := range got.Reliability {
			if b.Count > 0 && strings.Count(picture.String(), b.describe()) != 2 { // in the description and at its bar
				t.Errorf("%s: not in the description", b.describe())
			}
		}
	}
}

// elements counts the rectangles of an SVG document and lists its texts.
func elements(t *testing.T, document string) (rects int, texts []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return rects, texts
		}
		if err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		switch x := token.(type) {
		case xml.StartElement:
			if x.Name.Local == "rect" {
				rects++
			}
		case xml.CharData:
			texts = append(texts, strings.TrimSpace(string(x)))
		}
	}
}
