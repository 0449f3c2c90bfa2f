package recursive

import (
	"slices"

	"taxon/coordinator/method"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// With the logistic loss every dual is nonzero, and all vectors are dense: a terminal's v,
// what its block sends to each parent (v, and in priced sweeps G), the internals' x. Bytes
// of an entry, of the values (their buffers are a little longer than they are) and of what a
// worker keeps or makes of them:
const (
	smoothState   = 4              // float32 of a terminal's v; an index more for all lanes
	smoothSent    = 2 * 7          // v and G: index, stiffness, float32
	smoothWeights = 6              // index and float32 of a terminal's weights
	smoothDecoded = 3 * 8          // x, x_prev and the one that takes their place
	smoothTiles   = 7 * 64         // a feature of a slot: see mapper.logisticSolver
	smoothRows    = 4 * 64         // a row of a slot
	smoothResult  = 3 * 64         // a feature: the new v while it grows, and coded
	smoothSend    = 2*13*5/4 + 12  // a feature and parent of a block: v and G as they grow, and coded
	smoothReduceV = 2 * (13 + 16)  // a feature and sender of a range: decoded, and by feature
	smoothReduceX = 2*(8+8) + 2*16 // a feature and internal: x and x_prev, by node and by feature, and x+
	smoothUndo    = 24             // a feature and level: the walk's log
)

// smoothPlan counts what a plan of a job with logistic loss makes dense.
type smoothPlan struct {
	features, terminals, internals uint64
	senders                        uint64 // pairs of a block and a parent of its terminals
	most                           uint64 // parents of one block
	width                          uint64 // features of the widest range
	depth                          uint64
}

func smoothPlanOf(tree *taxonomy.Tree, spec *taxonv1.JobSpec, plan *Plan) smoothPlan {
	s := smoothPlan{
		features: spec.GetData().GetFeatures() + 1, terminals: uint64(len(plan.BlockTerminals)),
		internals: uint64(len(tree.Internals())), depth: uint64(tree.MaxDepth()) + 1,
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

// parentsOf is the number of distinct parents of a block's terminals, which stand family by
// family; on a graph, of distinct sets of neighbours.
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

// estimate sets the bytes of an estimate that dense vectors make up.
func (s smoothPlan) estimate(e *method.Estimate) {
	terminals := s.features * (smoothState*s.terminals + s.terminals/blockTerminals + 1)
	sent, vectors := smoothSent*s.features*s.senders, uint64(bytesPerDense*float64(s.features*s.internals))
	e.StoreSweep = terminals + sent + vectors
	e.TrafficSweep = 2*e.StoreSweep + terminals
	// One process keeps what the terminals wrote last and are writing, and x, x_prev and what
	// is being written, once more where the safeguard does a step again; in the end the weights
	// take the place of one. A cluster keeps what those were made from, too.
	weights := smoothWeights*s.features*s.terminals + vectors
	e.StoreLocal = max(2*(terminals+sent)+3*vectors, terminals+sent+4*vectors, terminals+sent+3*vectors+weights)
	e.StoreJob = 3*(terminals+sent) + 5*vectors
	e.WorkerShared += smoothDecoded * s.features * s.internals
	e.WorkerSlot += s.features*(smoothTiles+smoothResult+smoothSend*s.most+smoothUndo*s.depth) +
		s.width*(smoothReduceV*s.senders+smoothReduceX*s.internals)
}
