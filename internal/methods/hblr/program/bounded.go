package program

import (
	"context"
	"math"
	"slices"

	"taxon/coordinator/method"
	params "taxon/internal/methods/hblr/plan"
	"taxon/internal/methods/hblr/solver"
)

// sigma reads the square roots of the variances of a block's leaves. Before the first solve they
// follow from the prior.
func (k *task) sigma(ctx context.Context, b *solver.Block) (sigmas, error) {
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

// sigmas holds the square roots of a block's variances, columns x lanes.
type sigmas struct {
	v     []float64
	lanes int
}

// Variance implements varianceSource.
func (s sigmas) Variance(f, l int) float64 {
	x := s.v[f*s.lanes+l]
	return x * x
}

// boundedLeaves runs OpLeaves of a variational job.
func (k *task) boundedLeaves(ctx context.Context, b *solver.Block, before []float64,
	tolerance float64) (method.Sums, error) {
	j := k.job
	sigma, err := k.sigma(ctx, b)
	if err != nil {
		return nil, err
	}
	sigma.v = slices.Clone(sigma.v) // the store owns the slice that was read
	w, sums := slices.Clone(before), make(method.Sums, params.Figures)
	var contribution *solver.Contribution
	var trace []float64
	k.Compute(func() {
		s := j.free.Get().(*solver.Full)
		defer j.free.Put(s)
		bound := make([]float64, len(w))
		if err = j.solveBounded(ctx, s, b, w, sigma.v, bound, tolerance, sums, nil); err == nil {
			contribution, trace = j.contribute(sigma, b, k.Item, w, before, bound)
		}
	})
	if err != nil {
		return nil, err
	}
	values := append(k.contributions(contribution), k.value(params.Leaf, w), k.value(params.Sigma, sigma.v),
		k.value(params.Trace, trace))
	return sums, k.Put(ctx, values, nil)
}

// share holds, for each row, sums over the leaves of a block
// (internal/methods/hblr/solver.Bounded.Share).
type share struct{ tau, pull []float64 }

// solveBounded solves a block's leaves. It writes bounds on the curvature of their losses to bound.
// If shares is not nil, it adds the leaves' terms to the sums in it.
func (j *job) solveBounded(ctx context.Context, s *solver.Full, b *solver.Block, w, sigma, bound []float64,
	tolerance float64, sums method.Sums, shares *share) error {
	if j.full {
		return j.solveOnes(ctx, s, b, w, sigma, bound, tolerance, sums, shares)
	}
	return j.solveAll(ctx, &s.Bounded, b, w, sigma, bound, tolerance, sums, shares)
}

// solveAll solves all leaves of a block together, with diagonal covariances.
func (j *job) solveAll(ctx context.Context, s *solver.Bounded, b *solver.Block, w, sigma, bound []float64,
	tolerance float64, sums method.Sums, shares *share) error {
	s.Open(j.rows, b)
	passes, err := s.Solve(ctx, j.rows, w, sigma, tolerance)
	if err != nil {
		return err
	}
	sums[params.SumPasses] = float64(passes)
	for l := range b.Positive {
		sums[params.SumObjective] += s.Negative(w, sigma, j.scale, l)
	}
	s.Curvature(j.rows, bound)
	if shares != nil {
		s.Share(shares.tau, shares.pull)
	}
	return nil
}

// solveOnes solves leaves one after the other, with full covariances.
func (j *job) solveOnes(ctx context.Context, s *solver.Full, b *solver.Block, w, sigma, bound []float64,
	tolerance float64, sums method.Sums, shares *share) error {
	lanes := len(b.Positive)
	var one [3][]float64
	for i := range one {
		one[i] = make([]float64, j.columns)
	}
	for l := range lanes {
		for f := range j.columns {
			one[0][f], one[1][f] = w[f*lanes+l], sigma[f*lanes+l]
		}
		s.Open(j.rows, &solver.Block{Positive: b.Positive[l : l+1], Above: b.Above[l : l+1], Precision: b.Precision[l : l+1],
			Offset: b.Offset})
		passes, err := s.SolveOne(ctx, j.rows, one[0], one[1], tolerance)
		if err != nil {
			return err
		}
		sums[params.SumPasses] += float64(passes)
		sums[params.SumObjective] += s.Negative(one[0], one[1], j.scale)
		s.Curvature(j.rows, one[2])
		if shares != nil {
			s.Share(shares.tau, shares.pull)
		}
		for f := range j.columns {
			w[f*lanes+l], sigma[f*lanes+l], bound[f*lanes+l] = one[0][f], one[1][f], one[2][f]
		}
	}
	return nil
}
