package program

import (
	"context"

	"taxon/coordinator/method"
	params "taxon/internal/methods/hblr/plan"
	"taxon/internal/methods/hblr/solver"
	"taxon/internal/model/form"
	"taxon/worker/program"
)

// record collects the columns of a node: its mean, followed by variances and precisions
// (internal/model/form).
type record struct {
	program.NodeWeights
	width int
}

func (j *job) record(n int32) *record {
	return &record{program.NodeWeights{Node: uint32(n)}, j.columns}
}

func (r *record) add(column int, value float32) {
	if value != 0 {
		r.Columns, r.Values = append(r.Columns, uint32(column)), append(r.Values, value)
	}
}

// precision adds a precision of column f, split into two float32.
func (r *record) precision(f int, x float64) {
	high, low := form.SplitFloat64(x)
	at := form.PrecisionColumn(r.width, f)
	r.add(at, high)
	r.add(at+1, low)
}

// emit runs OpEmit for a block's leaves.
func (k *task) emit(ctx context.Context) (method.Sums, error) {
	j := k.job
	if err := k.item(params.Blocks, len(j.slots), &struct{}{}); err != nil {
		return nil, err
	}
	b, err := k.block(ctx)
	if err != nil {
		return nil, err
	}
	lanes := len(b.Positive)
	w, err := k.own(ctx, params.Leaf, 0, j.columns*lanes, func() []float64 { return startLeaves(b, j.columns) })
	if err != nil {
		return nil, err
	}
	if j.softmax {
		if b.Offset, err = k.tight(ctx); err != nil {
			return nil, err
		}
	}
	var variances varianceSource
	if j.bounded {
		if variances, err = k.sigma(ctx, b); err != nil {
			return nil, err
		}
	}
	var nodes []program.NodeWeights
	k.Compute(func() {
		if !j.bounded {
			s := j.free.Get().(*solver.Scratch)
			defer j.free.Put(s)
			s.Open(j.rows, b)
			s.Evaluate(j.rows, w)
			variances = s
		}
		for l, n := range j.plan.Block(k.Item) {
			r := j.record(int32(n))
			for f := range j.columns {
				r.add(f, float32(w[f*lanes+l]))
			}
			for f, scale := range j.scale {
				if scale > 0 {
					r.add(form.VarianceColumn(j.columns, f), float32(variances.Variance(f, l)))
				}
			}
			if j.variant == solver.M3 && j.tree.Owns(j.variant, int32(n)) {
				r.precision(0, b.Precision[l].At(0))
			}
			nodes = append(nodes, r.NodeWeights)
		}
	})
	return make(method.Sums, params.Figures), k.PutWeights(ctx, nodes)
}

// emitMeans runs OpEmitMean.
func (k *task) emitMeans(ctx context.Context) (method.Sums, error) {
	j := k.job
	if err := k.item(params.Ranges, j.ranges, &struct{}{}); err != nil {
		return nil, err
	}
	x, err := k.point(ctx, params.X, 0)
	if err != nil {
		return nil, err
	}
	lo, hi := j.bounds(k.Item)
	var nodes []program.NodeWeights
	for i, n := range j.tree.Nodes {
		r := j.record(n)
		for c, v := range x[i*(hi-lo):][:hi-lo] {
			r.add(lo+c, float32(v))
		}
		nodes = append(nodes, r.NodeWeights)
	}
	return make(method.Sums, params.Figures), k.PutWeights(ctx, nodes)
}

// emitAlphas runs OpEmitAlpha.
func (k *task) emitAlphas(ctx context.Context) (method.Sums, error) {
	j := k.job
	nodes := make([]*record, len(j.tree.Nodes))
	for i, n := range j.tree.Nodes {
		nodes[i] = j.record(n)
	}
	if j.m2() {
		if err := k.item(params.Ranges, j.ranges, &struct{}{}); err != nil {
			return nil, err
		}
		x, err := k.point(ctx, params.X, 0)
		if err != nil {
			return nil, err
		}
		lo, hi := j.bounds(k.Item)
		logs := x[len(x)/2:]
		for i, r := range nodes {
			for c, v := range logs[i*(hi-lo):][:hi-lo] {
				if j.scale[lo+c] > 0 {
					r.precision(lo+c, solver.Exp(v))
				}
			}
		}
	} else {
		if err := k.item(params.Whole, 1, &struct{}{}); err != nil {
			return nil, err
		}
		alpha, err := k.alpha(ctx)
		if err != nil {
			return nil, err
		}
		for i, n := range j.tree.Nodes {
			if j.tree.Owns(j.variant, n) {
				nodes[i].precision(0, alpha[n])
			}
		}
	}
	var out []program.NodeWeights
	for _, r := range nodes {
		out = append(out, r.NodeWeights)
	}
	return make(method.Sums, params.Figures), k.PutWeights(ctx, out)
}
