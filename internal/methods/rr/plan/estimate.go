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

// Figures of the estimate. A slot takes for each feature the mapper's tile (64 bytes), sixteen
// parents (64) and the walk to them (16), and more for those that a block needs. A v_n has most
// features of its support vectors. docs/deploy.md compares the estimates with measurements.
const (
	slotBytesPerFeature = 64 + 64 + 16
	bytesPerLine        = 138       // a feature that a block needs: v, support, places
	curveBytesPerLine   = 64        // squared hinge below internals: the tile of curvatures
	slotBytesPerRow     = 2         // signs
	bytesPerListed      = 240 + 138 // a row that a block visits, and one that it will visit next
	listedRows          = 64 << 10  // at most, of one block, as crowded bands are narrowed
	slotBytesFixed      = 4 << 20
	neighbours          = 32 // rows that serve a class, besides those around its positives
	rowsPerPositive     = 7  // that have served a class, and left features in the internals above it
	bytesPerRow         = 2.5
	bytesPerDual        = 4
	bytesPerEntry       = 3
	bytesPerOverride    = 5  // of an internal's vector
	bytesPerWeight      = 6  // of the model
	keptPerEntry        = 16 // of a v_n: feature, float64 sum, curvature, and the room they grew in
	keptPerRow          = 8  // of a block's working set: its number, the lanes that visit it and those with a dual
	keptPerDual         = 8
	keptPerOverride     = 8  // decoded
	reducePerEntry      = 42 // of a v_n, in the first sweep: as received and by feature
	reducePerOverride   = 45 // x and x_prev by feature; x+ by feature, decoded and coded; copies of groups
	bytesPerDense       = 5.25
)

// Seconds of one core. The first is for one nonzero and one class of a pass over the data, for
// all passes of a sweep. The second is for a byte that a sweep writes: it is encoded, stored,
// read and reduced. go run ./test/bench/scaling compares them with measurements.
const (
	visitSeconds, byteSeconds             = 0.7e-9, 37e-9
	smoothVisitSeconds, smoothByteSeconds = 3e-9, 3e-9 // the logistic loss: exponentials, and dense values
)

// Sweeps to a gap of 1e-2.
const (
	sweeps       = 16
	smoothSweeps = 8
	flatSweeps   = 4
)

