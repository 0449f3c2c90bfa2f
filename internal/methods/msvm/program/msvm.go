// Package program runs the tasks of multi-class support vector machines, flat and over a tree.
// internal/methods/msvm/plan describes the problems, internal/methods/blockwise the steps, and
// internal/methods/msvm/solver has the maths.
package program

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"

	"taxon/coordinator/method"
	"taxon/internal/methods/blockwise"
	params "taxon/internal/methods/msvm/plan"
	"taxon/internal/methods/msvm/solver"
	"taxon/internal/methods/subtree"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker/program"
)

func init() {
	program.Register(Method("msvm"), Method("flatmult"), Method("hiermult"), Method("hsvm"), Method("transfer"),
		Method("ot"), Method("rr-msvm"))
	program.Declare("msvm",
		program.Layout{Names: "`dual`", By: "`msvm`, `flatmult`, `hsvm`, `transfer`, `rr-msvm`, one; `hiermult`, one a node",
			Holds: "duals and working sets", Formats: []byte{formatDual}},
		program.Layout{Names: "`dual`", By: "`ot`, one", Holds: "the same, with signs", Formats: []byte{formatSigned}})
}

// Method implements program.Method, by its name.
type Method string

// Name implements program.Method.
func (m Method) Name() string { return string(m) }

// job holds the data that all tasks share. It is read-only.
type job struct {
	whole   *solver.Problem // nil for hiermult, which has several problems
	nodes   []uint32        // class of whole -> tree node
	solvers sync.Pool       // pool of *solver.Solver for whole

	plan     *params.Plan // nil unless the method is hiermult
	data     *subtree.Data
	children [][]uint32 // children of each problem's node
	rows     *mapper.Problem
}

// forms maps the methods to the form of their problem on a tree.
var forms = map[params.Method]solver.Form{params.Paths: solver.Paths, params.Transfer: solver.Transfer,
	params.Orthogonal: solver.Orthogonal, params.Recursive: solver.Paths}

// Open implements program.Method.
func (m Method) Open(p *program.Job) (program.Program, error) {
	if n := len(p.Plan.GetSums()); n != params.Figures {
		return nil, fmt.Errorf("plan: tasks are to report %d figures, this worker's have %d: it is of another version "+
			"than the coordinator", n, params.Figures)
	}
	if err := params.OneLabelEach(string(m), program.DescribeData(p.Set)); err != nil {
		return nil, err
	}
	kernel, err := mapper.ParseKernel(os.Getenv(program.KernelVariable))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program.KernelVariable, err)
	}
	o := p.Spec.GetOptions()
	rows := mapper.NewProblem(p.Set.Matrix, mapper.Hinge, method.Cost.Number(o), float32(method.Bias.Number(o)))
	rows.Kernel, rows.Weight = kernel, p.Set.Weight
	if err := rows.Check(); err != nil {
		return nil, err
	}
	plan := &params.Plan{}
	if detail := p.Plan.GetDetail(); len(detail) > 0 {
		if plan, err = params.Detail(detail); err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
	}
	if params.Method(m) == params.PerNode {
		return openNodes(p, plan, rows), nil
	}
	if m := params.Method(m); m != params.Flat && m != params.Recursive {
		rows.C /= rows.Total()
	}
	form, onTree := forms[params.Method(m)]
	j := &job{whole: &solver.Problem{Rows: rows, Class: make([]int32, p.Set.Matrix.Rows)}}
	j.solvers.New = func() any { return j.whole.NewSolver() }
	classOf := make([]int32, len(p.Set.Labels)) // label -> class
	for n, leaf := range p.Tree.Leaf {
		if l := p.Tree.Label[n]; leaf && l >= 0 {
			classOf[l] = int32(len(j.nodes))
		}
		if leaf || onTree {
			j.nodes = append(j.nodes, uint32(n))
		}
	}
	for i, l := range p.Set.LabelIndex {
		j.whole.Class[i] = classOf[l]
	}
	if j.whole.Classes = len(j.nodes); onTree {
		j.whole.Tree = &solver.Tree{Parent: p.Tree.Parent, Leaf: p.Tree.Leaf, Form: form,
			Margin: o.Value("rescale") == params.Margin, Unit: params.Method(m) == params.Recursive, Alpha: plan.Alpha}
	}
	return j, nil
}

// openNodes prepares a problem for each node of the plan.
func openNodes(p *program.Job, plan *params.Plan, rows *mapper.Problem) *job {
	j := &job{plan: plan, data: subtree.New(p.Set, p.Tree, false), children: make([][]uint32, len(plan.Node)), rows: rows}
	problem := map[uint32]int{}
	for k, n := range plan.Node {
		problem[n] = k
	}
	for n, a := range p.Tree.Parent {
		if k, ok := problem[uint32(a)]; ok && a >= 0 {
			j.children[k] = append(j.children[k], uint32(n))
		}
	}
	return j
}

// task is the problem of a running task.
type task struct {
	*solver.Problem
	nodes   []uint32                // class -> tree node
	columns func([]uint32) []uint32 // columns of the problem -> those of the data
	solver  *solver.Solver
	release func()
}

