package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"taxon/coordinator/method"
	"taxon/internal/data/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// These are the numbers of the estimate, in bytes unless the comment says otherwise. docs/deploy.md
// compares the estimates with measurements.
const (
	// slotBytesPerFeature is the memory of a slot for each feature. It includes the mapper's tile,
	// sixteen parents, and the walk to them.
	slotBytesPerFeature = 64 + 64 + 16
	// bytesPerLine is the additional memory of a slot for each feature that a block needs. It
	// includes v, support and places.
	bytesPerLine = 138
	// curveBytesPerLine is the size of the tile of curvatures, with the squared hinge and internals.
	curveBytesPerLine = 64
	// slotBytesPerRow is the size of a row's signs.
	slotBytesPerRow = 2
	// bytesPerListed is the memory of a block for a row that it visits and for a row that it will
	// visit next.
	bytesPerListed = 240 + 138
	// listedRows is the most rows that a block lists, as crowded bands are narrowed.
	listedRows = 64 << 10
	// slotBytesFixed is independent of the data.
	slotBytesFixed = 4 << 20
	// neighbours is the number of rows that serve a class besides those around its positives.
	neighbours = 32
	// rowsPerPositive is the number of rows for each positive that have served a class and left
	// features in the internals above it.
	rowsPerPositive = 7
	// bytesPerRow, bytesPerDual and bytesPerEntry are the bytes of a row of a stored working set,
	// of a dual, and of an entry of a v_n, which has most features of its support vectors.
	bytesPerRow   = 2.5
	bytesPerDual  = 4
	bytesPerEntry = 3
	// bytesPerOverride is the size of an entry of an internal's vector.
	bytesPerOverride = 5
	// bytesPerWeight is the size of an entry of the model.
	bytesPerWeight = 6
	// keptPerEntry is the size of an entry of a v_n in memory. It includes the feature, the float64
	// sum, the curvature, and spare room.
	keptPerEntry = 16
	// keptPerRow is the size of a row of a block's working set. It includes the row's number, the
	// lanes that visit it and the lanes with a dual.
	keptPerRow = 8
	// keptPerDual is the size of a dual in memory, and keptPerOverride the size of a decoded
	// override.
	keptPerDual     = 8
	keptPerOverride = 8
	// reducePerEntry is the size of an entry of a v_n in the first sweep's reduce, which holds it
	// as received and by feature.
	reducePerEntry = 42
	// reducePerOverride is the size of an override there: x and x_prev by feature, x+ by feature, decoded and
	// coded, and copies of groups.
	reducePerOverride = 45
	// bytesPerDense is the size of an entry of a graph's internal.
	bytesPerDense = 5.25
)

// These are seconds of one core. visitSeconds is for one nonzero and one class, in all passes of a
// sweep. byteSeconds is for a byte that a sweep writes: it is encoded, stored, read and reduced.
// The smooth ones are the logistic loss's, which has exponentials and dense values. go run
// ./test/bench/scaling compares them with measurements.
const (
	visitSeconds, byteSeconds             = 0.7e-9, 37e-9
	smoothVisitSeconds, smoothByteSeconds = 3e-9, 3e-9
)

// These are the usual numbers of sweeps to a gap of 1e-2, with the hinges, with the logistic loss,
// and without internals.
const (
	sweeps       = 16
	smoothSweeps = 8
	flatSweeps   = 4
)

// estimate returns the memory, storage and time that a plan of a tree takes.
func estimate(tree *taxonomy.Tree, spec *taxonv1.JobSpec, plan *Plan) method.Estimate {
	data := spec.GetData()
	d, rows := data.GetFeatures()+1, data.GetInstances()
	loss := settings(spec).Loss
	logistic := loss == "logistic"
	e := method.Estimate{
		Data: method.DataBytes(data), WorkerShared: method.TreeBytes(tree.Len()), WorkerSlot: SlotBytes(loss, data),
		Coordinator: 64*uint64(len(plan.BlockSet)+len(plan.RangeBegin)-1) + method.TreeBytes(tree.Len()),
		Dense:       logistic || tree.IsGraph(),
		SlotHolds:   fmt.Sprintf("a block of 16 classes over %d features, and what is kept of those before", d-1),
		Sweeps:      sweeps,
	}
	visit, value := visitSeconds, byteSeconds
	if logistic {
		visit, value = smoothVisitSeconds, smoothByteSeconds
		e.Sweeps = smoothSweeps
		e.WorkerSlot += smoothRows * rows
		e.Tight = true
		smoothPlanOf(tree, spec, plan).estimate(&e)
	} else {
		sparse(&e, tree, spec, plan)
	}
	work := 0.0
	for _, v := range blockCosts(tree, data, plan) {
		work += visit * v
	}
	// Half is for the task that writes a value, half for the one that reads it.
	values := value * float64(e.StoreSweep) / 2
	e.SecondsSweep = []float64{work + values, values}
	// Without internals nothing is reduced, and all rows may be listed while the bias is too high.
	if len(tree.Internals()) == 0 {
		if !logistic {
			e.WorkerSlot += bytesPerListed * (rows - listed(data))
		}
		e.SecondsSweep, e.Sweeps = e.SecondsSweep[:1], flatSweeps
	}
	return e
}

