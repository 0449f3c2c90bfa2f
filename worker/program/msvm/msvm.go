// Package msvm runs the tasks of the multi-class support vector machine. The problem and the
// steps are those of coordinator/method/msvm, the maths that of mapper/msvm.
package msvm

import (
	"context"
	"fmt"
	"math"
	"os"
	"sync"

	"taxon/coordinator/method"
	params "taxon/coordinator/method/msvm"
	"taxon/coordinator/method/whole"
	"taxon/mapper"
	"taxon/mapper/msvm"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker/program"
)

// Method implements program.Method.
type Method struct{}

// Name implements program.Method.
func (Method) Name() string { return params.Name }

// job is what all tasks share. Read-only.
type job struct {
	problem *msvm.Problem
	nodes   []uint32  // class -> tree node
	solvers sync.Pool // *msvm.Solver
}

// Open implements program.Method.
func (Method) Open(p *program.Job) (program.Program, error) {
	if n := len(p.Plan.GetSums()); n != params.Figures {
		return nil, fmt.Errorf("plan: tasks are to report %d figures, this worker's have %d: it is of another version than the coordinator", n, params.Figures)
	}
	if err := params.OneLabelEach(program.DescribeData(p.Set)); err != nil {
		return nil, err
	}
	kernel, err := mapper.ParseKernel(os.Getenv(program.KernelVariable))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program.KernelVariable, err)
	}
	o := p.Spec.GetOptions()
	rows := mapper.NewProblem(p.Set.Matrix, mapper.Hinge, o.GetC(), float32(o.GetBias()))
	rows.Kernel, rows.Weight = kernel, p.Set.Weight
	j := &job{problem: &msvm.Problem{Rows: rows, Class: make([]int32, p.Set.Matrix.Rows)}}
	j.solvers.New = func() any { return j.problem.NewSolver() }
	classOf := make([]int32, len(p.Set.Labels)) // label -> class
	for n, leaf := range p.Tree.Leaf {
		if l := p.Tree.Label[n]; leaf && l >= 0 {
			classOf[l] = int32(len(j.nodes))
		}
		if leaf {
			j.nodes = append(j.nodes, uint32(n))
		}
	}
	for i, l := range p.Set.LabelIndex {
		j.problem.Class[i] = classOf[l]
	}
	j.problem.Classes = len(j.nodes)
	return j, rows.Check()
}

// Run implements program.Program.
func (j *job) Run(ctx context.Context, t *program.Task) (method.Sums, error) {
	if t.List != whole.Problems || t.Item != 0 {
		return nil, program.Deterministic(fmt.Errorf("%s of item %d of list %d: the plan has one in list %d", t.Op, t.Item, t.List, whole.Problems))
	}
	switch t.Op {
	case whole.OpSolve:
		return j.solve(ctx, t)
	case whole.OpEmit:
		return make(method.Sums, params.Figures), j.emit(ctx, t)
	}
	return nil, program.UnknownOperation(t.Op)
}

// duals are those of the sweep before; nil: there was none.
func (j *job) duals(ctx context.Context, t *program.Task) (*msvm.State, error) {
	at := t.Own(params.Dual, 0)
	if at == (taxonv1.Place{}) {
		return nil, nil
	}
	v, err := t.Get(ctx, []store.Key{t.KeyAt(at, params.Dual)})
	if err != nil {
		return nil, err
	}
	return decodeState(v[0], j.problem.Rows.X.Rows, j.problem.Classes)
}

// solve runs a sweep.
func (j *job) solve(ctx context.Context, t *program.Task) (method.Sums, error) {
	var p whole.Solve
	if err := method.Decode(t.Params, &p); err != nil {
		return nil, program.Deterministic(fmt.Errorf("parameters of %s: %w", t.Op, err))
	}
	before, err := j.duals(ctx, t)
	if err != nil {
		return nil, err
	}
	s := j.solvers.Get().(*msvm.Solver)
	defer j.solvers.Put(s)
	var after *msvm.State
	var sums msvm.Sums
	var data []byte
	t.Compute(func() {
		if after, sums, err = s.Solve(ctx, before, msvm.Options{Gap: p.Gap, MaxEpochs: p.Epochs, Seed: t.Seed}); err == nil {
			data = encodeState(after)
		}
	})
	if err != nil {
		return nil, err
	}
	return method.Sums{
		whole.SumPrimal: sums.Primal, whole.SumDual: sums.Dual, params.SumSupport: float64(sums.Support), params.SumWorking: float64(sums.Working),
		params.SumEpochs: float64(sums.Epochs), params.SumVisits: float64(sums.Visits),
	}, t.Put(ctx, []store.Value{{Key: t.Key(params.Dual), Data: data}}, nil)
}

// emit writes the weights that follow from the duals.
func (j *job) emit(ctx context.Context, t *program.Task) error {
	st, err := j.duals(ctx, t)
	if err != nil || st == nil {
		return err
	}
	s := j.solvers.Get().(*msvm.Solver)
	defer j.solvers.Put(s)
	nodes := make([]program.NodeWeights, len(j.nodes))
	t.Compute(func() {
		for m, w := range s.Weights(st) {
			nodes[m] = program.NodeWeights{Node: j.nodes[m], Columns: w.Feature, Values: w.Value}
		}
	})
	return t.PutWeights(ctx, nodes)
}

// Carried implements program.Carrier.
func (Method) Carried() []string { return []string{params.Dual} }

// Carry implements program.Carrier: the duals of instances at the old bound go to the new one,
// the others stay, all within the new bounds.
func (Method) Carry(_ string, data []byte, from, to *taxonv1.Options) ([]byte, error) {
	s, err := decodeState(data, -1, math.MaxUint32)
	if err != nil {
		return nil, err
	}
	s.Carry(from.GetC(), to.GetC())
	return encodeState(s), nil
}
