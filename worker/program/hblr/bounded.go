package hblr

import (
	"context"
	"math"
	"slices"

	"taxon/coordinator/method"
	params "taxon/coordinator/method/hblr"
	"taxon/mapper/hblr"
)

// sigma reads the square roots of a block's variances; before the first solve they are those of
// the prior.
func (k *task) sigma(ctx context.Context, b *hblr.Block) (sigmas, error) {
	j, lanes := k.job, len(b.Positive)
	v, err := k.own(ctx, params.Sigma, 0, j.columns*lanes, func() []float64 {
		out := make([]float64, j.columns*lanes)
		for l, prec := range b.Precision {
			for f := range j.columns {
				out[f*lanes+l] = 1 / math.Sqrt(prec.At(f))
			}
		}
		return out
	})
	return sigmas{v, lanes}, err
}

// sigmas are a block's, columns x lanes.
type sigmas struct {
	v     []float64
	lanes int
}

// Spread implements spreader.
func (s sigmas) Spread(f, l int) float64 {
	x := s.v[f*s.lanes+l]
	return x * x
}

// boundedLeaves runs OpLeaves of a variational job.
func (k *task) boundedLeaves(ctx context.Context, b *hblr.Block, before []float64, tolerance float64) (method.Sums, error) {
	j := k.job
	sigma, err := k.sigma(ctx, b)
	if err != nil {
		return nil, err
	}
	w, sums := slices.Clone(before), make(method.Sums, params.Figures)
	var pull *hblr.Pull
	var trace []float64
	k.Compute(func() {
		s := j.free.Get().(*hblr.Bounded)
		defer j.free.Put(s)
		s.Open(j.rows, b)
		passes := 0
		if passes, err = s.Solve(ctx, j.rows, w, sigma.v, tolerance); err != nil {
			return
		}
		sums[params.SumPasses] = float64(passes)
		for l := range b.Positive {
			sums[params.SumObjective] += s.Negative(w, sigma.v, j.scale, l)
		}
		bound := make([]float64, len(w))
		s.Curvature(j.rows, bound)
		pull, trace = j.told(sigma, b, k.Item, w, before, bound)
	})
	if err != nil {
		return nil, err
	}
	values := append(k.pulls(pull), k.value(params.Leaf, w), k.value(params.Sigma, sigma.v), k.value(params.Trace, trace))
	return sums, k.Put(ctx, values, nil)
}
