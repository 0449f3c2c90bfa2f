package recursive

import (
	"fmt"

	"taxon/coordinator/method"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// Figures of the estimate. Bytes a feature of a slot: the mapper's tiles (196, and 128 in
// float64 for the last sweeps), sixteen parents (64) and the walk to them (16). Support
// vectors a class: a few for each positive and some dozens of neighbours, as on WordNet
// and LSHTC. A v_n touches most features of its support's rows; an entry of it takes some
// 3 bytes coded, a dual 6. Measured on WordNet's 3,383 frequent classes, C = 1, in the third
// sweep: 4.3 MB of duals, 12 of v_n, 14 of internals; the first sweep writes twice that.
const (
	slotBytesPerFeature  = 196 + 128 + 64 + 16
	curveBytesPerFeature = 64       // squared hinge below internals: the tile of curvatures
	slotBytesPerRow      = 2 + 64/4 // signs, and tiles of the quarter of the rows that is visited
	slotBytesFixed       = 8 << 20
	supportPerPositive   = 4
	supportPerClass      = 32
	bytesPerDual         = 6
	bytesPerEntry        = 3
	bytesPerWeight       = 6  // of the model
	keptPerEntry         = 16 // of a v_n: feature, float64 sum, stiffness, and the room they grew in
	keptPerDual          = 16 // row and lanes of few duals each, float64
	keptPerOverride      = 8  // of an internal's vector
	bytesPerDense        = 5.25
)

// Seconds of one core: for a nonzero and a class of one pass over the data, all passes of a
// sweep; and for a byte that a sweep writes: coded, stored, read, reduced. They agree with
// generated data at scales 0.001 to 0.004 (go run ./test/bench/scaling) and with 44,317 short
// texts of 3,383 classes to a quarter, on an AVX-512 Xeon with kernels in Go.
const (
	visitSeconds, byteSeconds             = 0.7e-9, 55e-9
	smoothVisitSeconds, smoothByteSeconds = 6e-9, 5e-9 // the logistic loss: exponentials, and dense values
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
		smoothPlanOf(tree, spec, plan).estimate(&e)
	} else {
		sparse(&e, tree, spec, plan)
	}
	work := 0.0
	for _, v := range blockCosts(tree, data, plan) {
		work += visit * v
	}
	values := value * float64(e.StoreSweep) / 2 // half is of the task that writes a value, half of the one that reads it
	e.SecondsSweep = []float64{work + values, values}
	if len(tree.Internals()) == 0 { // nothing is reduced
		e.SecondsSweep, e.Sweeps = e.SecondsSweep[:1], flatSweeps
	}
	return e
}

// sparse sets the bytes of an estimate that duals, the terminals' v and the internals' x make
// up. x is dense on a graph. Without internals there is no v, and the duals are what is kept.
func sparse(e *method.Estimate, tree *taxonomy.Tree, spec *taxonv1.JobSpec, plan *Plan) {
	data := spec.GetData()
	d, terminals, internals := data.GetFeatures()+1, uint64(len(plan.BlockTerminals)), uint64(len(tree.Internals()))
	positives := uint64(0)
	for _, n := range data.GetLabelInstances() {
		positives += uint64(n)
	}
	support := supportPerPositive*positives + supportPerClass*terminals
	entries := min(float64(support)*float64(data.GetNonzeros())/float64(max(data.GetInstances(), 1)), float64(terminals)*float64(d))
	weights := uint64(bytesPerWeight * entries)
	if internals == 0 {
		entries = 0
	} else if spec.GetOptions().GetLoss() == "squared-hinge" {
		e.WorkerSlot += curveBytesPerFeature * d
	}
	overrides := internalEntries(tree, data)
	coded := bytesPerEntry * overrides
	if tree.IsGraph() {
		overrides = internals * d
		coded = uint64(bytesPerDense * float64(overrides))
	}
	e.WorkerShared += keptPerOverride * overrides * versions(plan)
	e.WorkerKept = method.FirstSweeps * (keptPerDual*support + uint64(keptPerEntry*entries))
	e.StoreSweep = bytesPerDual*support + uint64(bytesPerEntry*entries) + coded
	e.StoreJob = 2*e.StoreSweep + max(e.StoreSweep, weights)
	e.StoreLocal = method.FirstSweeps*2*e.StoreSweep + max(method.FirstSweeps*e.StoreSweep, weights)
	e.TrafficSweep = 2*e.StoreSweep + bytesPerDual*support // written once; duals read by maps, v by reduces, x by maps
}

// SlotBytes is what the solve of a block over such data takes, the stiffness below internals not counted.
func SlotBytes(o *taxonv1.Options, d *taxonv1.Data) uint64 {
	n := slotBytesPerFeature*(d.GetFeatures()+1) + slotBytesPerRow*d.GetInstances() + slotBytesFixed
	if o.GetLoss() != "logistic" && o.GetLoss() != "squared-hinge" {
		n += denseRows(d)
	}
	return n
}

const (
	denseBelow = 1024 // columns: half-full rows of fewer are laid out lane by lane (mapper/lanes.go),
	denseLanes = 4    // so many lanes of each at most, in lines of 16 features
	denseLane  = 32   // its dual, bound, place and number
)

// denseRows is the bytes that a slot of a hinge job takes to lay rows out lane by lane, at
// most; 0 where it does not, as they are sparse or wide.
func denseRows(d *taxonv1.Data) uint64 {
	rows, features := d.GetInstances(), d.GetFeatures()
	if features >= denseBelow || 2*d.GetNonzeros() < rows*features {
		return 0
	}
	return denseLanes * rows * (64*((features+16)/16) + denseLane)
}

// versions is how many versions of the internals a worker holds decoded: x, the one before,
// and, where all blocks see the same, the one that a guard step may go back to.
func versions(plan *Plan) uint64 {
	if len(plan.GroupBegin) <= 2 {
		return 3
	}
	return 2
}
