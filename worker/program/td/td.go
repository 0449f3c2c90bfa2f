// Package td runs the tasks of the methods that train each node for itself: td, h-svm, h-rls.
// They are described in coordinator/method/td.
package td

import (
	"context"
	"fmt"
	"os"
	"sync"

	"taxon/coordinator/method"
	"taxon/coordinator/method/recursive"
	params "taxon/coordinator/method/td"
	"taxon/internal/dataset"
	"taxon/internal/jobspec"
	"taxon/internal/taxonomy"
	"taxon/mapper"
	"taxon/mapper/ridge"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker/program"
)

// Method is one of the methods, by its name.
type Method string

// Name implements program.Method.
func (m Method) Name() string { return string(m) }

// job is what all tasks share. Read-only.
type job struct {
	plan    *params.Plan
	set     *dataset.Set
	tree    *taxonomy.Tree
	end     []int32 // node -> end of its subtree
	options *taxonv1.Options
	loss    mapper.Loss
	whole   *mapper.Problem // of all rows
	free    sync.Pool       // *places, all zero
}

// Open implements program.Method.
func (Method) Open(p *program.Job) (program.Program, error) {
	plan, err := params.Detail(p.Plan.GetDetail())
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	o := p.Spec.GetOptions()
	loss := mapper.Hinge
	if !plan.Ridge {
		if loss, err = mapper.ParseLoss(o.GetLoss()); err != nil {
			return nil, err
		}
	}
	kernel, err := mapper.ParseKernel(os.Getenv(program.KernelVariable))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program.KernelVariable, err)
	}
	j := &job{plan: plan, set: p.Set, tree: p.Tree, end: p.Tree.SubtreeEnd(), options: o, loss: loss}
	j.whole = mapper.NewProblem(p.Set.Matrix, loss, o.GetC(), float32(o.GetBias()))
	j.whole.Kernel, j.whole.Weight = kernel, p.Set.Weight
	j.free.New = func() any {
		return &places{row: make([]uint32, p.Set.Matrix.Rows), column: make([]uint32, p.Set.Matrix.Cols)}
	}
	return j, j.whole.Check()
}

// Run implements program.Program.
func (j *job) Run(ctx context.Context, t *program.Task) (method.Sums, error) {
	if t.List != params.Blocks || t.Item >= len(j.plan.Problem) {
		return nil, program.Deterministic(fmt.Errorf("%s of item %d of list %d: the plan has %d in list %d", t.Op, t.Item, t.List, len(j.plan.Problem), params.Blocks))
	}
	switch t.Op {
	case params.OpSolve:
		return j.solve(ctx, t)
	case params.OpEmit:
		return make(method.Sums, params.Figures), j.emit(ctx, t)
	}
	return nil, program.UnknownOperation(t.Op)
}

// solve finds the weights of a block's children.
func (j *job) solve(ctx context.Context, t *program.Task) (sums method.Sums, err error) {
	var p params.Solve
	if err := method.Decode(t.Params, &p); err != nil {
		return nil, program.Deterministic(fmt.Errorf("parameters of %s: %w", t.Op, err))
	}
	var weights []program.NodeWeights
	t.Compute(func() { sums, weights, err = j.block(ctx, t, p.Once) })
	if err != nil {
		return nil, err
	}
	return sums, t.Put(ctx, []store.Value{{Key: t.Key(params.Weights), Data: program.EncodeWeights(weights)}}, nil)
}

// block solves the task's block as a flat problem on the rows below its node: priced solves
// until the driver of flat problems is content.
func (j *job) block(ctx context.Context, t *program.Task, once bool) (method.Sums, []program.NodeWeights, error) {
	children := j.plan.Block(t.Item)
	p := j.below(j.plan.Node[j.plan.Problem[t.Item]], children)
	if j.plan.Ridge {
		return p.ridge(ctx, children)
	}
	rows := p.rows.X.Rows
	b, total := &mapper.Block{Positive: p.positive}, p.rows.Total()
	for _, positive := range p.positive {
		b.Slot = append(b.Slot, -1)
		b.Weight = append(b.Weight, jobspec.PositiveWeight(j.options, p.rows.Count(positive), total))
	}
	o := &taxonv1.Options{Loss: j.options.GetLoss(), C: j.options.GetC(), Gap: j.options.GetGap(), MaxSweeps: j.options.GetMaxSweeps()}
	if once {
		o.MaxSweeps = 1
	}
	sums, solver := make(method.Sums, params.Figures), p.rows.NewSolver()
	var st *mapper.State
	for d := recursive.Flat(o, len(children), uint64(rows)); ; {
		step, _ := d.Next()
		if step.Emit {
			break
		}
		var m recursive.Map
		if err := method.Decode(step.Tasks[0].Params, &m); err != nil {
			return nil, nil, err
		}
		r, err := solver.Solve(ctx, b, st, mapper.Options{
			Epochs: int(m.Epochs), MaxEpochs: int(m.MaxEpochs), InnerGap: m.InnerGap, Price: m.Price, Band: m.Band, Precise: m.Precise,
			Seed: t.Seed + uint64(sums[params.SumSolves]),
		})
		if err != nil {
			return nil, nil, err
		}
		st = &r.State
		sums[params.SumPrimal], sums[params.SumDual], sums[params.SumSupport] = r.Sums.Primal, r.Sums.Dual, float64(r.Sums.Support)
		sums[params.SumSolves]++
		sums[params.SumVisits] += float64(r.Sums.Visits)
		figures := make(method.Sums, recursive.SumVisits+1)
		figures[recursive.SumPrimal], figures[recursive.SumDual], figures[recursive.SumInnerGap] = r.Sums.Primal, r.Sums.Dual, r.Sums.InnerGap
		if _, err := d.Commit([]method.Sums{figures}); err != nil {
			return nil, nil, program.Deterministic(err)
		}
	}
	weights := make([]program.NodeWeights, len(children))
	for l, w := range solver.Weights(b, st) {
		weights[l] = program.NodeWeights{Node: children[l], Columns: p.columnsOf(w.Feature), Values: w.Value}
	}
	return sums, weights, nil
}

// ridge solves the problems of a block in closed form.
func (p *problem) ridge(ctx context.Context, children []uint32) (method.Sums, []program.NodeWeights, error) {
	sums, weights, s := make(method.Sums, params.Figures), make([]program.NodeWeights, len(children)), ridge.New(p.rows)
	sums[params.SumSolves] = 1
	for l, positive := range p.positive {
		r, err := s.Solve(ctx, positive)
		if err != nil {
			return nil, nil, err
		}
		sums[params.SumPrimal] += r.Primal
		sums[params.SumDual] += r.Dual
		sums[params.SumSupport] += float64(p.rows.X.Rows) // each row has a residual
		sums[params.SumVisits] += float64(p.rows.X.NNZ) * float64(r.Steps)
		weights[l] = program.NodeWeights{Node: children[l], Columns: p.columnsOf(r.Feature), Values: r.Value}
	}
	return sums, weights, nil
}

// emit writes what solve has found.
func (j *job) emit(ctx context.Context, t *program.Task) error {
	v, err := t.Get(ctx, []store.Key{t.KeyAt(t.Own(params.Weights, 0), params.Weights)})
	if err != nil {
		return err
	}
	return t.Put(ctx, []store.Value{{Key: t.Key(program.WeightsName), Data: v[0]}}, nil)
}
