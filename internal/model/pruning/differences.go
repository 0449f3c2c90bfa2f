// Package pruning makes smaller models: it drops small differences between the weights of a node
// and its parent, stores the rest by column, and searches the threshold for a given loss or size.
package pruning

import (
	"fmt"
	"math"
	"slices"

	"taxon/internal/model"
	"taxon/internal/model/shard"
)

// pruner walks the tree as a sequence of differences from the parent, and drops small ones:
//
//	given     w_n, the trained vectors, and a threshold t >= 0
//	find      d_n, sparse, with W_n = sum of d over the path from the root to n
//	such that |W_n[c] - w_n[c]| < t (at t = 0: below the rounding of the value type) for every node and column
//
// d_n[c] is w_n[c] - W_parent(n)[c] if that is at least t in absolute value, and 0 otherwise. The
// difference is relative to the kept weights of the parent, so errors do not accumulate along the
// path and the rounding of a node's values is corrected by its children. The bias is never dropped.
// Only columns that n overrides need to be considered: in all others both w and W are the parent's.
type pruner struct {
	m         *model.Model
	threshold float64
	// values is the form to which differences are rounded.
	values string
	// scale is the scale of each column, for shard.Bytes.
	scale []float32
	kept  *shard.Path[float64]
	// columns and deltas are those of the node visited last.
	columns []uint32
	deltas  []float32
}

func newPruner(m *model.Model, o Options, scale []float32) *pruner {
	return &pruner{m: m, threshold: o.Threshold, values: o.Values, scale: scale, kept: shard.NewPath[float64](m.Columns())}
}

// walk calls visit with the differences of each node in [first, last), in node order. The slices
// are valid during the call only.
func (p *pruner) walk(first, last int, visit func(n int, columns []uint32, deltas []float32) error) error {
	p.kept.LeaveTo(-1)
	if first >= last {
		return nil
	}
	if err := p.seek(p.m.Above(int32(first))); err != nil {
		return err
	}
	for n := first; n < last; n++ {
		p.kept.LeaveTo(p.m.Above(int32(n)))
		if err := p.visit(int32(n)); err != nil {
			return err
		}
		if err := visit(n, p.columns, p.deltas); err != nil {
			return err
		}
	}
	return nil
}

// seek enters the ancestors of n and n itself. For -1 it enters nothing.
func (p *pruner) seek(n int32) error {
	if n < 0 {
		return nil
	}
	if err := p.seek(p.m.Above(n)); err != nil {
		return err
	}
	return p.visit(n)
}

// visit computes the differences of node n, whose parent must have been entered last. It enters n
// if nodes below it follow.
func (p *pruner) visit(n int32) error {
	rec := p.m.Records()[n]
	p.columns, p.deltas = p.columns[:0], p.deltas[:0]
	bias := uint32(len(p.m.Feature))
	for i, c := range rec.Columns {
		missing := float64(rec.Values[i]) - p.kept.Current[c]
		if missing == 0 || math.Abs(missing) < p.threshold && c != bias {
			continue
		}
		scale := float32(0)
		if p.scale != nil {
			scale = p.scale[c]
		}
		d := shard.Round(missing, p.values, scale)
		if d-d != 0 {
			return fmt.Errorf("node %s: weight %g is too large for the value type: choose float32", p.m.NodeName(int(n)),
				missing)
		}
		if d != 0 {
			p.columns, p.deltas = append(p.columns, c), append(p.deltas, d)
		}
	}
	if !p.m.Tree.Leaf[n] {
		p.kept.Enter(n, slices.Clone(p.columns))
		for i, c := range p.columns {
			p.kept.Current[c] += float64(p.deltas[i])
		}
	}
	return nil
}
