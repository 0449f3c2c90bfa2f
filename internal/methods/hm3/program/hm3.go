// Package program runs the tasks of H-M3. internal/methods/hm3/plan describes the problem and the
// steps, and internal/methods/hm3/solver has the maths.
package program

import (
	"context"
	"fmt"
	"math"
	"sync"

	"taxon/coordinator/method"
	"taxon/internal/data/taxonomy"
	"taxon/internal/methods/blockwise"
	params "taxon/internal/methods/hm3/plan"
	"taxon/internal/methods/hm3/solver"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker/program"
)

func init() {
	program.Register(Method{})
	program.Declare("hm3", program.Layout{Names: "`dual`", By: "one", Holds: "marginals", Formats: []byte{formatDual}})
}

// Method implements program.Method.
type Method struct{}

// Name implements program.Method.
func (Method) Name() string { return params.Name }

// job holds the data that all tasks share. It is read-only.
type job struct {
	problem *solver.Problem
	nodes   []uint32  // microlabel -> tree node
	solvers sync.Pool // pool of *solver.Solver
}

// Open implements program.Method.
func (Method) Open(p *program.Job) (program.Program, error) {
	if n := len(p.Plan.GetSums()); n != params.Figures {
		return nil, fmt.Errorf("plan: tasks are to report %d figures, this worker's have %d: it is of another version "+
			"than the coordinator", n, params.Figures)
	}
	o, err := params.SettingsOf(p.Spec.GetOptions())
	if err != nil {
		return nil, err
	}
	rows := mapper.NewProblem(p.Set.Matrix, mapper.Hinge, o.C, float32(o.Bias))
	rows.Weight = p.Set.Weight
	j := &job{nodes: params.Microlabels(p.Tree)}
	// node -> microlabel; that of a spawned leaf is its parent's
	at := make([]int32, p.Tree.Len())
	parent := make([]int32, len(j.nodes))
	of := make([]int32, len(p.Set.Labels)) // label -> microlabel
	for m, n := range j.nodes {
		at[n], parent[m] = int32(m), -1
		if up := p.Tree.Parent[n]; up >= 0 {
			parent[m] = at[up]
		}
		if l := p.Tree.Label[n]; l >= 0 {
			of[l] = int32(m)
		}
	}
	on := make([][]int32, p.Set.Matrix.Rows)
	for i := range on {
		for _, l := range p.Set.LabelIndex[p.Set.LabelBegin[i]:p.Set.LabelBegin[i+1]] {
			for m := of[l]; m >= 0; m = parent[m] {
				on[i] = append(on[i], m)
			}
		}
	}
	if j.problem, err = solver.NewProblem(rows, parent, p.Tree.Kind[0] == taxonomy.Virtual, o.LabelLoss, on); err != nil {
		return nil, err
	}
	j.solvers.New = func() any { return j.problem.NewSolver() }
	return j, rows.Check()
}

// Run implements program.Program.
func (j *job) Run(ctx context.Context, t *program.Task) (method.Sums, error) {
	if t.List != blockwise.Problems || t.Item != 0 {
		return nil, program.Deterministic(fmt.Errorf("%s of item %d of list %d: the plan has one in list %d", t.Op, t.Item,
			t.List, blockwise.Problems))
	}
	switch t.Op {
	case blockwise.OpSolve:
		return j.solve(ctx, t)
	case blockwise.OpEmit:
		return make(method.Sums, params.Figures), j.emit(ctx, t)
	}
	return nil, program.UnknownOperation(t.Op)
}

// duals reads the duals of the previous sweep. It returns nil before the first one.
func (j *job) duals(ctx context.Context, t *program.Task) (*solver.State, error) {
	at := t.Own(params.Dual, 0)
	if at == (taxonv1.Place{}) {
		return nil, nil
	}
	v, err := t.Get(ctx, []store.Key{t.KeyAt(at, params.Dual)})
	if err != nil {
		return nil, err
	}
	return decodeState(v[0], len(j.problem.On), len(j.nodes))
}

// solve runs a sweep.
func (j *job) solve(ctx context.Context, t *program.Task) (method.Sums, error) {
	var p blockwise.Solve
	if err := method.Decode(t.Params, &p); err != nil {
		return nil, program.Deterministic(fmt.Errorf("parameters of %s: %w", t.Op, err))
	}
	before, err := j.duals(ctx, t)
	if err != nil {
		return nil, err
	}
	s := j.solvers.Get().(*solver.Solver)
	defer j.solvers.Put(s)
	var sums solver.Sums
	var data []byte
	t.Compute(func() {
		var after *solver.State
		if after, sums, err = s.Solve(ctx, before, solver.Options{Gap: p.Gap, MaxEpochs: p.Epochs,
			Seed: t.Seed}); err == nil {
			data = encodeState(after)
		}
	})
	if err != nil {
		return nil, err
	}
	return method.Sums{
		blockwise.SumPrimal: sums.Primal, blockwise.SumDual: sums.Dual, params.SumMoved: float64(sums.Moved),
		params.SumEpochs: float64(sums.Epochs), params.SumVisits: float64(sums.Visits),
	}, t.Put(ctx, []store.Value{{Key: t.Key(params.Dual), Data: data}}, nil)
}

// emit writes the vectors that the duals determine.
func (j *job) emit(ctx context.Context, t *program.Task) error {
	st, err := j.duals(ctx, t)
	if err != nil || st == nil {
		return err
	}
	s := j.solvers.Get().(*solver.Solver)
	defer j.solvers.Put(s)
	nodes := make([]program.NodeWeights, len(j.nodes))
	t.Compute(func() {
		for m, w := range s.Weights(st) {
			nodes[m] = program.NodeWeights{Node: j.nodes[m], Columns: w.Feature, Values: w.Value}
		}
	})
	return t.PutWeights(ctx, nodes)
}

// ConvertedFamilies implements program.StateConverter.
func (Method) ConvertedFamilies() []string { return []string{params.Dual} }

// ConvertValue implements program.StateConverter. It scales all marginals with C.
func (Method) ConvertValue(_ string, data []byte, from, to *taxonv1.Options) ([]byte, error) {
	s, err := decodeState(data, -1, math.MaxUint32)
	if err != nil {
		return nil, err
	}
	s.Carry(method.Cost.Number(from), method.Cost.Number(to))
	return encodeState(s), nil
}