// sparse sets the parts of an estimate that are sparse: duals, the terminals' v and the internals'
// x. x is dense on a graph. Without internals there is no v, and a worker keeps the duals alone.
func sparse(e *method.Estimate, tree *taxonomy.Tree, spec *taxonv1.JobSpec, plan *Plan) {
	data := spec.GetData()
	d, internals := data.GetFeatures()+1, uint64(len(tree.Internals()))
	first := firstSweepOf(tree, spec, plan)
	support, entries := first.support, first.entries
	if internals == 0 {
		entries = 0
	} else if loss := settings(spec).Loss; loss == "squared-hinge" {
		e.WorkerSlot += curveBytesPerLine * lines(loss, data)
	}
	written, held := groupEntries(tree, data, plan)
	coded := bytesPerOverride * written
	if tree.IsGraph() {
		written, held = internals*d, internals*d
		coded = uint64(bytesPerDense * float64(written))
	}
	if internals > 0 {
		reduce := (uint64(reducePerEntry*entries) + reducePerOverride*written) / uint64(len(plan.RangeBegin)-1)
		if e.SlotTask = reduce; e.WorkerSlot >= ApartBytes {
			e.SlotTask = max(reduce, e.WorkerSlot) - e.WorkerSlot
		}
	}
	e.WorkerShared += keptPerOverride * held * versions(plan)
	duals := uint64(bytesPerRow*first.rows+bytesPerDual*support) / method.FirstSweeps
	e.WorkerKept = uint64(keptPerRow*first.rows + keptPerDual*support + keptPerEntry*entries)
	e.StoreSweep = duals + uint64(bytesPerEntry*entries)/method.FirstSweeps + coded
	e.StoreJob = 2*e.StoreSweep + max(e.StoreSweep, uint64(bytesPerWeight*first.weights))
	e.StoreLocal = method.FirstSweeps * 3 * e.StoreSweep
	// All is written once. Maps read duals, and x, of some groups twice; reduces read v.
	e.TrafficSweep = 2*e.StoreSweep + duals + coded
}

// ApartBytes is the size of a slot's memory for a block above which the slot frees that memory
// while it reduces a range, and frees its memory for ranges while it solves a block.
const ApartBytes = 64 << 20

// SlotBytes returns the bytes that the solve of a block over such data takes with a loss, without the
// curvatures below internals.
func SlotBytes(loss string, d *taxonv1.Data) uint64 {
	n := slotBytesPerFeature*(d.GetFeatures()+1) + bytesPerLine*lines(loss, d) +
		slotBytesPerRow*d.GetInstances() + bytesPerListed*listed(d) + slotBytesFixed
	if loss != "logistic" && loss != "squared-hinge" {
		n += denseRows(d)
	}
	return n
}

// listed returns the most rows that a block below internals lists.
func listed(d *taxonv1.Data) uint64 { return min(d.GetInstances(), listedRows) }

// lines returns the number of features that the tiles of a block have lines for: the features of
// the rows that it lists, or all features if these are more than a third (mapper/lines.go).
func lines(loss string, d *taxonv1.Data) uint64 {
	all := d.GetFeatures() + 1
	n := uint64(newVocabulary(d).distinct(float64(listed(d))))
	if loss == "logistic" || n > all/3 {
		return all
	}
	return n
}

const (
	// denseBelow is the number of columns below which half-full rows are laid out lane by lane
	// (mapper/lanes.go), in lines of 16 features.
	denseBelow = 1024
	// denseLanes is the greatest number of lanes that a row is laid out for.
	denseLanes = 4
	// denseLane is the number of bytes per row and lane. They hold the dual, bound, place and
	// numbers, and the dual of the pass before.
	denseLane = 64
)

