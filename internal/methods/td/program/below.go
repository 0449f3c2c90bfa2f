package program

import (
	"context"

	"taxon/coordinator/method"
	"taxon/internal/jobspec"
	rr "taxon/internal/methods/rr/plan"
	"taxon/internal/methods/subtree"
	params "taxon/internal/methods/td/plan"
	"taxon/internal/methods/td/ridge"
	"taxon/mapper"
	"taxon/worker/program"
)

// block solves the task's block as a flat problem on the rows below its node. It repeats full
// passes until the driver of flat problems stops.
func (j *job) block(ctx context.Context, t *program.Task, once bool) (method.Sums, []program.NodeWeights, error) {
	children := j.plan.Block(t.Item)
	p := j.data.Node(j.plan.Node[j.plan.Problem[t.Item]], children)
	rows := j.whole
	if p.X != rows.X {
		rows = mapper.NewProblem(p.X, rows.Loss, rows.C, rows.Bias)
		rows.Kernel, rows.Weight = j.whole.Kernel, p.Weight
	}
	if j.plan.Ridge {
		return ridgeBlock(ctx, p, rows, children)
	}
	b, total := &mapper.Block{Positive: p.Positive}, rows.Total()
	for _, positive := range p.Positive {
		b.Slot = append(b.Slot, -1)
		b.Weight = append(b.Weight, jobspec.PositiveWeight(j.options.PositiveWeight, rows.Count(positive), total))
	}
	o := rr.Settings{Loss: j.options.Loss, C: j.options.C, Gap: j.options.Gap, MaxSweeps: j.options.MaxSweeps}
	if once {
		o.MaxSweeps = 1
	}
	sums, solver := make(method.Sums, params.Figures), rows.NewSolver()
	var st *mapper.State
	for d := rr.Flat(o, len(children), uint64(rows.X.Rows)); ; {
		step, _ := d.Next()
		if step.Emit {
			break
		}
		var m rr.Map
		if err := method.Decode(step.Tasks[0].Params, &m); err != nil {
			return nil, nil, err
		}
		r, err := solver.Solve(ctx, b, st, mapper.Options{
			Epochs: int(m.Epochs), MaxEpochs: int(m.MaxEpochs), InnerGap: m.InnerGap, Price: m.Price, Band: m.Band,
			Precise: m.Precise,
			Seed:    t.Seed + uint64(sums[params.SumSolves]),
		})
		if err != nil {
			return nil, nil, err
		}
		st = &r.State
		sums[params.SumPrimal], sums[params.SumDual], sums[params.SumSupport] = r.Sums.Primal, r.Sums.Dual,
			float64(r.Sums.Support)
		sums[params.SumSolves]++
		sums[params.SumVisits] += float64(r.Sums.Visits)
		figures := make(method.Sums, rr.SumVisits+1)
		figures[rr.SumPrimal], figures[rr.SumDual], figures[rr.SumInnerGap] = r.Sums.Primal, r.Sums.Dual, r.Sums.InnerGap
		if _, err := d.Commit([]method.Sums{figures}); err != nil {
			return nil, nil, program.Deterministic(err)
		}
	}
	weights := make([]program.NodeWeights, len(children))
	for l, w := range solver.Weights(b, st) {
		weights[l] = program.NodeWeights{Node: children[l], Columns: p.ColumnsOf(w.Feature), Values: w.Value}
	}
	return sums, weights, nil
}

// ridgeBlock solves the problems of a block in closed form.
func ridgeBlock(ctx context.Context, p *subtree.Problem, rows *mapper.Problem,
	children []uint32) (method.Sums, []program.NodeWeights, error) {
	sums, weights, s := make(method.Sums, params.Figures), make([]program.NodeWeights, len(children)), ridge.New(rows)
	sums[params.SumSolves] = 1
	for l, positive := range p.Positive {
		r, err := s.Solve(ctx, positive)
		if err != nil {
			return nil, nil, err
		}
		sums[params.SumPrimal] += r.Primal
		sums[params.SumDual] += r.Dual
		sums[params.SumSupport] += float64(rows.X.Rows) // every row has a residual, and so a dual
		sums[params.SumVisits] += float64(rows.X.NNZ) * float64(r.Steps)
		weights[l] = program.NodeWeights{Node: children[l], Columns: p.ColumnsOf(r.Feature), Values: r.Value}
	}
	return sums, weights, nil
}
