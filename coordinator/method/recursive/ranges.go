package recursive

import (
	"math"

	taxonv1 "taxon/proto/taxon/v1"
)

const (
	// maxRanges bounds the values that a mapper writes (one per range).
	maxRanges = 256
	// rangeWork is the expected number of v entries in a range: some ten milliseconds of
	// a reducer. wordnet-freq comes to about a dozen ranges, a small problem to one.
	rangeWork = 400_000
	// smoothRangeWork is that number with the logistic loss, whose v are dense: a range's
	// vectors, contributions and systems are memory of each slot (wordnet-freq: 61 ranges,
	// of which one takes 60 MB; in a dozen it would be 400).
	smoothRangeWork = 1_600_000
	// spread says in how many terminals' supports a nonzero is expected: rows serve their
	// own classes and, as near negatives, about this many others.
	spread = 10
	// featureWork is the elimination's cost of a feature beside its v entries.
	featureWork = 4
)

// featureRanges cuts [0, F), F = features plus the bias feature if there is one, into
// ranges of about equal expected work; the result has one more entry than ranges, rises
// strictly (unless F = 0) and ends in F.
//
// The work of feature f is min(terminals, spread * nonzeros of f) + featureWork, with
// the nonzeros as Data.feature_counts_log has them: averaged over buckets of features. With
// the logistic loss every terminal has a v entry on every feature.
// With no internals there is nothing to reduce, hence one range.
func featureRanges(spec *taxonv1.JobSpec, terminals, internals int) []uint32 {
	features := uint32(spec.GetData().GetFeatures())
	end := features
	if spec.GetOptions().GetBias() > 0 {
		end++
	}
	if internals == 0 || end == 0 {
		return []uint32{0, end}
	}
	buckets, rangeWork := workBuckets(spec.GetData(), float64(terminals)), float64(rangeWork)
	if spec.GetOptions().GetLoss() == "logistic" {
		rangeWork = smoothRangeWork
		for k := range buckets {
			buckets[k].work = float64(terminals) + featureWork
		}
	}
	total := float64(end-features) * (float64(terminals) + featureWork)
	for _, b := range buckets {
		total += b.work * float64(b.end-b.begin)
	}
	n := min(int(math.Ceil(total/rangeWork)), maxRanges, int(end))
	out := []uint32{0}
	sum := 0.0 // work of the features before b
	for _, b := range buckets {
		for k := len(out); k < n; k++ {
			want := total * float64(k) / float64(n)
			at := b.begin + uint32(math.Ceil((want-sum)/b.work))
			if want > sum+b.work*float64(b.end-b.begin) || at >= end {
				break
			}
			if at > out[len(out)-1] && at <= b.end {
				out = append(out, at)
			}
		}
		sum += b.work * float64(b.end-b.begin)
	}
	return append(out, end)
}

// bucket is a run of features [begin, end) taken to cost the same work each.
type bucket struct {
	begin, end uint32
	count      float64 // nonzeros of each
	work       float64
}

// workBuckets are the buckets with the work of their features.
func workBuckets(data *taxonv1.Data, terminals float64) []bucket {
	out := countBuckets(data)
	for k := range out {
		out[k].work = min(terminals, spread*out[k].count) + featureWork
	}
	return out
}

// countBuckets lists the buckets of data's cumulative counts; without counts, one bucket.
func countBuckets(data *taxonv1.Data) []bucket {
	features, cumulative := uint32(data.GetFeatures()), data.GetFeatureCountsLog()
	if len(cumulative) == 0 {
		cumulative = []uint32{uint32(min(data.GetNonzeros(), math.MaxUint32))}
	}
	width := (features + uint32(len(cumulative)) - 1) / uint32(len(cumulative))
	var out []bucket
	var before uint32
	for k, sum := range cumulative {
		b := bucket{begin: min(uint32(k)*width, features), end: min(uint32(k+1)*width, features)}
		if b.begin == b.end {
			break
		}
		b.count = float64(sum-min(before, sum)) / float64(b.end-b.begin)
		out = append(out, b)
		before = sum
	}
	return out
}
