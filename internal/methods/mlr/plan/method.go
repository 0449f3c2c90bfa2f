// Package plan plans and drives soft-max regression (multinomial logistic regression):
//
//	min_W  P(W) = 1/2 ||W||^2 + C sum_i -log softmax_{y_i}(W x_i)
//
// over all classes at once, without a structure. Every instance has exactly one label y_i. It is
// solved by a distributed L-BFGS: tasks on row shards compute scores, losses and gradients, tasks
// on feature ranges hold W and its history, and the driver works with their inner products only
// (Chen, Wang, Zhou 2014, "Large-scale L-BFGS using MapReduce").
//
// A sweep is one accepted point:
//
//	move     ranges  the trial point W + t d (not in the first sweep, which begins at the start)
//	score    rows    the trial's losses, and V = C sum_i (e_y - p_i) x_i'
//	gather   ranges  gradient W - V, and the inner products that the next direction needs
//
// If the trial is not good enough, the sweep goes back to move with a smaller t.
//
// The certificate is the dual at the current probabilities, D = C sum_i H(p_i) - 1/2 ||V||^2. As C
// sum_i (loss_i - H(p_i)) = -<W, V>, the gap is P - D = 1/2 ||W - V||^2, half the squared norm of
// the gradient. It is computed in this form, which avoids cancellation. The certificate uses the
// best bound of all sweeps.
//
//   - method.go: refused problems, the plan; estimate.go: memory and time
//   - params.go: operations, parameters, values and figures that coordinator and worker share
//   - driver.go: the steps, line search, stopping; direction.go: the two-loop recursion
package plan

import (
	"fmt"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/data/taxonomy"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
)

func init() { registry.Register(30, Method{}, Method{OnTree: true}) }

// These are the values of --method.
const (
	Name     = "mlr"
	TreeName = "rr-mlr"
)

// Loss is the only loss of the method.
const Loss = "softmax"

// Method is soft-max regression. With OnTree, its classes are the leaves of a tree, and the
// regulariser is recursive, 1/2 sum_n ||w_n - w_parent||^2. With u_n = w_n - w_parent this is 1/2
// ||U||^2, and a leaf's score is the sum of u_n.x over its path. So everything else is the same
// with U in place of W. In V, an internal node has the sum over the nodes below it.
type Method struct{ OnTree bool }

// Name implements method.Method.
func (m Method) Name() string {
	if m.OnTree {
		return TreeName
	}
	return Name
}

// About implements method.Method.
func (m Method) About() string {
	if m.OnTree {
		return "recursive regularisation with the soft-max: classes near their parents, all against each other"
	}
	return "soft-max regression of all classes together, without the structure"
}

// Traits implements method.Method. Scores are margins, and a soft-max over all classes converts
// them to probabilities.
func (m Method) Traits(*taxonv1.Options) method.Traits {
	return method.Traits{Form: form.Form{Link: form.Softmax}, Unstructured: !m.OnTree, Searched: !m.OnTree}
}

// Options implements method.Method.
func (m Method) Options() []method.Option {
	out := []method.Option{method.Loss(Loss), method.Cost, method.Bias, method.GapWanted, method.EvalEvery,
		method.PriorShift}
	if m.OnTree {
		return out
	}
	return append(out, method.WarmStart)
}

// Settings holds the options that the driver and the program use.
type Settings struct {
	C         float64 `option:"C"`
	Bias      float64 `option:"bias"`
	Gap       float64 `option:"gap"`
	MaxSweeps uint32  `option:"max-sweeps"`
	EvalEvery uint32  `option:"eval-every"`
}

// SettingsOf parses the options of a job.
func SettingsOf(o *taxonv1.Options) (s Settings, err error) {
	err = method.ReadOptions(o, Method{}.Options(), &s)
	return s, err
}

