// Package program runs the tasks of hierarchical Bayesian logistic regression.
// internal/methods/hblr/plan describes the problem, the steps and the symbols, and
// internal/methods/hblr/solver has the maths.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"taxon/coordinator/method"
	"taxon/internal/data/taxonomy"
	params "taxon/internal/methods/hblr/plan"
	"taxon/internal/methods/hblr/solver"
	"taxon/mapper"
	"taxon/worker/codec"
	"taxon/worker/program"
)

func init() {
	program.Register(Method("hblr-m1"), Method("hblr-m2"), Method("hblr-m3"))
	const block, part, vector = "one a block of leaves", "one a feature range", "a vector"
	wide, either := []byte{codec.FormatVector}, []byte{codec.FormatVector, codec.FormatNarrow}
	program.Declare("hblr",
		program.Layout{Names: "`leaf`, `pull/<r>`", By: block, Holds: "a vector, in float32 of large problems",
			Formats: either},
		program.Layout{Names: "`trace`", By: block, Holds: vector, Formats: wide},
		program.Layout{Names: "`x`, `g`, `f`, `half`, `above/<b>`", By: part,
			Holds: "a vector, in float32 of large problems", Formats: either},
		program.Layout{Names: "`part`", By: part, Holds: vector, Formats: wide},
		program.Layout{Names: "`xalpha`, `galpha`, `falpha`", By: "one", Holds: vector, Formats: wide})
}

// Method is a variant, by its name.
type Method string

// Name implements program.Method.
func (m Method) Name() string { return string(m) }

// job holds the data that all tasks share. It is read-only.
type job struct {
	id       string
	plan     *params.Plan
	variant  solver.Variant
	rows     solver.Rows
	tree     *solver.Tree
	depth    []int32
	positive [][]uint32 // node -> rows of its class
	scale    []float64  // scale of each column; 0 for a feature that does not occur
	occur    int        // number of features that occur
	mean     float64    // mean of their scales
	often    []float64  // frequency of each feature, with --prior-scale df
	// the priors; with fitted rates, those at the start (fit.go)
	prior    solver.Prior
	settings params.Settings
	bounded  bool // variational
	full     bool // full covariances
	softmax  bool
	columns  int
	ranges   int

	// slots maps a block to the distinct parents of its leaves, as indices of internals.
	slots [][]int32
	// free holds *solver.Scratch, or *solver.Full with variational inference.
	free sync.Pool
}

// variants maps names in the plan to variants.
var variants = map[string]solver.Variant{"m1": solver.M1, "m2": solver.M2, "m3": solver.M3}

// Open implements program.Method.
func (m Method) Open(p *program.Job) (program.Program, error) {
	plan, err := params.Detail(p.Plan.GetDetail())
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	settings, err := params.SettingsOf(p.Spec.GetOptions())
	if err != nil {
		return nil, err
	}
	if n := len(p.Plan.GetSums()); n != params.Figures || len(p.Plan.GetItems()) != 3 || variants[plan.Variant] == 0 {
		return nil, fmt.Errorf("plan: tasks are to report %d figures, this worker's have %d: it is of another version "+
			"than the coordinator", n, params.Figures)
	}
	j := &job{
		id: p.ID, plan: plan, variant: variants[plan.Variant], tree: solver.NewTree(p.Tree.Parent, p.Tree.Leaf),
		depth:  p.Tree.Depth,
		rows:   solver.Rows{X: p.Set.Matrix, Bias: settings.Bias, Weight: p.Set.Weight},
		ranges: int(p.Plan.GetItems()[params.Ranges].GetCount()),
	}
	kernel, err := mapper.ParseKernel(os.Getenv(program.KernelVariable))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program.KernelVariable, err)
	}
	j.rows.Kernel = solver.KernelOf(kernel.String())
	if err := j.rows.Check(); err != nil {
		return nil, err
	}
	j.columns = j.rows.Columns()
	if want := (j.columns + int(plan.Width) - 1) / int(plan.Width); want != j.ranges {
		return nil, fmt.Errorf("plan: %d feature ranges, the data make %d: they are other data than the job's", j.ranges,
			want)
	}
	j.positive = make([][]uint32, len(j.tree.Parent))
	for n, l := range p.Tree.Label {
		if l >= 0 && p.Tree.Leaf[n] {
			j.positive[n] = p.Set.PosRows[p.Set.PosBegin[l]:p.Set.PosBegin[l+1]]
		}
	}
	if j.softmax = plan.Softmax; j.softmax {
		if err := params.OneLabelEach(program.DescribeData(p.Set)); err != nil {
			return nil, err
		}
	}
	j.settings = settings
	if err := j.setPrior(p.Tree); err != nil {
		return nil, err
	}
	for b := range len(plan.Begin) - 1 {
		var slots []int32
		seen := map[int32]bool{-1: true}
		for _, n := range plan.Block(b) {
			if up := j.above(n); !seen[up] {
				seen[up] = true
				slots = append(slots, up)
			}
		}
		j.slots = append(j.slots, slots)
	}
	j.free.New = func() any { return new(solver.Scratch) }
	if j.bounded = plan.Bounded; j.bounded {
		j.full = settings.Covariance == params.Full
		j.free.New = func() any { return new(solver.Full) }
	}
	return j, nil
}