// denseRows returns the most bytes that a slot of a hinge job takes to lay out rows lane by lane.
// It is 0 where rows are sparse or wide, because they are not laid out then.
func denseRows(d *taxonv1.Data) uint64 {
	rows, features := d.GetInstances(), d.GetFeatures()
	if features >= denseBelow || 2*d.GetNonzeros() < rows*features {
		return 0
	}
	return denseLanes * rows * (64*((features+16)/16) + denseLane)
}

// versions returns the number of versions of the internals that a worker holds decoded: x, the one
// before, and, if all blocks see the same x, the one that a safeguard step may return to. The first
// one is nearly twice as large, so it counts twice; where there are many groups it has none before
// it.
func versions(plan *Plan) uint64 {
	if len(plan.GroupBegin) <= 2 {
		return 4
	}
	return 2
}

// groupEntries estimates the entries of a tree's internals: those of all groups, each of which has
// a copy of those above its terminals, and the most that a worker keeps at a time.
//
// An internal differs from its parent where the terminals below it have support, on the features of
// the rows that serve their classes. So the distinct features of these rows bound its entries. As
// frequencies of words fall, they are far fewer than all features.
func groupEntries(tree *taxonomy.Tree, d *taxonv1.Data, plan *Plan) (all, kept uint64) {
	rows, voc := supportBelow(tree, d), newVocabulary(d)
	seen := make([]int, tree.Len()) // last group that has seen the node, from 1
	groups := make([]uint64, len(plan.GroupBegin)-1)
	for g := range groups {
		entries := 0.0
		for b := plan.GroupBegin[g]; b < plan.GroupBegin[g+1]; b++ {
			for _, n := range plan.Block(int(b)) {
				for p := tree.Parent[n]; p >= 0 && seen[p] <= g; p = tree.Parent[p] {
					seen[p] = g + 1
					entries += voc.distinct(rows[p])
				}
			}
		}
		groups[g] = uint64(entries)
		all += groups[g]
	}
	slices.SortFunc(groups, func(a, b uint64) int { return cmp.Compare(b, a) })
	for _, n := range groups[:min(KeptGroups, len(groups))] {
		kept += n
	}
	return all, kept
}

// supportBelow returns, for each node, the number of rows that serve the classes below it.
func supportBelow(tree *taxonomy.Tree, d *taxonv1.Data) []float64 {
	rows := make([]float64, tree.Len())
	all := float64(d.GetInstances())
	for n := tree.Len() - 1; n >= 0; n-- { // children come after their parents
		if tree.Leaf[n] {
			if l := tree.Label[n]; l >= 0 && int(l) < len(d.GetLabelInstances()) {
				rows[n] = rowsPerPositive*float64(d.LabelInstances[l]) + neighbours
			}
		}
		rows[n] = min(rows[n], all)
		if p := tree.Parent[n]; p >= 0 {
			rows[p] += rows[n]
		}
	}
	return rows
}

// vocabulary tabulates the number of distinct features of a number of rows. The numbers of rows
// grow by a quarter each.
type vocabulary struct{ rows, features []float64 }

// newVocabulary returns the vocabulary of data with these counts of features.
func newVocabulary(d *taxonv1.Data) *vocabulary {
	v := &vocabulary{rows: []float64{0}, features: []float64{1}} // the bias
	buckets := countBuckets(d)
	for n := 1.0; ; n *= 1.25 {
		distinct := 1.0
		for _, b := range buckets {
			rate := b.count / float64(max(d.GetInstances(), 1))
			distinct += float64(b.end-b.begin) * -math.Expm1(-n*rate)
		}
		v.rows, v.features = append(v.rows, n), append(v.features, distinct)
		if n >= float64(d.GetInstances()) {
			return v
		}
	}
}

// distinct returns the number of distinct features of this many rows, if each draws its own.
func (v *vocabulary) distinct(rows float64) float64 {
	k := sort.SearchFloat64s(v.rows, rows)
	if k == 0 || k == len(v.rows) {
		return v.features[min(k, len(v.rows)-1)]
	}
	part := (rows - v.rows[k-1]) / (v.rows[k] - v.rows[k-1])
	return v.features[k-1] + part*(v.features[k]-v.features[k-1])
}

// With the logistic loss every dual is nonzero, and all vectors are dense: a terminal's v, its
// block's contributions to each parent (v, and in priced sweeps G), and the internals' x. These are
// the bytes of an entry.
const (
	smoothState  = 4      // v of a terminal
	smoothTiles  = 7 * 64 // bytes of a slot's tiles, per feature
	smoothRows   = 4 * 64 // bytes of a slot, per row
	smoothResult = 3 * 64 // bytes of the new v, per feature
)

