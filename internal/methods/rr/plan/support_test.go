package plan

import (
	"math"
	"slices"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
)

// described returns a flat job on rows that contain each word with the probability in shares, and
// whose classes have `positives` positives each.
func described(rows, classes, positives int, shares []float64) *taxonv1.JobSpec {
	d := &taxonv1.Data{Instances: uint64(rows), Features: uint64(len(shares))}
	for range classes {
		d.Labels = append(d.Labels, string(rune('a'+len(d.Labels)%26))+string(rune('a'+len(d.Labels)/26)))
		d.LabelInstances = append(d.LabelInstances, uint32(positives))
	}
	sum := 0.0
	for _, s := range shares {
		sum += s * float64(rows)
		d.FeatureCountsLog = append(d.FeatureCountsLog, uint32(math.Round(sum)))
	}
	d.Nonzeros = uint64(math.Round(sum))
	return &taxonv1.JobSpec{Options: methodtest.Options("bsvm", "loss", "hinge", "c", 1, "bias", 1), Data: d}
}

func firstOf(t *testing.T, spec *taxonv1.JobSpec) firstSweep {
	t.Helper()
	tree, _, err := jobspec.Tree(spec, false)
	if err != nil {
		t.Fatal(err)
	}
	return firstSweepOf(tree, spec, newPlan(tree, spec))
}

// TestFirstSweep checks that a class keeps some hundred duals if its rows share a word with most
// others, and most of the rows of the first sweep if the words are rare. Working sets of large data
// are a few times the duals. No estimate exceeds the rows.
func TestFirstSweep(t *testing.T) {
	const classes, positives = 160, 5
	common := append(slices.Repeat([]float64{0.3}, 10), slices.Repeat([]float64{0.002}, 2000)...)
	rare := slices.Repeat([]float64{0.0005}, 10000)
	for _, c := range []struct {
		name        string
		rows        int
		shares      []float64
		least, most float64 // duals of a class
	}{
		{"common words", 10000, common, 150, 400},
		{"rare words", 10000, rare, 4000, 10000},
		{"rare words of large data", 200000, rare, 4000, sampleRows + positives},
		{"fewer rows than that", 100, common, 90, 100},
	} {
		f := firstOf(t, described(c.rows, classes, positives, c.shares))
		if got := f.support / classes; got < c.least || got > c.most {
			t.Errorf("%s: %g duals a class, want %g to %g", c.name, got, c.least, c.most)
		}
		if blocks := float64(classes / blockTerminals); f.rows > blocks*float64(c.rows) || f.rows < f.support/blockTerminals {
			t.Errorf("%s: %g rows for %g duals", c.name, f.rows, f.support)
		}
		if f.entries != 0 || f.weights <= 0 {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	large, larger := described(100000, classes, positives, common), described(100000, classes, 8*positives, common)
	if a, b := firstOf(t, large), firstOf(t, larger); b.support <= a.support || b.support > 8*a.support ||
		a.rows > 1.001*workingFlat*a.support {
		t.Errorf("%+v, with eight times the positives %+v", a, b)
	}
}