// estimate says what a plan of a tree takes.
func estimate(tree *taxonomy.Tree, spec *taxonv1.JobSpec, plan *Plan) method.Estimate {
	data := spec.GetData()
	d, rows := data.GetFeatures()+1, data.GetInstances()
	logistic := spec.GetOptions().GetLoss() == "logistic"
	e := method.Estimate{
		Data: method.DataBytes(data), WorkerShared: method.TreeBytes(tree.Len()), WorkerSlot: SlotBytes(spec.GetOptions(), data),
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
	values := value * float64(e.StoreSweep) / 2 // half is for the task that writes a value, half for the one that reads it
	e.SecondsSweep = []float64{work + values, values}
	if len(tree.Internals()) == 0 { // nothing is reduced, and all rows may be short of a bias that is still too high
		if !logistic {
			e.WorkerSlot += bytesPerListed * (rows - listed(data))
		}
		e.SecondsSweep, e.Sweeps = e.SecondsSweep[:1], flatSweeps
	}
	return e
}

// sparse sets the parts of an estimate that are sparse: duals, the terminals' v and the
// internals' x. x is dense on a graph. Without internals there is no v, and the duals are what is
// kept.
func sparse(e *method.Estimate, tree *taxonomy.Tree, spec *taxonv1.JobSpec, plan *Plan) {
	data := spec.GetData()
	d, internals := data.GetFeatures()+1, uint64(len(tree.Internals()))
	first := firstSweepOf(tree, spec, plan)
	support, entries := first.support, first.entries
	if internals == 0 {
		entries = 0
	} else if spec.GetOptions().GetLoss() == "squared-hinge" {
		e.WorkerSlot += curveBytesPerLine * lines(spec.GetOptions(), data)
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
	e.TrafficSweep = 2*e.StoreSweep + duals + coded // written once; duals read by maps, v by reduces, x by maps, of some groups twice
}

// ApartBytes is the memory of a slot for a block from which on it is given up while a range is
// reduced, and the other way round.
const ApartBytes = 64 << 20

// SlotBytes is what the solve of a block over such data takes, the curvatures below internals not counted.
func SlotBytes(o *taxonv1.Options, d *taxonv1.Data) uint64 {
	n := slotBytesPerFeature*(d.GetFeatures()+1) + bytesPerLine*lines(o, d) +
		slotBytesPerRow*d.GetInstances() + bytesPerListed*listed(d) + slotBytesFixed
	if o.GetLoss() != "logistic" && o.GetLoss() != "squared-hinge" {
		n += denseRows(d)
	}
	return n
}

// listed is the number of rows that a block below internals lists at most.
func listed(d *taxonv1.Data) uint64 { return min(d.GetInstances(), listedRows) }

// lines is the number of features that the tiles of a block have lines for: those of the rows that it
// lists, or all if they are more than a third (mapper/lines.go).
func lines(o *taxonv1.Options, d *taxonv1.Data) uint64 {
	all := d.GetFeatures() + 1
	n := uint64(newVocabulary(d).distinct(float64(listed(d))))
	if o.GetLoss() == "logistic" || n > all/3 {
		return all
	}
	return n
}

const (
	denseBelow = 1024 // columns: half-full rows with fewer are laid out lane by lane (mapper/lanes.go),
	denseLanes = 4    // for at most this many lanes each, in lines of 16 features
	denseLane  = 64   // its dual, bound, place and numbers, and its duals of a pass before
)

// denseRows is the most bytes that a slot of a hinge job takes to lay rows out lane by lane. It
// is 0 where rows are sparse or wide, because then it does not.
func denseRows(d *taxonv1.Data) uint64 {
	rows, features := d.GetInstances(), d.GetFeatures()
	if features >= denseBelow || 2*d.GetNonzeros() < rows*features {
		return 0
	}
	return denseLanes * rows * (64*((features+16)/16) + denseLane)
}

// versions is the number of versions of the internals that a worker holds decoded: x, the one
// before, and, if all blocks see the same x, the one that a safeguard step may return to. The first
// one is nearly twice as large: it counts twice, or where groups are many has none before it.
func versions(plan *Plan) uint64 {
	if len(plan.GroupBegin) <= 2 {
		return 4
	}
	return 2
}

// An internal differs from its parent where the terminals below it have support, on the features
// of the rows that serve their classes. So the distinct features of these rows bound its entries.
// In a vocabulary of falling frequency they are far fewer than all features.

// groupEntries estimates the entries of a tree's internals: those of all groups, each of which has
// a copy of those above its terminals, and the most that a worker keeps at a time.
func groupEntries(tree *taxonomy.Tree, d *taxonv1.Data, plan *Plan) (all, kept uint64) {
	rows, voc := supportBelow(tree, d), newVocabulary(d)
	seen := make([]int, tree.Len()) // by the group, from 1
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

// supportBelow is, for each node, the number of rows that serve the classes below it.
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

// vocabulary has the number of distinct features of a number of rows. The numbers of rows grow by
// a quarter each.
type vocabulary struct{ rows, features []float64 }

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

// distinct is the number of distinct features of this many rows, if each draws its own.
func (v *vocabulary) distinct(rows float64) float64 {
	k := sort.SearchFloat64s(v.rows, rows)
	if k == 0 || k == len(v.rows) {
		return v.features[min(k, len(v.rows)-1)]
	}
	part := (rows - v.rows[k-1]) / (v.rows[k] - v.rows[k-1])
	return v.features[k-1] + part*(v.features[k]-v.features[k-1])
}

// With the logistic loss every dual is nonzero, and all vectors are dense: a terminal's v, what
// its block sends to each parent (v, and in priced sweeps G), and the internals' x. These are the
// bytes of an entry of the values, and of what a worker makes of them:
const (
	smoothState  = 4      // float32 of a terminal's v; an index more for all lanes
	smoothTiles  = 7 * 64 // a feature of a slot: see mapper.logisticSolver
	smoothRows   = 4 * 64 // a row of a slot
	smoothResult = 3 * 64 // a feature: the new v while it grows, and coded
)

// smoothBytes are those that differ between trees, with arrays, and graphs, with lists.
type smoothBytes struct {
	sent    uint64  // v and G: float32 and curvature, float32; in lists with an index each
	vector  float64 // x
	decoded uint64  // x and x_prev, and of lists the one that takes their place
	send    uint64  // a feature and parent of a block: v and G as they are made, and coded
	reduceV uint64  // a feature and sender of a range: as received; of lists decoded, and by feature
	reduceX uint64  // a feature and internal of a range: x, x_prev and x+, coded, too; of lists by node and by feature
	undo    uint64  // a feature and level: the log of the walk through lists
}

var (
	smoothArrays = smoothBytes{sent: 5 + 4, vector: 4, decoded: 2 * 4, send: 2 * (5 + 4), reduceV: 5 + 4, reduceX: 4 * 4}
	smoothLists  = smoothBytes{sent: 2 * 7, vector: bytesPerDense, decoded: 3 * 8, send: 2*13*5/4 + 12, reduceV: 2 * (13 + 16), reduceX: 2*(8+8) + 2*16, undo: 24}
)

// smoothPlan counts the dense vectors of a job with logistic loss.
type smoothPlan struct {
	features, terminals, internals uint64
	senders                        uint64 // pairs of a block and a parent of its terminals
	most                           uint64 // parents of one block
	width                          uint64 // features of the widest range
	depth                          uint64
	graph                          bool
}

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

// parentsOf is the number of distinct parents of a block's terminals, which are ordered by
// family. On a graph it is the number of distinct sets of neighbours.
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
	old := terminals + sent // what is not yet replaced
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
