// Package program runs the tasks of soft-max regression: scores, losses and gradients of row
// shards, and the vector part of L-BFGS over feature ranges. internal/methods/mlr/plan describes
// the problem, the steps and the symbols; softmax.go and vectors.go have the maths.
package program

import (
	"context"
	"fmt"
	"sync"

	"taxon/coordinator/method"
	params "taxon/internal/methods/mlr/plan"
	"taxon/store"
	"taxon/worker/codec"
	"taxon/worker/program"
)

func init() {
	program.Register(Method{}, Method{OnTree: true})
	program.Declare("mlr",
		program.Layout{Names: "`w`, `g`, `trial`", By: "one a feature range", Holds: "a vector",
			Formats: []byte{codec.FormatVector}},
		program.Layout{Names: "`v/<r>`", By: "one a row shard and feature range", Holds: "a part of the gradient",
			Formats: []byte{formatPart}})
}

// Method is soft-max regression, flat or on a tree.
type Method params.Method

// Name implements program.Method.
func (m Method) Name() string { return params.Method(m).Name() }

// job holds the data that all tasks share. It is read-only.
type job struct {
	id      string
	problem problem
	nodes   []uint32 // class -> tree node
	shards  []int    // shard s holds rows [shards[s], shards[s+1])
	width   int      // columns of a range
	ranges  int
	metric  func() []float64
}

// Open implements program.Method.
func (m Method) Open(p *program.Job) (program.Program, error) {
	plan, err := params.Detail(p.Plan.GetDetail())
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if n := len(p.Plan.GetSums()); n != params.Figures || len(p.Plan.GetItems()) != 2 {
		return nil, fmt.Errorf("plan: tasks are to report %d figures, this worker's have %d: it is of another version "+
			"than the coordinator", n, params.Figures)
	}
	o, err := params.SettingsOf(p.Spec.GetOptions())
	if err != nil {
		return nil, err
	}
	j := &job{id: p.ID, width: int(plan.Width), ranges: int(p.Plan.GetItems()[params.Ranges].GetCount())}
	classOf := make([]int32, len(p.Set.Labels)) // label -> class
	for n, leaf := range p.Tree.Leaf {
		if l := p.Tree.Label[n]; leaf && l >= 0 {
			classOf[l] = int32(len(j.nodes))
		}
		if leaf || m.OnTree {
			j.nodes = append(j.nodes, uint32(n))
		}
	}
	if err := params.OneLabelEach(m.Name(), program.DescribeData(p.Set)); err != nil {
		return nil, err
	}
	class := make([]int32, p.Set.Matrix.Rows)
	for i, l := range p.Set.LabelIndex {
		class[i] = classOf[l]
	}
	j.problem = problem{x: p.Set.Matrix, class: class, classes: len(j.nodes), weight: p.Set.Weight, c: o.C,
		bias: o.Bias}
	if m.OnTree {
		j.problem.parent, j.problem.leaf = p.Tree.Parent, p.Tree.Leaf
	}
	if want := (j.problem.columns() + j.width - 1) / j.width; want != j.ranges {
		return nil, fmt.Errorf("plan: %d feature ranges, the data make %d: they are other data than the job's", j.ranges,
			want)
	}
	j.shards = j.problem.shards(int(p.Plan.GetItems()[params.Rows].GetCount()))
	j.metric = sync.OnceValue(j.problem.metric)
	return j, nil
}

// bounds returns the columns [lo, hi) of a range.
func (j *job) bounds(r int) (lo, hi int) {
	return r * j.width, min((r+1)*j.width, j.problem.columns())
}

// Run implements program.Program.
func (j *job) Run(ctx context.Context, t *program.Task) (method.Sums, error) {
	k := &task{Task: t, job: j}
	switch t.Op {
	case params.OpScore:
		return k.score(ctx)
	case params.OpGather:
		return k.gather(ctx)
	case params.OpMove:
		return k.move(ctx)
	case params.OpEmit:
		return k.emit(ctx)
	}
	return nil, program.UnknownOperation(t.Op)
}

// WarmStart returns the first trial point with the given weights, one value per range. It holds all
// weights in float64.
func (j *job) WarmStart(ctx context.Context, from program.InitialWeights) (values []store.Value, families []string,
	err error) {
	parts := make([][]float64, j.ranges)
	for r := range parts {
		lo, hi := j.bounds(r)
		parts[r] = make([]float64, (hi-lo)*j.problem.classes)
	}
	for class, n := range j.nodes {
		columns, weights := from(int(n))
		for i, f := range columns {
			parts[int(f)/j.width][int(f)%j.width*j.problem.classes+class] = float64(weights[i])
		}
	}
	first := len(j.shards) - 1 // the tasks of the ranges come after those of the shards
	for r, part := range parts {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		key := store.Key{Job: j.id, Step: program.SeedStep, Task: uint32(first + r), Attempt: 1, Name: params.Trial}
		values = append(values, store.Value{Key: key, Data: codec.Vector(part)})
	}
	return values, []string{params.Trial}, nil
}
