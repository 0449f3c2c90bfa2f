// Package plan plans and drives recursive regularisation, and the flat methods that are
// its case without a structure:
//
//	min_W  sum_n 1/2 ||w_n - w_parent(n)||^2  +  C sum over terminals n, instances i of loss(y_in w_n.x_i)
//
// (Gopal and Yang, TKDD 2015, eq. 9; on graphs the first sum is over the edges). A sweep of the
// default schedule, twoblock, has two steps. First all terminals are solved, block by block of
// sixteen, with their parents fixed. Then all internals are solved exactly, feature range by
// feature range. docs/methods.md derives both, and the certificate.
//
//   - method.go: the four methods; params.go: what coordinator and worker tell each other
//   - plan.go: blocks of terminals and feature ranges; schedule.go: the sets of nodes that move at once
//   - driver.go: the steps, momentum, safeguard; stop.go: certificate, stopping, the end by the clock
//   - estimate*.go: memory and time
package plan

import (
	"errors"
	"slices"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/jobspec"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
)

func init() { registry.Register(10, Methods...) }

// Methods lists the methods of this family. They differ in the losses that they accept and in
// whether they use the structure.
var Methods = []method.Method{named("rr-svm"), named("rr-lr"), named("bsvm"), named("blr")}

// named is a method of the family, by its name.
type named string

// Name implements method.Method.
func (n named) Name() string { return string(n) }

// About implements method.Method.
func (n named) About() string {
	return map[named]string{
		"rr-svm": "SVMs of all classes, each drawn to its parent's or neighbours' weights",
		"rr-lr":  "the same with the logistic loss: scores are probabilities",
		"bsvm":   "one-versus-rest SVMs, each class for itself",
		"blr":    "one-versus-rest logistic regressions, each class for itself",
	}[n]
}

// Traits implements method.Method. With the logistic loss, scores are the log-odds of each class.
func (n named) Traits(*taxonv1.Options) method.Traits {
	t := method.Traits{Unstructured: n.flat(), Separate: n.flat(), Searched: true}
	if n.logistic() {
		t.Form.Link = form.Logistic
	}
	return t
}

func (n named) logistic() bool { return n == "rr-lr" || n == "blr" }

// flat reports whether the method trains without the structure.
func (n named) flat() bool { return n == "bsvm" || n == "blr" }

// Options implements method.Method.
func (n named) Options() []method.Option {
	all := n.all()
	if n.flat() {
		return slices.DeleteFunc(all, func(p method.Option) bool { return slices.Contains(tying, p.Name) })
	}
	return all
}

// all returns the options of the whole family, with the losses of the method.
func (n named) all() []method.Option {
	loss := method.Loss("hinge", "squared-hinge")
	if n.logistic() {
		loss = method.Loss("logistic")
	}
	return slices.Concat([]method.Option{loss}, options)
}

// Settings holds the options that the family's driver and program use. In methods without a
// structure, the options that tie classes have their defaults.
type Settings struct {
	Loss           string  `option:"loss"`
	C              float64 `option:"C"`
	Bias           float64 `option:"bias"`
	Anchor         float64 `option:"anchor"`
	PositiveWeight string  `option:"positive-weight"`
	InternalWeight float64 `option:"internal-weight"`
	EdgeWeights    string  `option:"edge-weights"`
	CostBy         string  `option:"cost-by"`
	BiasPull       string  `option:"bias-pull"`
	Gap            float64 `option:"gap"`
	MaxSweeps      uint32  `option:"max-sweeps"`
	EvalEvery      uint32  `option:"eval-every"`
	Schedule       string  `option:"schedule"`
	Colouring      string  `option:"colouring"`
	Stiffness      string  `option:"stiffness"`
	Momentum       string  `option:"momentum"`
	InnerEpochs    uint32  `option:"epochs"`
}

// SettingsOf parses the options of a job.
func SettingsOf(o *taxonv1.Options) (s Settings, err error) {
	err = method.ReadOptions(o, named(o.GetMethod()).all(), &s)
	return s, err
}

// settings returns the settings of a job whose options have been checked.
func settings(spec *taxonv1.JobSpec) Settings {
	s, _ := SettingsOf(spec.GetOptions())
	return s
}

// tying are the options that say how classes are tied to each other or solved together. Methods
// without a structure do not have them.
var tying = []string{"families", "anchor", "internal-weight", "edge-weights", "bias-pull", "cost-by", "schedule",
	"colouring", "stiffness", "momentum"}