// Check implements method.Method.
func (m Method) Check(p *method.Problem) error {
	switch {
	case m.OnTree && p.Tree.IsGraph():
		return fmt.Errorf("method %s needs a tree: give ‹hierarchy› one, or read a hierarchy in which nodes have several "+
			"parents as one with ‹dag=first-parent›", TreeName)
	case m.OnTree && p.Spec.GetStructure() == nil:
		return fmt.Errorf("method %s needs a hierarchy: give ‹hierarchy=FILE› (without one, mlr is the soft-max)", TreeName)
	case !m.OnTree:
		if err := method.NoStructure(Name, p); err != nil {
			return err
		}
	}
	return OneLabelEach(m.Name(), p.Spec.GetData())
}

// vectors returns the number of vectors, which is the number of classes or, on a tree, of all
// nodes.
func (m Method) vectors(t *taxonomy.Tree) uint64 {
	if m.OnTree {
		return uint64(t.Len())
	}
	return uint64(len(t.Terminals()))
}

// OneLabelEach returns an error unless every instance has exactly one label.
func OneLabelEach(name string, d *taxonv1.Data) error {
	return method.OneLabelEach(d, "method "+name, "rr-svm, rr-lr, bsvm or blr")
}

const (
	// rangeEntries bounds the weights of a range, unless it is a single column: 2 MiB per vector.
	rangeEntries = 1 << 18
	// minRanges is the least number of ranges, which share the work on vectors, provided that each
	// has rangeColumns columns.
	minRanges, rangeColumns = 8, 16

	// shardVisits is the least work of a row shard, in nonzeros times classes.
	shardVisits = 1 << 18

	// shardFill is the least number of nonzeros per feature in a shard. The output of a shard is
	// dense in the classes, and should take less time than its computation.
	shardFill = 4
	maxShards = 64
)

// Plan implements method.Method.
func (m Method) Plan(p *method.Problem) (*method.Plan, error) {
	d, classes := p.Spec.GetData(), m.vectors(p.Tree)
	columns := d.GetFeatures()
	if method.Bias.Number(p.Spec.GetOptions()) > 0 {
		columns++
	}
	if columns == 0 || classes == 0 || d.GetInstances() == 0 {
		return nil, fmt.Errorf("%d instances with %d features of %d classes: there is nothing to train", d.GetInstances(),
			columns, classes)
	}
	shards := min(d.GetNonzeros()*classes/shardVisits, d.GetNonzeros()/(shardFill*columns), d.GetInstances(), maxShards)
	ranges := min(max((columns*classes+rangeEntries-1)/rangeEntries, min(minRanges, columns/rangeColumns)), maxRanges,
		columns)
	detail := Plan{Width: uint32((columns + ranges - 1) / ranges)}
	return &method.Plan{
		Items: []method.Items{
			Rows:   {Kind: method.Rows, Count: int(max(shards, 1))},
			Ranges: {Kind: method.Ranges, Count: int((columns + uint64(detail.Width) - 1) / uint64(detail.Width))},
		},
		Variables: []method.Variable{
			{Name: Trial, Items: Ranges, Versions: 1, Whole: true},
			{Name: V, Items: Rows, Versions: 1, Whole: true, Cut: true, By: Ranges},
			{Name: W, Items: Ranges, Versions: Memory + 1, Whole: true},
			{Name: G, Items: Ranges, Versions: Memory + 1, Whole: true},
		},
		Sums:  sumNames(),
		Nodes: p.Tree.Len(), Terminals: len(p.Tree.Terminals()), Internals: len(p.Tree.Internals()),
		Detail: method.Encode(detail),
	}, nil
}

// Driver implements method.Method.
func (Method) Driver(spec *taxonv1.JobSpec, plan *method.Plan, s method.State) (method.Driver, error) {
	o, err := SettingsOf(spec.GetOptions())
	if err != nil {
		return nil, err
	}
	d := newDriver(o, plan)
	if err := method.Restore(s, &d.state, &d.Stage, stageEnd); err != nil {
		return nil, err
	}
	if n := d.History.Older; n < 0 || n > Memory || d.Points < 0 {
		return nil, fmt.Errorf("it has the products of %d of %d points: it is damaged, or was changed by hand", n, d.Points)
	}
	return d, nil
}