// smoothBytes holds the numbers of bytes that differ between trees, which use arrays, and graphs,
// which use lists.
type smoothBytes struct {
	// sent is v and G: float32 and curvature, and float32. In lists each has an index.
	sent uint64
	// vector is x.
	vector float64
	// decoded is x and x_prev, and with lists the one that replaces them.
	decoded uint64
	// send is for a feature and parent of a block: v and G as they are made, and coded.
	send uint64
	// reduceV is for a feature and sender of a range: as received, and with lists decoded and by
	// feature.
	reduceV uint64
	// reduceX is for a feature and internal of a range: x, x_prev and x+, also coded, and with
	// lists by node and by feature.
	reduceX uint64
	// undo is for a feature and level: the log of the walk through lists.
	undo uint64
}

var (
	smoothArrays = smoothBytes{sent: 5 + 4, vector: 4, decoded: 2 * 4, send: 2 * (5 + 4), reduceV: 5 + 4, reduceX: 4 * 4}
	smoothLists  = smoothBytes{sent: 2 * 7, vector: bytesPerDense, decoded: 3 * 8, send: 2*13*5/4 + 12,
		reduceV: 2 * (13 + 16), reduceX: 2*(8+8) + 2*16, undo: 24}
)

// smoothPlan counts the dense vectors of a job with the logistic loss.
type smoothPlan struct {
	features, terminals, internals uint64
	// senders is the number of pairs of a block and a parent of its terminals.
	senders uint64
	// most is the greatest number of parents of a block.
	most uint64
	// width is the number of features of the widest range.
	width uint64
	depth uint64
	graph bool
}

// smoothPlanOf counts the vectors of a plan.
func smoothPlanOf(tree *taxonomy.Tree, spec *taxonv1.JobSpec, plan *Plan) smoothPlan {
	s := smoothPlan{
		features: spec.GetData().GetFeatures() + 1, terminals: uint64(len(plan.BlockTerminals)),
		internals: uint64(len(tree.Internals())), depth: uint64(tree.MaxDepth()) + 1, graph: tree.IsGraph(),
	}
	if s.internals == 0 {
		return s
	}
	begin, terminals := plan.BlockBegin, plan.BlockTerminals
	for b := range len(begin) - 1 {
		n := parentsOf(tree, terminals[begin[b]:begin[b+1]])
		s.senders += n
		s.most = max(s.most, n)
	}
	ranges := plan.RangeBegin
	for r := range len(ranges) - 1 {
		s.width = max(s.width, uint64(ranges[r+1]-ranges[r]))
	}
	return s
}

// parentsOf returns the number of distinct parents of a block's terminals, which are ordered by
// family. On a graph it returns the number of distinct sets of neighbours.
func parentsOf(tree *taxonomy.Tree, terminals []uint32) uint64 {
	n := uint64(0)
	for i, t := range terminals {
		switch {
		case i == 0:
			n++
		case tree.IsGraph():
			if !slices.Equal(tree.Adjacent.Of(int32(t)), tree.Adjacent.Of(int32(terminals[i-1]))) {
				n++
			}
		case tree.Parent[t] != tree.Parent[terminals[i-1]]:
			n++
		}
	}
	return n
}

// estimate sets the parts of an estimate that are dense.
func (s smoothPlan) estimate(e *method.Estimate) {
	of := smoothArrays
	if s.graph {
		of = smoothLists
	}
	terminals := s.features * (smoothState*s.terminals + s.terminals/blockTerminals + 1)
	sent, vectors := of.sent*s.features*s.senders, uint64(of.vector*float64(s.features*s.internals))
	e.StoreSweep = terminals + sent + vectors
	e.TrafficSweep = 2*e.StoreSweep + terminals
	// One process keeps what the terminals wrote last and what they are writing. Of the internals
	// it keeps x, x_prev and what is being written, and one more where the safeguard repeats a
	// step. The final weights go to a file. A cluster also keeps the values that
	// those were made from.
	old := terminals + sent // values that are not replaced yet
	if s.features*s.terminals >= piecesFrom {
		old /= pieces
	}
	e.StoreLocal = max(terminals+sent+old+3*vectors, terminals+sent+4*vectors)
	e.StoreJob = 3*(terminals+sent) + 5*vectors
	e.WorkerShared += of.decoded * s.features * s.internals
	if !s.graph {
		e.InPlace = of.decoded * s.features * s.internals
	}
	e.WorkerSlot += s.features*(smoothTiles+smoothResult+of.send*s.most+of.undo*s.depth) +
		s.width*(of.reduceV*s.senders+of.reduceX*s.internals)
}
