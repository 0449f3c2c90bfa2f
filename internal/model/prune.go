package model

import (
	"fmt"
	"math"
)

// pruner walks the tree as a sequence of differences from the parent and leaves out the
// small ones:
//
//	given     w_n, the trained vectors, and a threshold t >= 0
//	find      d_n, sparse, with W_n = sum of d over the path from the root to n
//	such that |W_n[c] - w_n[c]| < t (at t = 0: below the rounding of the value type) for every node and column
//
// by d_n[c] = w_n[c] - W_parent(n)[c] where that is at least t in absolute value, else
// nothing. The difference is taken from what the parent has *kept*, so what is left out
// on the way down never adds up, and what one node's value was rounded by its children
// put right. The bias is never left out for its size. Only columns that n overrides need
// looking at: on any other one both w and W are the parent's.
type pruner struct {
	m         *Model
	threshold float64
	half      bool // differences are rounded to float16
	kept      []float64
	frames    []prunedFrame
	columns   []uint32 // of the node visited last
	deltas    []float32
}

type prunedFrame struct {
	node    int32
	columns []uint32
	old     []float64
}

func newPruner(m *Model, o PruneOptions) *pruner {
	return &pruner{m: m, threshold: o.Threshold, half: o.Half, kept: make([]float64, m.columns())}
}

// walk calls visit with the differences of each node in [first, last) in node order; the
// slices are valid during the call only.
func (p *pruner) walk(first, last int, visit func(n int, columns []uint32, deltas []float32) error) error {
	p.leaveTo(-1)
	if first >= last {
		return nil
	}
	if err := p.seek(p.m.above(int32(first))); err != nil {
		return err
	}
	for n := first; n < last; n++ {
		p.leaveTo(p.m.above(int32(n)))
		if err := p.visit(int32(n)); err != nil {
			return err
		}
		if err := visit(n, p.columns, p.deltas); err != nil {
			return err
		}
	}
	return nil
}

// seek enters the ancestors of n, and n itself; -1 enters nothing.
func (p *pruner) seek(n int32) error {
	if n < 0 {
		return nil
	}
	if err := p.seek(p.m.above(n)); err != nil {
		return err
	}
	return p.visit(n)
}

// visit finds the differences of node n, whose parent was entered last, and enters n if
// nodes below it can follow.
func (p *pruner) visit(n int32) error {
	rec := p.m.overrides()[n]
	p.columns, p.deltas = p.columns[:0], p.deltas[:0]
	bias := uint32(len(p.m.Feature))
	for i, c := range rec.columns {
		missing := float64(rec.values[i]) - p.kept[c]
		if missing == 0 || math.Abs(missing) < p.threshold && c != bias {
			continue
		}
		d := float32(missing)
		if p.half {
			d = fromHalf(toHalf(d))
		}
		if d-d != 0 {
			return fmt.Errorf("node %s: weight %g is too large for the value type: choose float32", p.m.NodeName(int(n)), missing)
		}
		if d != 0 {
			p.columns, p.deltas = append(p.columns, c), append(p.deltas, d)
		}
	}
	if !p.m.Tree.Leaf[n] {
		p.enter(n)
	}
	return nil
}

func (p *pruner) enter(n int32) {
	k := len(p.frames)
	if k < cap(p.frames) {
		p.frames = p.frames[:k+1]
	} else {
		p.frames = append(p.frames, prunedFrame{})
	}
	f := &p.frames[k]
	f.node, f.columns, f.old = n, append(f.columns[:0], p.columns...), f.old[:0]
	for i, c := range f.columns {
		f.old = append(f.old, p.kept[c])
		p.kept[c] += float64(p.deltas[i])
	}
}

func (p *pruner) leaveTo(n int32) {
	for k := len(p.frames) - 1; k >= 0 && p.frames[k].node != n; k-- {
		f := &p.frames[k]
		for i, c := range f.columns {
			p.kept[c] = f.old[i]
		}
		p.frames = p.frames[:k]
	}
}