// open prepares the problem of an item.
func (j *job) open(item int) *task {
	if j.whole != nil {
		s := j.solvers.Get().(*solver.Solver)
		return &task{j.whole, j.nodes, func(c []uint32) []uint32 { return c }, s, func() { j.solvers.Put(s) }}
	}
	children := j.children[item]
	gathered := j.data.Node(int32(j.plan.Node[item]), children)
	rows := mapper.NewProblem(gathered.X, mapper.Hinge, j.rows.C, j.rows.Bias)
	rows.Kernel, rows.Weight = j.rows.Kernel, gathered.Weight
	rows.C /= rows.Total()
	p := &solver.Problem{Rows: rows, Class: make([]int32, rows.X.Rows), Classes: len(children)}
	for c, positive := range gathered.Positive {
		for _, i := range positive {
			p.Class[i] = int32(c)
		}
	}
	return &task{p, children, gathered.ColumnsOf, p.NewSolver(), func() {}}
}

// Run implements program.Program.
func (j *job) Run(ctx context.Context, t *program.Task) (method.Sums, error) {
	if problems := max(1, len(j.children)); t.List != blockwise.Problems || t.Item >= problems {
		return nil, program.Deterministic(fmt.Errorf("%s of item %d of list %d: the plan has %d in list %d", t.Op, t.Item,
			t.List, problems, blockwise.Problems))
	}
	switch t.Op {
	case blockwise.OpSolve:
		return j.solve(ctx, t)
	case blockwise.OpEmit:
		return make(method.Sums, params.Figures), j.emit(ctx, t)
	}
	return nil, program.UnknownOperation(t.Op)
}

// duals reads the encoded duals of the previous sweep. It returns nil before the first one.
func duals(ctx context.Context, t *program.Task) ([]byte, error) {
	at := t.Own(params.Dual, 0)
	if at == (taxonv1.Place{}) {
		return nil, nil
	}
	v, err := t.Get(ctx, []store.Key{t.KeyAt(at, params.Dual)})
	if err != nil {
		return nil, err
	}
	return v[0], nil
}

// decode decodes duals of the task's problem.
func (p *task) decode(data []byte) (*solver.State, error) {
	if data == nil {
		return nil, nil
	}
	return decodeState(data, p.Rows.X.Rows, p.Classes)
}

// solve runs a sweep.
func (j *job) solve(ctx context.Context, t *program.Task) (method.Sums, error) {
	var p blockwise.Solve
	if err := method.Decode(t.Params, &p); err != nil {
		return nil, program.Deterministic(fmt.Errorf("parameters of %s: %w", t.Op, err))
	}
	data, err := duals(ctx, t)
	if err != nil {
		return nil, err
	}
	var sums solver.Sums
	t.Compute(func() {
		at := j.open(t.Item)
		defer at.release()
		var before, after *solver.State
		if before, err = at.decode(data); err != nil {
			return
		}
		if after, sums, err = at.solver.Solve(ctx, before, solver.Options{Gap: p.Gap, MaxEpochs: p.Epochs,
			Seed: t.Seed}); err == nil {
			data = encodeState(after)
		}
	})
	if err != nil {
		return nil, err
	}
	return method.Sums{
		blockwise.SumPrimal: sums.Primal, blockwise.SumDual: sums.Dual, params.SumSupport: float64(sums.Support),
		params.SumWorking: float64(sums.Working),
		params.SumEpochs:  float64(sums.Epochs), params.SumVisits: float64(sums.Visits),
	}, t.Put(ctx, []store.Value{{Key: t.Key(params.Dual), Data: data}}, nil)
}

// emit writes the weights that the duals determine.
func (j *job) emit(ctx context.Context, t *program.Task) error {
	data, err := duals(ctx, t)
	if err != nil || data == nil {
		return err
	}
	var nodes []program.NodeWeights
	t.Compute(func() {
		at := j.open(t.Item)
		defer at.release()
		var st *solver.State
		if st, err = at.decode(data); err != nil {
			return
		}
		weights := at.solver.Weights(st)
		if at.Tree != nil && at.Tree.Unit {
			addPaths(at.Tree, weights, at.Rows.X.Cols+1)
		}
		for m, w := range weights {
			nodes = append(nodes, program.NodeWeights{Node: at.nodes[m], Columns: at.columns(w.Feature), Values: w.Value})
		}
	})
	if err != nil {
		return err
	}
	return t.PutWeights(ctx, nodes)
}

// addPaths replaces the differences of nodes from their parents, at the columns where they differ,
// by the nodes' vectors. Parents precede their children.
func addPaths(t *solver.Tree, weights []mapper.Override, width int) {
	at := make([][]float64, len(t.Parent)) // vectors of internal nodes
	for n, w := range weights {
		above := make([]float64, width)
		if a := t.Parent[n]; a >= 0 {
			above = at[a]
		}
		if !t.Leaf[n] {
			above = slices.Clone(above)
			at[n] = above
		}
		for k, f := range w.Feature {
			x := above[f] + float64(w.Value[k])
			if w.Value[k] = float32(x); !t.Leaf[n] {
				above[f] = x
			}
		}
	}
}

// ConvertedFamilies implements program.StateConverter.
func (Method) ConvertedFamilies() []string { return []string{params.Dual} }

// ConvertValue implements program.StateConverter. Duals of instances at the old bound move to the
// new one, and the others are kept. All are limited to the new bounds.
func (Method) ConvertValue(_ string, data []byte, from, to *taxonv1.Options) ([]byte, error) {
	s, err := decodeState(data, -1, math.MaxUint32)
	if err != nil {
		return nil, err
	}
	_, tree := forms[params.Method(to.GetMethod())]
	s.Carry(method.Cost.Number(from), method.Cost.Number(to), tree)
	return encodeState(s), nil
}
