package plan

import (
	"cmp"
	"math"
	"slices"

	"taxon/internal/data/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

const (
	// blockTerminals is the width of the mapper's interleaved tiles. One cache line of float32
	// holds a feature of this many classes.
	blockTerminals = 16
	// groupTerminals bounds what a mapper reads of the internals. A range's internals are written
	// group by group, so a block reads only the groups near it.
	groupTerminals = 4096
	// KeptGroups is the number of groups whose internals a worker keeps. A worker's blocks are in a
	// few adjacent groups. It needs further groups for blocks that it takes over from other
	// workers.
	KeptGroups = 3
)

// newPlan cuts the training of tree on the data of spec into blocks of terminals and feature
// ranges.
//
// A block holds at most 16 terminals of one independent set (on a graph: with equally many
// neighbours), siblings adjacent. Block numbers follow the depth-first order of the parents within
// each set. Ranges cover [0, features]. The bias is feature number `features` when it is on.
func newPlan(tree *taxonomy.Tree, spec *taxonv1.JobSpec) *Plan {
	o := settings(spec)
	setOf, sets := NodeSets(tree, &o)
	p := &Plan{Sets: sets, BlockBegin: []uint32{0}}
	terminals := terminalsByFamily(tree)
	for set := range p.Sets {
		for _, alike := range byPull(tree, inSet(setOf, terminals, set)) {
			appendBlocks(p, alike, set)
		}
	}
	p.GroupBegin = groups(p.BlockBegin)
	p.RangeBegin = featureRanges(spec, len(terminals), len(tree.Internals()))
	return p
}

// terminalsByFamily lists the terminals by family, in depth-first order of their parents. So a
// terminal between two subtrees stays beside its siblings.
func terminalsByFamily(tree *taxonomy.Tree) []uint32 {
	var out []uint32
	for n, leaf := range tree.Leaf {
		if leaf {
			out = append(out, uint32(n))
		}
	}
	slices.SortStableFunc(out, func(a, b uint32) int {
		if tree.IsGraph() { // by number of neighbours, then by these
			x, y := tree.Adjacent.Of(int32(a)), tree.Adjacent.Of(int32(b))
			return cmp.Or(cmp.Compare(len(x), len(y)), slices.Compare(x, y))
		}
		return cmp.Compare(tree.Parent[a], tree.Parent[b])
	})
	return out
}

// byPull divides a graph's terminals where the number of neighbours changes, because the terminals
// of a block share K = C/S_n. On a tree S_n is 1 everywhere.
func byPull(tree *taxonomy.Tree, terminals []uint32) [][]uint32 {
	if !tree.IsGraph() {
		return [][]uint32{terminals}
	}
	var out [][]uint32
	for len(terminals) > 0 {
		n := 1
		for n < len(terminals) && len(tree.Adjacent.Of(int32(terminals[n]))) == len(tree.Adjacent.Of(int32(terminals[0]))) {
			n++
		}
		out, terminals = append(out, terminals[:n]), terminals[n:]
	}
	return out
}

// inSet keeps the terminals of one independent set.
func inSet(setOf []uint32, terminals []uint32, set uint32) []uint32 {
	var out []uint32
	for _, n := range terminals {
		if setOf[n] == set {
			out = append(out, n)
		}
	}
	return out
}

// appendBlocks cuts terminals into blocks, full ones first. Families share blocks:
// half-empty tiles would cost more than a parent's vector read by two blocks.
func appendBlocks(p *Plan, terminals []uint32, set uint32) {
	for chunk := range slices.Chunk(terminals, blockTerminals) {
		p.BlockTerminals = append(p.BlockTerminals, chunk...)
		p.BlockBegin = append(p.BlockBegin, uint32(len(p.BlockTerminals)))
		p.BlockSet = append(p.BlockSet, set)
	}
}

// groups divides the blocks into runs with equal numbers of blocks, of about groupTerminals
// terminals each.
func groups(blockBegin []uint32) []uint32 {
	blocks := len(blockBegin) - 1
	terminals := int(blockBegin[blocks])
	n := max((terminals+groupTerminals/2)/groupTerminals, 1)
	out := []uint32{0}
	for g := 1; g <= n && blocks > 0; g++ {
		if end := uint32(blocks * g / n); end > out[len(out)-1] {
			out = append(out, end)
		}
	}
	return out
}

// blockCosts estimates the nonzeros that a block visits in one pass over the data: every lane sees
// every row, and the rows of its own class repeatedly.
func blockCosts(tree *taxonomy.Tree, data *taxonv1.Data, p *Plan) []float64 {
	row := float64(data.GetNonzeros()) / float64(max(data.GetInstances(), 1))
	cost := make([]float64, len(p.BlockSet))
	for b := range cost {
		for _, n := range p.BlockTerminals[p.BlockBegin[b]:p.BlockBegin[b+1]] {
			cost[b] += float64(data.GetNonzeros())
			if l := tree.Label[n]; l >= 0 && int(l) < len(data.GetLabelInstances()) {
				cost[b] += row * float64(data.LabelInstances[l])
			}
		}
	}
	return cost
}

const (
	// maxRanges bounds the values that a mapper writes (one per range).
	maxRanges = 512
	// rangeWork is the expected number of v entries in a range: some ten milliseconds of a
	// reducer.
	rangeWork = 400_000
	// smoothRangeWork is the same for the logistic loss, whose v are dense. It is smaller because
	// each slot holds a range's vectors, contributions and systems.
	smoothRangeWork = 1_600_000
	// spread is the number of terminals in whose support a nonzero is expected. A row serves its
	// own classes, and is a near negative of about this many others.
	spread = 10
	// featureWork is the cost of eliminating a feature, in addition to its v entries.
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
	if settings(spec).Bias > 0 {
		end++
	}
	if internals == 0 || end == 0 {
		return []uint32{0, end}
	}
	buckets, rangeWork := workBuckets(spec.GetData(), float64(terminals)), float64(rangeWork)
	if settings(spec).Loss == "logistic" {
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

// bucket is a run of features [begin, end) that are assumed to cost the same work each.
type bucket struct {
	begin, end uint32
	count      float64 // nonzeros of each
	work       float64
}

// workBuckets returns the buckets with the work of their features.
func workBuckets(data *taxonv1.Data, terminals float64) []bucket {
	out := countBuckets(data)
	for k := range out {
		out[k].work = min(terminals, spread*out[k].count) + featureWork
	}
	return out
}

// countBuckets lists the buckets of the data's cumulative counts. Without counts it returns a
// single bucket.
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
