package plan

import (
	"math"

	"taxon/coordinator/method"
	"taxon/internal/data/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// These constants describe the first sweep, whose duals and working sets are the largest of a
// training. They are fitted to trainings of titles (YSO), glosses (WordNet), web pages by character
// n-grams, pages like LWIKI's, and rows of few rare words. docs/deploy.md has the measurements. A
// class has duals on
//
//   - rows around its positives, supportPerPositive for each;
//   - rows that share a word with one of its positives without being positive. Most words are
//     distinguished together, so the number of these rows grows with the square root of the number
//     of words;
//   - rows of other words. The score of such a row is the bias alone, which no word corrects. So
//     each takes a dual, until so many rows have one that nearly every row shares a word with them:
//     a few times the inverse of the expected number of words that two rows share.
const (
	supportPerPositive = 4
	supportPerWord     = 24
	supportPerClass    = neighbours
	strangers          = 5
	// strangersFlat replaces strangers without internals, where blocks are solved to their end.
	strangersFlat     = 20
	workingPerSupport = 1.5
	// workingFlat bounds workingPerSupport without internals, as the mapper narrows crowded bands.
	workingFlat = 3
	// sampleRows bounds the rows of a first sweep that sees a sample.
	sampleRows = SampledFrom
)

// firstSweep holds the sizes of the values that a first sweep's MAP tasks write.
type firstSweep struct {
	// support is the number of duals.
	support float64
	// rows is the number of rows of the blocks' working sets.
	rows float64
	// entries is the number of entries of the blocks' contributions to their parents.
	entries float64
	// weights is the number of the classes' final weights that differ from their parents'.
	weights float64
}

// firstSweepOf estimates the first sweep of a plan.
func firstSweepOf(tree *taxonomy.Tree, spec *taxonv1.JobSpec, plan *Plan) (f firstSweep) {
	d := spec.GetData()
	rows, voc := float64(d.GetInstances()), newVocabulary(d)
	seen, alone, perSupport := rows, strangersFlat/wordsInCommon(d), float64(workingFlat)
	sampled, joint := d.GetInstances() >= SampledFrom, len(tree.Internals()) > 0
	if sampled {
		seen = sampleRows
	}
	if joint {
		alone, perSupport = strangers/wordsInCommon(d), workingPerSupport
	}
	for b := range len(plan.BlockBegin) - 1 {
		all, siblings := 0.0, 0.0 // rows with a dual
		terminals := plan.Block(b)
		for i, n := range terminals {
			positives := 0.0
			if l := tree.Label[n]; l >= 0 && int(l) < len(d.GetLabelInstances()) {
				positives = float64(d.LabelInstances[l])
			}
			support := supportPerClass + supportPerPositive*positives + supportPerWord*math.Sqrt(voc.distinct(positives)) + alone
			support = min(support, seen+positives, rows)
			f.support += support
			f.weights += voc.distinct(support / method.FirstSweeps)
			all += support
			if siblings += support; joint && (i == len(terminals)-1 || tree.Parent[n] != tree.Parent[terminals[i+1]]) {
				f.entries += voc.distinct(siblings)
				siblings = 0
			}
		}
		if sampled {
			f.rows += min(perSupport*all, rows)
		} else {
			f.rows += rows // nothing is narrowed
		}
	}
	return f
}

// wordsInCommon returns the expected number of features that two rows share, sum_f
// (count_f / rows)^2.
func wordsInCommon(d *taxonv1.Data) float64 {
	sum := 1e-9 // of rows that share none
	for _, b := range countBuckets(d) {
		share := b.count / float64(max(d.GetInstances(), 1))
		sum += float64(b.end-b.begin) * share * share
	}
	return sum
}
