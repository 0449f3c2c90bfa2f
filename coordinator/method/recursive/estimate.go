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
	dataBytesPerNonzero  = 8
	dataBytesPerRow      = 24
	treeBytesPerNode     = 200
	supportPerPositive   = 4
	supportPerClass      = 32
	bytesPerDual         = 6
	bytesPerEntry        = 3
	keptPerEntry         = 16 // of a v_n: feature, float64 sum, stiffness, and the room they grew in
	keptPerDual          = 16 // row and lanes of few duals each, float64
	visitSeconds         = 0.6e-9
	visitsPerNonzero     = 1.5 // pricing passes, spread over the sweeps, and passes over working sets
)

// estimate says what a plan of a tree takes.
func estimate(tree *taxonomy.Tree, spec *taxonv1.JobSpec, plan *Plan) method.Estimate {
	d, rows, nonzeros := spec.GetData().GetFeatures()+1, spec.GetData().GetInstances(), spec.GetData().GetNonzeros()
	terminals := uint64(len(plan.BlockTerminals))
	nodes := uint64(tree.Len())
	e := method.Estimate{
		Terminals: int(terminals), Nodes: int(nodes),
		SlotHolds: fmt.Sprintf("a block of 16 classes over %d features, and what is kept of those before", d-1),
	}
	row := float64(nonzeros) / float64(max(rows, 1))
	positives := uint64(0)
	for _, n := range spec.GetData().GetLabelInstances() {
		positives += uint64(n)
	}
	support := supportPerPositive*positives + supportPerClass*terminals
	entries := min(float64(support)*row, float64(terminals)*float64(d))
	overrides := internalEntries(tree, spec.GetData())
	logistic := spec.GetOptions().GetLoss() == "logistic"
	if tree.IsGraph() { // dense vectors
		overrides = uint64(len(tree.Internals())) * d
	}
	if logistic { // counted apart
		entries, overrides, support = 0, 0, 0
	}

	e.WorkerShared = DataBytes(rows, nonzeros) + treeBytesPerNode*nodes + 8*overrides*versions(plan)
	e.WorkerKept = method.FirstSweeps * (keptPerDual*support + uint64(keptPerEntry*entries))
	e.WorkerSlot = SlotBytes(spec.GetOptions(), rows, d-1, nonzeros)
	if spec.GetOptions().GetLoss() == "squared-hinge" && len(tree.Internals()) > 0 {
		e.WorkerSlot += curveBytesPerFeature * d
	}
	e.Coordinator = 64*uint64(len(plan.BlockSet)+len(plan.RangeBegin)-1) + treeBytesPerNode*nodes
	e.StoreSweep = bytesPerDual*support + uint64(bytesPerEntry*entries) + bytesPerEntry*overrides
	e.StoreJob = 3 * e.StoreSweep
	e.StoreLocal = e.StoreJob
	e.TrafficSweep = 2*e.StoreSweep + bytesPerDual*support // written once; duals read by maps, v by reduces, x by maps
	if logistic {
		e.WorkerSlot += smoothRows * rows
		smoothPlanOf(tree, spec, plan).estimate(&e)
	}
	e.VisitsSweep = visitsPerNonzero * float64(nonzeros) * float64(terminals)
	e.SecondsSweep = visitSeconds * e.VisitsSweep
	return e
}

// DataBytes is what a matrix of so many rows and nonzeros takes.
func DataBytes(rows, nonzeros uint64) uint64 {
	return dataBytesPerNonzero*nonzeros + dataBytesPerRow*rows
}

// SlotBytes is what the solve of a block over such data takes, the stiffness below internals not counted.
func SlotBytes(o *taxonv1.Options, rows, features, nonzeros uint64) uint64 {
	n := slotBytesPerFeature*(features+1) + slotBytesPerRow*rows + slotBytesFixed
	if o.GetLoss() != "logistic" && o.GetLoss() != "squared-hinge" {
		n += method.DenseRows(rows, features, nonzeros)
	}
	return n
}

// versions is how many versions of the internals a worker holds decoded: x, the one before,
// and, where all blocks see the same, the one that a guard step may go back to.
func versions(plan *Plan) uint64 {
	if len(plan.GroupBegin) <= 2 {
		return 3
	}
	return 2
}