// setPrior finds the features that occur, and the priors of the precisions.
func (j *job) setPrior(tree *taxonomy.Tree) error {
	if err := j.setScale(); err != nil {
		return err
	}
	weights, total := make([]float64, len(j.positive)), j.rows.Total()
	for n, rows := range j.positive {
		if !j.tree.Leaf[n] {
			continue
		}
		if weights[n] = j.rows.TotalOf(rows); !(weights[n] > 0 && len(rows) < j.rows.X.Rows) {
			return fmt.Errorf("class %q has none or all of the instances: there is no prior for it", tree.Name[n])
		}
	}
	j.prior = j.tree.NewPrior(weights, total)
	return nil
}

// setScale computes the scales of the priors' rates, per feature and for all features.
func (j *job) setScale() error {
	s := j.settings
	j.scale = j.rows.DiagonalScales()
	if s.Inverse == params.Full {
		var ok bool
		if j.scale, ok = j.rows.FullScales(); !ok {
			return errNoInverse
		}
	}
	if s.Scale == params.ScaleDF {
		j.often = j.rows.Frequencies()
	}
	if j.occur, _ = solver.Occurring(j.scale, nil); j.occur == 0 {
		return fmt.Errorf("no instance has a feature: there is nothing to train")
	}
	j.mean = j.forAll(j.scale)
	return nil
}

var errNoInverse = errors.New("prior-inverse full: a feature follows from others, so their information has no " +
	"inverse: leave it out")

// forAll returns the common scale of all features.
func (j *job) forAll(scale []float64) float64 {
	if j.settings.Scale == params.ScaleMedian {
		return solver.Median(scale)
	}
	_, mean := solver.Occurring(scale, j.often)
	return mean
}

// above returns the index of a leaf's parent among the internals. It is -1 if the zero vector is
// the parent.
func (j *job) above(leaf uint32) int32 {
	if up := j.tree.Parent[leaf]; up >= 0 {
		return j.tree.Internal[up]
	}
	return -1
}

// m2 reports whether each feature has a precision of its own.
func (j *job) m2() bool { return j.variant == solver.M2 }

// bounds returns the columns [lo, hi) of a range.
func (j *job) bounds(r int) (lo, hi int) {
	return r * int(j.plan.Width), min((r+1)*int(j.plan.Width), j.columns)
}

// size returns the length of a range's point.
func (j *job) size(r int) int {
	lo, hi := j.bounds(r)
	n := len(j.tree.Nodes) * (hi - lo)
	if j.m2() {
		n *= 2
	}
	return n
}

// start returns the initial point of a range: means of 0, and log a/b.
func (j *job) start(r int) []float64 {
	lo, hi := j.bounds(r)
	x := make([]float64, j.size(r))
	if !j.m2() {
		return x
	}
	logs := x[len(x)/2:]
	for i, node := range j.tree.Nodes {
		j.startLogs(logs[i*(hi-lo):][:hi-lo], node, lo)
	}
	return x
}

// startLogs sets the logarithms of an internal node's precisions to log a/b, from column lo on.
func (j *job) startLogs(out []float64, node int32, lo int) {
	for f := range out {
		if s := j.scale[lo+f]; s > 0 {
			out[f] = solver.Log(j.prior.Start(node, s))
		}
	}
}

// startAlpha returns the initial precisions by node, for M1 and M3. Nodes without a precision have
// 0.
func (j *job) startAlpha() []float64 {
	out := make([]float64, len(j.tree.Parent))
	for n := range out {
		if n := int32(n); !j.m2() && j.tree.Owns(j.variant, n) {
			out[n] = solver.Log(j.prior.Start(n, j.mean))
		}
	}
	return out
}

// split divides a range's point into means and M2's precisions.
func (j *job) split(x []float64) (mean []float64, alpha solver.Alpha) {
	if !j.m2() {
		return x, nil
	}
	n := len(x) / 2
	return x[:n], exp(x[n:])
}

func exp(logs []float64) solver.Alpha {
	out := make(solver.Alpha, len(logs))
	for i, x := range logs {
		out[i] = solver.Exp(x)
	}
	return out
}

// Run implements program.Program.
func (j *job) Run(ctx context.Context, t *program.Task) (method.Sums, error) {
	k := &task{Task: t, job: j}
	switch t.Op {
	case params.OpLeaves:
		return k.leaves(ctx)
	case params.OpFit:
		return k.fit(ctx)
	case params.OpPartition:
		return k.partition(ctx)
	case params.OpContribute:
		return k.contribute(ctx)
	case params.OpInternals:
		return k.internals(ctx)
	case params.OpGamma:
		return k.gamma(ctx)
	case params.OpMove:
		return k.move(ctx)
	case params.OpSummary:
		return k.summary(ctx)
	case params.OpEmit:
		return k.emit(ctx)
	case params.OpEmitMean:
		return k.emitMeans(ctx)
	case params.OpEmitAlpha:
		return k.emitAlphas(ctx)
	}
	return nil, program.UnknownOperation(t.Op)
}
