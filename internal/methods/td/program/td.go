// Package program runs the tasks of the methods that train each node independently: td, h-svm,
// h-rls. internal/methods/td/plan describes them.
package program

import (
	"context"
	"fmt"
	"os"

	"taxon/coordinator/method"
	"taxon/internal/methods/subtree"
	params "taxon/internal/methods/td/plan"
	"taxon/mapper"
	"taxon/store"
	"taxon/worker/program"
)

func init() {
	program.Register(Method("td"), Method("h-svm"), Method("h-rls"))
	program.Declare("td", program.Layout{Names: "`w`", By: "one a block of children", Holds: "weights, as `weights` does",
		Formats: []byte{program.FormatWeights}})
}

// Method is one of the methods, by its name.
type Method string

// Name implements program.Method.
func (m Method) Name() string { return string(m) }

// job holds the data that all tasks share. It is read-only.
type job struct {
	plan    *params.Plan
	data    *subtree.Data
	options params.Settings
	whole   *mapper.Problem // the problem on all rows
}

// Open implements program.Method.
func (Method) Open(p *program.Job) (program.Program, error) {
	plan, err := params.Detail(p.Plan.GetDetail())
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	o, err := params.SettingsOf(p.Spec.GetOptions())
	if err != nil {
		return nil, err
	}
	loss := mapper.Hinge
	if !plan.Ridge {
		if loss, err = mapper.ParseLoss(o.Loss); err != nil {
			return nil, err
		}
	}
	kernel, err := mapper.ParseKernel(os.Getenv(program.KernelVariable))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program.KernelVariable, err)
	}
	j := &job{plan: plan, data: subtree.New(p.Set, p.Tree, plan.Nested), options: o}
	j.whole = mapper.NewProblem(p.Set.Matrix, loss, o.C, float32(o.Bias))
	j.whole.Kernel, j.whole.Weight = kernel, p.Set.Weight
	return j, j.whole.Check()
}

// Run implements program.Program.
func (j *job) Run(ctx context.Context, t *program.Task) (method.Sums, error) {
	if t.List != params.Blocks || t.Item >= len(j.plan.Problem) {
		return nil, program.Deterministic(fmt.Errorf("%s of item %d of list %d: the plan has %d in list %d", t.Op, t.Item,
			t.List, len(j.plan.Problem), params.Blocks))
	}
	switch t.Op {
	case params.OpSolve:
		return j.solve(ctx, t)
	case params.OpEmit:
		return make(method.Sums, params.Figures), j.emit(ctx, t)
	}
	return nil, program.UnknownOperation(t.Op)
}

// solve computes the weights of a block's children.
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

// emit writes the weights that solve has computed.
func (j *job) emit(ctx context.Context, t *program.Task) error {
	v, err := t.Get(ctx, []store.Key{t.KeyAt(t.Own(params.Weights, 0), params.Weights)})
	if err != nil {
		return err
	}
	return t.Put(ctx, []store.Value{{Key: t.Key(program.WeightsName), Data: v[0]}}, nil)
}
