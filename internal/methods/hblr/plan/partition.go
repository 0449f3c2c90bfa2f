package plan

import (
	"math"

	"taxon/coordinator/method"
)

// partition is the iteration within a round of a variational soft-max. Each leaf is solved with a
// number for each row, the offset, in place of the other leaves. The offsets are then recomputed
// from the leaves, until they converge. The leaves are then at their joint maximum.
type partition struct {
	First bool      `json:",omitempty"` // the job begins: no offset is known
	Mix   []float64 `json:",omitempty"` // Leaves.Mix of the current solve

	// Past is the number of past offsets of this round that the extrapolation uses.
	Past    int
	Count   int     // solves completed in this round
	Last    float64 // objective after the last solve
	History history
}

const (
	// maxSolves bounds the solves of a round. The next round continues from their result.
	maxSolves = 300

	// offsetNoise is the rounding error of offsets, and thus the smallest tolerance for them.
	offsetNoise = 1e-13

	// boundOffset is the loosest tolerance of a variational job. The bound is flat at the best
	// offset, so an error lowers it by its square only. If the bound decreases because of the
	// error, goBack handles it.
	boundOffset = 1e-3
)

// softmax adds the reads and writes of the leaves of a soft-max.
func (d *driver) softmax(blocks *method.Tasks) {
	p := Leaves{Tolerance: d.leafTolerance(), Mix: d.Partition.Mix, SharesOnly: d.Partition.First}
	blocks.Params, blocks.Writes = method.Encode(p), []string{Leaf, Share}
	for back := range p.Mix {
		blocks.Reads = append(blocks.Reads, method.Read{Value: Offset, Back: back, All: true})
	}
	if d.plan.Bounded {
		blocks.Writes = append(blocks.Writes, Sigma)
	}
}

// partition returns the task that recomputes the offsets.
func (d *driver) partition(whole method.Tasks) method.Tasks {
	whole.Op, whole.Params = OpPartition, method.Encode(Partition{Mix: d.Partition.Mix, Past: d.Partition.Past})
	whole.Reads, whole.Writes = []method.Read{{Value: Share, All: true}}, []string{Offset, OffsetF}
	for back := range d.Partition.Mix {
		whole.Reads = append(whole.Reads, method.Read{Value: Offset, Back: back, All: true})
	}
	for back := range d.Partition.Past {
		whole.Reads = append(whole.Reads, method.Read{Value: OffsetF, Back: back})
	}
	return whole
}

// contribute returns the blocks' task that ends the leaves' part of a round: it computes their
// contributions to their parents.
func (d *driver) contribute(blocks method.Tasks) method.Tasks {
	blocks.Op, blocks.Params = OpContribute, method.Encode(struct{}{})
	blocks.Reads = []method.Read{{Value: Above, All: true}, {Value: XAlpha, All: true}, {Value: Leaf},
		{Value: PreviousMeans}, {Value: Offset, All: true}}
	if d.plan.Bounded {
		blocks.Reads = append(blocks.Reads, method.Read{Value: Sigma})
	}
	blocks.Writes = []string{Contribution, Trace, PreviousMeans}
	return blocks
}

// endSolve processes the result of a solve of the leaves. Their contributions come next, or another
// solve.
func (d *driver) endSolve(total method.Sums) {
	t := d.Partition
	if t.First {
		*t = partition{Mix: []float64{1}}
		d.Objective, d.Stage = 0, stageLeaves
		return
	}
	enough := max(d.leafTolerance(), offsetNoise)
	if d.plan.Bounded {
		if enough = boundOffset; d.Means > 0 {
			enough = max(min(leafShare*d.Means, boundOffset), offsetNoise)
		}
	}
	if t.Count++; total[SumChange] <= enough || t.Count >= maxSolves || d.state.TimeUp && !d.plan.Bounded {
		// even if the time is up, the bound must not decrease
		d.Stage = stageContribute
		return
	}
	var products [Memory + 1]float64
	copy(products[:], total[sumProducts:])
	t.History.accept(products, t.Past, 0)
	if t.Count > 1 && d.Objective > t.Last+minFall*math.Abs(t.Last) {
		t.History.Older = 0 // the plain step lowers the objective from any point
	}
	t.Mix, t.Last = t.History.mix(runaway), d.Objective
	t.Past = min(len(t.Mix), OffsetMemory)
	d.Objective, d.Stage = 0, stageLeaves
}