// options of the family.
var options = []method.Option{
	method.Cost, method.Bias, method.Families,
	{Name: "anchor", Kind: method.Float, Default: "0.01", Range: method.AtLeast0, Group: method.GroupMethod,
		On:   method.Graphs,
		Help: "graphs: pull of all classes to zero; 0: none, as in the papers, without a certificate",
		Grid: []string{"0.01"}, Ladder: []string{"0.0001", "0.001", "0.1", "1", "10"}, Start: "1", Offset: 0.5},
	method.PositiveWeight,
	{Name: "internal-weight", Kind: method.Float, Default: "1", Range: method.Above0, Group: method.GroupMethod,
		On:   method.Structured,
		Help: "regularisation weight of edges between internal nodes",
		Grid: []string{"1"}, Ladder: []string{"0.3", "3", "10", "30"}},
	{Name: "edge-weights", Kind: method.Choice, Default: jobspec.EdgesEven, Choices: []string{jobspec.EdgesEven,
		jobspec.EdgesDepth, jobspec.EdgesSize}, Group: method.GroupMethod, On: method.Structured, Trees: true,
		OfTrees: []string{jobspec.EdgesDepth, jobspec.EdgesSize},
		Help:    "trees, factor on inner edges: even (1), depth (of the lower node), size (classes below)",
		Grid:    []string{jobspec.EdgesEven}, Ladder: []string{jobspec.EdgesSize,
			jobspec.EdgesDepth}},
	{Name: "cost-by", Kind: method.Choice, Default: "class", Choices: []string{"class", jobspec.CostByDegree},
		Group: method.GroupMethod, On: method.Graphs,
		Help:   "graphs, what ‹C› multiplies: losses per class, or by degree, its number of neighbours",
		Grid:   []string{"class"},
		Ladder: []string{jobspec.CostByDegree}, Start: jobspec.CostByDegree},
	{Name: "bias-pull", Kind: method.Choice, Default: "parent", Choices: []string{"parent", jobspec.BiasZero},
		Group: method.GroupMethod, On: method.Structured,
		Help: "what a class's bias is regularised towards: its parent's bias, or zero", Grid: []string{"parent"},
		Ladder: []string{jobspec.BiasZero}},
	method.GapWanted,
	{Name: "schedule", Kind: method.Choice, Default: ScheduleTwoblock, Group: method.GroupPath, Report: true,
		Choices: []string{ScheduleTwoblock, ScheduleParity, ScheduleColour, ScheduleJacobi},
		OfTrees: []string{ScheduleParity},
		Help:    "updates in a sweep: twoblock (classes, then inner nodes), parity (levels), colour, jacobi"},
	{Name: "colouring", Kind: method.Choice, Default: "largest-first", Choices: []string{"largest-first", "smallest-last",
		"dsatur"}, Group: method.GroupPath,
		On: method.Graphs, With: "schedule=" + ScheduleColour, Help: "heuristic for the greedy colouring of schedule colour"},
	{Name: "stiffness", Kind: method.Choice, Default: "support", Choices: []string{"support", "full"},
		Group: method.GroupPath,
		Help:  "twoblock, curvature of the parent update: support (support vectors; fast), full (safe)"},
	{Name: "momentum", Kind: method.Choice, Default: "fista", Choices: []string{"fista", "none"}, Group: method.GroupPath,
		Help: "twoblock: acceleration of the internal nodes from sweep to sweep"},
	{Name: "epochs", Key: "inner_epochs", Kind: method.Int, Default: "0", Range: method.Range{Most: 1000},
		Group: method.GroupPath,
		Help: "at least `N` passes over the data for each class in a sweep; 0: chosen by sweep and " +
			"loss"},
	method.EvalEvery, method.PriorShift, method.WarmStart,
}

// Check implements method.Method. The worker refuses values out of ranges that only the solver
// knows.
func (n named) Check(p *method.Problem) error {
	if !p.Tree.IsGraph() {
		return nil
	}
	return method.NeedTree(p.Spec.GetOptions(), n.Options())
}

// NoGap implements method.Warner.
func (n named) NoGap(spec *taxonv1.JobSpec) error {
	if uncertified(spec) {
		return errors.New("‹anchor=0›: must be above 0, as without an anchor there is no gap to train to")
	}
	return nil
}

// Warnings implements method.Warner.
func (n named) Warnings(p *method.Problem) []string {
	if n.logistic() && uncertified(p.Spec) {
		return []string{"with ‹anchor=0› and the logistic loss the objective may have no minimum: the training ends when " +
			"it hardly falls any more, or at ‹max-sweeps›; an anchor above 0 (default 0.01) gives it one, and a certificate"}
	}
	return nil
}

// Plan implements method.Method.
func (n named) Plan(p *method.Problem) (*method.Plan, error) {
	plan := newPlan(p.Tree, p.Spec)
	return &method.Plan{
		Items: []method.Items{
			Blocks: {Kind: method.Terminals, Count: len(plan.BlockSet), Cost: blockCosts(p.Tree, p.Spec.GetData(), plan),
				Members: plan.Block},
			Ranges: {Kind: method.Ranges, Count: len(plan.RangeBegin) - 1},
		},
		Variables: []method.Variable{
			{Name: Dual, Items: Blocks, Versions: 1},
			{Name: V, Items: Blocks, Versions: 1, Cut: true, By: Ranges},
			{Name: X, Items: Ranges, Versions: 2, Whole: true},
		},
		Sums:  sumNames,
		Nodes: p.Tree.Len(), Terminals: len(plan.BlockTerminals), Internals: len(p.Tree.Internals()),
		Detail: method.Encode(plan),
	}, nil
}

// Estimate implements method.Method.
func (n named) Estimate(p *method.Problem, plan *method.Plan) method.Estimate {
	detail, err := Detail(plan.Detail)
	if err != nil {
		return method.Estimate{}
	}
	return estimate(p.Tree, p.Spec, detail)
}

// Driver implements method.Method.
func (n named) Driver(spec *taxonv1.JobSpec, plan *method.Plan, s method.State) (method.Driver, error) {
	detail, err := Detail(plan.Detail)
	if err != nil {
		return nil, err
	}
	o, err := SettingsOf(spec.GetOptions())
	if err != nil {
		return nil, err
	}
	d := newDriver(o, spec, detail, plan.Internals > 0)
	if s == nil {
		return d, nil
	}
	return d, d.restore(s)
}
