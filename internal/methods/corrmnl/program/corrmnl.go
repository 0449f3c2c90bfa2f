// Package program runs the tasks of the correlated multinomial logit. internal/methods/corrmnl/plan
// describes the steps, and internal/methods/corrmnl/solver has the model and the sampler.
package program

import (
	"context"
	"fmt"
	"os"
	"sync"

	"taxon/coordinator/method"
	params "taxon/internal/methods/corrmnl/plan"
	"taxon/internal/methods/corrmnl/solver"
	hblr "taxon/internal/methods/hblr/solver"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker/program"
)

func init() {
	program.Register(Method{})
	program.Declare("corrmnl", program.Layout{Names: "`chain`", By: "one a chain", Holds: "where it stands, and its draws",
		Formats: []byte{formatChain}})
}

// Method implements program.Method.
type Method struct{}

// Name implements program.Method.
func (Method) Name() string { return params.Name }

// job holds the data that all tasks share. It is read-only. Branch j is node j+1 of the tree: every
// node but the root is a branch.
type job struct {
	problem *solver.Problem
	solvers sync.Pool // pool of *solver.Solver
}

// Open implements program.Method.
func (Method) Open(p *program.Job) (program.Program, error) {
	if n := len(p.Plan.GetSums()); n != params.Figures {
		return nil, fmt.Errorf("plan: tasks are to report %d figures, this worker's have %d: it is of another version "+
			"than the coordinator", n, params.Figures)
	}
	if err := params.OneLabelEach(program.DescribeData(p.Set)); err != nil {
		return nil, err
	}
	m := &solver.Problem{Rows: hblr.Rows{X: p.Set.Matrix, Bias: float64(float32(method.Bias.Number(p.Spec.GetOptions()))),
		Weight: p.Set.Weight, Kernel: hblr.KernelOf(os.Getenv(program.KernelVariable))}}
	if err := m.Rows.Check(); err != nil {
		return nil, err
	}
	branchOf := make([]int32, len(p.Set.Labels))
	for n := 1; n < p.Tree.Len(); n++ {
		level := int32(p.Tree.Depth[n]) - 1
		m.Parent, m.Level, m.Leaf = append(m.Parent, p.Tree.Parent[n]-1), append(m.Level, level),
			append(m.Leaf, p.Tree.Leaf[n])
		m.Levels = max(m.Levels, int(level)+1)
		if l := p.Tree.Label[n]; l >= 0 && p.Tree.Leaf[n] {
			branchOf[l] = int32(n) - 1
		}
	}
	for _, l := range p.Set.LabelIndex {
		m.Class = append(m.Class, branchOf[l])
	}
	m.Prepare()
	j := &job{problem: m}
	j.solvers.New = func() any { return m.NewSolver() }
	return j, nil
}

// Run implements program.Program.
func (j *job) Run(ctx context.Context, t *program.Task) (method.Sums, error) {
	switch t.Op {
	case params.OpSample:
		return j.sample(ctx, t)
	case params.OpCompare:
		return j.compare(ctx, t)
	case params.OpEmit:
		return make(method.Sums, params.Figures), j.emit(ctx, t)
	}
	return nil, program.UnknownOperation(t.Op)
}

// chainsAt reads chains. The chain of a zero Place is nil.
func (j *job) chainsAt(ctx context.Context, t *program.Task, places []taxonv1.Place) ([]*solver.State, error) {
	var keys []store.Key
	for _, at := range places {
		if at != (taxonv1.Place{}) {
			keys = append(keys, t.KeyAt(at, params.Chain))
		}
	}
	values, err := t.Get(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := make([]*solver.State, len(values))
	for k, v := range values {
		if out[k], err = decodeState(v, j.problem); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sample runs OpSample.
func (j *job) sample(ctx context.Context, t *program.Task) (method.Sums, error) {
	var p params.Sample
	if err := method.Decode(t.Params, &p); err != nil || p.Every < 1 {
		return nil, program.Deterministic(fmt.Errorf("parameters of %s: %w", t.Op, err))
	}
	chain, err := j.chainsAt(ctx, t, []taxonv1.Place{t.Own(params.Chain, 0)})
	if err != nil {
		return nil, err
	}
	s := j.solvers.Get().(*solver.Solver)
	defer j.solvers.Put(s)
	var sums solver.Sums
	var data []byte
	t.Compute(func() {
		if len(chain) == 0 {
			chain = append(chain, j.problem.Start(t.Seed))
		}
		sums, err = s.Sample(ctx, chain[0], solver.Options{Iterations: int(p.Iterations), Adapt: p.Adapt,
			Leapfrog: int(p.Leapfrog), Keep: int(p.Keep), Every: int(p.Every), Seed: t.Seed})
		if err == nil {
			data = encodeState(chain[0])
		}
	})
	if err != nil {
		return nil, err
	}
	out := make(method.Sums, params.Figures)
	out[params.SumIterations], out[params.SumEnergy], out[params.SumAccepted] = float64(sums.Iterations), sums.Energy,
		sums.Accepted
	out[params.SumGradients], out[params.SumDiverged] = float64(sums.Gradients), float64(sums.Diverged)
	return out, t.Put(ctx, []store.Value{{Key: t.Key(params.Chain), Data: data}}, nil)
}

// compare runs OpCompare.
func (j *job) compare(ctx context.Context, t *program.Task) (method.Sums, error) {
	chains, err := j.chainsAt(ctx, t, t.All(params.Chain, 0))
	if err != nil {
		return nil, err
	}
	out := make(method.Sums, params.Figures)
	t.Compute(func() {
		d := solver.Diagnose(chains)
		out[params.SumEnergy], out[params.SumRHat], out[params.SumESS], out[params.SumDraws] = d.Energy, d.RHat, d.ESS,
			float64(d.Draws)
		out[params.SumKept] = float64(len(j.kept(chains)))
	})
	return out, nil
}

// kept returns the draws that predictions average. Before the first draw it returns the current
// points of the chains.
func (j *job) kept(chains []*solver.State) (out [][]float32) {
	for _, c := range chains {
		out = append(out, c.Kept...)
	}
	if len(out) > 0 {
		return out
	}
	s := j.solvers.Get().(*solver.Solver)
	defer j.solvers.Put(s)
	for _, c := range chains {
		out = append(out, s.Vectors(c.Phi))
	}
	return out
}

// emit runs OpEmit.
func (j *job) emit(ctx context.Context, t *program.Task) error {
	chains, err := j.chainsAt(ctx, t, t.All(params.Chain, 0))
	if err != nil {
		return err
	}
	var nodes []program.NodeWeights
	t.Compute(func() {
		s := j.solvers.Get().(*solver.Solver)
		defer j.solvers.Put(s)
		mean, draws, columns := s.Vectors(solver.Mean(chains)), j.kept(chains), j.problem.Columns()
		for n := range j.problem.Parent {
			w := program.NodeWeights{Node: uint32(n) + 1}
			add := func(first int, from []float32) {
				for f, x := range from[n*columns:][:columns] {
					if x != 0 {
						w.Columns, w.Values = append(w.Columns, uint32(first+f)), append(w.Values, x)
					}
				}
			}
			add(0, mean)
			for k, d := range draws {
				add(form.DrawColumn(columns, k, 0), d)
			}
			nodes = append(nodes, w)
		}
	})
	return t.PutWeights(ctx, nodes)
}
