// Package plan plans and drives hierarchical Bayesian logistic regression by partial MAP.
// internal/methods/hblr/solver has the model, its updates and the symbols.
//
// A sweep is one round of all updates from a point x, which consists of the internals' means and
// the logarithms of the precisions:
//
//	fit        blocks  with --prior blr, once: the priors' rates
//	leaves     blocks  the leaves' means and variances at x, and their contributions to their parents
//	internals  ranges  the internals' means G(x), all at once; of M2 the precisions too
//	gamma      whole   the precisions of M1 and M3, from sums over the features
//	move       ranges  the next point, extrapolated from the last G(x) (anderson.go)
//
// With the soft-max likelihood, leaves and partition (whole) alternate until the leaves are at
// their joint maximum. Only then do they contribute to their parents (partition.go).
//
// With schedule parity, leaves and internals run twice: leaves of even depth, internals of odd
// depth, then the others. Partial MAP does not minimise a single function, so there is no bound:
// the job ends when another round would change the point by less than the tolerance. The precisions
// and leaves that are written belong to the same x, so the objective in the report is that of the
// weights.
//
//   - method.go: refused problems, the plan; estimate.go: memory and time
//   - params.go: operations, parameters, values and figures that coordinator and worker share
//   - driver.go: the steps, stopping; partition.go: the steps of the soft-max; anderson.go: extrapolation, and the rate
package plan

import (
	"errors"
	"fmt"
	"strings"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/data/taxonomy"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
)

func init() { registry.Register(70, Methods...) }

// Method is a variant, by its name.
type Method string

// Methods lists the variants of [TKDD] section 3.
var Methods = []method.Method{Method("hblr-m1"), Method("hblr-m2"), Method("hblr-m3")}

// Name implements method.Method.
func (m Method) Name() string { return string(m) }

// About implements method.Method.
func (m Method) About() string {
	return map[string]string{
		"m1": "hierarchical Bayesian logistic regression: learns how alike the children of each node are; no C to tune",
		"m2": "the same, for each node and feature",
		"m3": "the same, for each class and node by itself",
	}[m.variant()]
}

func (m Method) variant() string { return strings.TrimPrefix(string(m), "hblr-") }

// Traits implements method.Method. In the papers' "flat" columns, all classes are directly below a
// root. There is no prior for a class that no instance has, or that all have.
func (m Method) Traits(o *taxonv1.Options) method.Traits {
	owners := map[string]string{"m1": form.OfChildren, "m2": form.ByFeature, "m3": form.Own}
	f := form.Form{Weights: form.Whole, Link: form.Logistic, Precision: owners[m.variant()]}
	if o.Value("likelihood") == Softmax {
		f.Link = form.Softmax
	}
	return method.Traits{Form: f, Rooted: true, Populated: true, Searched: true}
}

// These are the schedules that the method supports.
const (
	twoblock = "twoblock"
	parity   = "parity"
)

// options lists the options that all variants have. An option with a single choice is there so that
// reports show it.
var options = []method.Option{
	settled(method.Bias), settled(method.Families),
	{Name: "inference", Kind: method.Choice, Default: "map", Choices: []string{"map", Variational},
		Group: method.GroupMethod, Report: true,
		Help: "posterior approximation: map (Laplace) or variational (Gaussian, maximises the ELBO)"},
	{Name: "covariance", Kind: method.Choice, Default: Full, Choices: []string{Full, Diagonal}, Group: method.GroupMethod,
		With: "inference=" + Variational, Report: true,
		Help: "covariance of a class's posterior: full (quadratic in the features) or diagonal"},
	{Name: "likelihood", Kind: method.Choice, Default: "binary", Choices: []string{"binary", Softmax},
		Group: method.GroupMethod, Report: true,
		Help: "binary (one-versus-rest, also for multi-label data) or softmax (single-label data)"},
	{Name: "prior", Kind: method.Choice, Default: "fisher", Choices: []string{"fisher", Fitted}, Group: method.GroupMethod,
		Report: true,
		Help:   "prior of the precisions: fisher (Fisher information) or blr (of a logistic regression)"},
	{Name: "prior-inverse", Kind: method.Choice, Default: Diagonal, Choices: []string{Diagonal, Full},
		Group: method.GroupMethod, Report: true,
		Help: "inverse of the Fisher information for the prior: diagonal, or full for a few " +
			"features"},
	{Name: "prior-scale", Kind: method.Choice, Default: ScalePaper, Choices: []string{ScalePaper, ScaleMedian, ScaleDF},
		Group: method.GroupMethod, Report: true,
		Help: "pooling of features into one prior: paper (mean), median, df (weighted mean)"},
	{Name: "tolerance", Kind: method.Float, Default: "0.001", Range: method.Above0To1, Group: method.GroupStopping,
		Report: true,
		Help:   "stop when further rounds would change precisions and means by less than this share"},
	{Name: "schedule", Kind: method.Choice, Default: twoblock, Choices: []string{twoblock, parity},
		Group: method.GroupPath, Report: true,
		Help: "what a sweep solves at a time: twoblock, all classes and then all internal nodes at once; parity, even " +
			"and odd levels in turn"},
	method.EvalEvery, method.WarmStart,
}

// settled makes a search try only the option's default, unless the user names values. Priors are
// learned, so there is nothing to search for.
func settled(o method.Option) method.Option {
	o.Grid, o.Ladder = []string{o.Default}, nil
	return o
}

// These are the values of options.
const (
	Variational                      = "variational"
	Softmax                          = "softmax"
	Fitted                           = "blr"
	Diagonal, Full                   = "diagonal", "full"
	ScalePaper, ScaleMedian, ScaleDF = "paper", "median", "df"
)

// Options implements method.Method.
func (Method) Options() []method.Option { return options }

// Settings holds the options that the programs use.
type Settings struct {
	Inference  string  `option:"inference"`
	Likelihood string  `option:"likelihood"`
	Covariance string  `option:"covariance"`
	Prior      string  `option:"prior"`
	Inverse    string  `option:"prior-inverse"`
	Scale      string  `option:"prior-scale"`
	Schedule   string  `option:"schedule"`
	Tolerance  float64 `option:"tolerance"`
	Bias       float64 `option:"bias"`
	MaxSweeps  uint32  `option:"max-sweeps"`
	EvalEvery  uint32  `option:"eval-every"`
}

// SettingsOf parses the options of a job.
func SettingsOf(o *taxonv1.Options) (s Settings, err error) {
	return s, method.ReadOptions(o, options, &s)
}

// fullFeatures is the largest number of features for which a full information matrix is inverted,
// or a full covariance is stored. Such a matrix takes 32 MiB.
const fullFeatures = 2048

// covarianceBytes returns the size of a covariance in bytes.
func covarianceBytes(d *taxonv1.Data) uint64 {
	return 8 * (d.GetFeatures() + 1) * (d.GetFeatures() + 1)
}

// Check implements method.Method.
func (m Method) Check(p *method.Problem) error {
	if p.Tree.IsGraph() {
		return fmt.Errorf("method %s needs a tree: a graph has no parents on which priors could be centred; read a "+
			"hierarchy with several parents as a tree with ‹dag=first-parent›", m)
	}
	errs := []error{m.checkClasses(p)}
	s, err := SettingsOf(p.Spec.GetOptions())
	if d := p.Spec.GetData(); s.Inverse == Full && (d.GetFeatures() > fullFeatures ||
		d.GetFeatures() >= d.GetInstances()) {
		errs = append(errs, fmt.Errorf("prior-inverse full with %d features and %d instances: it is for at most %d "+
			"features, and fewer than instances; leave it out", d.GetFeatures(), d.GetInstances(), fullFeatures))
	}
	if d := p.Spec.GetData(); s.Inference == Variational && s.Covariance == Full && d.GetFeatures() > fullFeatures {
		errs = append(errs, fmt.Errorf("covariance full with %d features takes %d MiB for each task: it is for at most %d "+
			"features; give ‹covariance=diagonal›", d.GetFeatures(), covarianceBytes(d)>>20, fullFeatures))
	}
	if s.Scale != ScalePaper && m.variant() == "m2" {
		errs = append(errs, fmt.Errorf("prior-scale %s goes with hblr-m1 and hblr-m3: hblr-m2 has a prior for each "+
			"feature; leave it out", s.Scale))
	}
	if s.Inference == Variational && s.Schedule == parity {
		errs = append(errs, fmt.Errorf("schedule %s goes with inference map: the lower bound is of one point, which "+
			"schedule %s moves whole", parity, twoblock))
	}
	if s.Likelihood == Softmax {
		errs = append(errs, OneLabelEach(p.Spec.GetData()))
		if s.Schedule == parity {
			errs = append(errs, fmt.Errorf("schedule %s goes with likelihood binary: softmax ties the classes of all levels, "+
				"which schedule %s moves together", parity, twoblock))
		}
	}
	return errors.Join(append(errs, err)...)
}

// OneLabelEach returns an error unless every instance has exactly one label.
func OneLabelEach(d *taxonv1.Data) error {
	return method.OneLabelEach(d, "likelihood "+Softmax, "‹likelihood=binary›")
}

// checkClasses returns an error if the prior of some leaf would be infinite.
func (m Method) checkClasses(p *method.Problem) error {
	data, empty, full, which := p.Spec.GetData(), 0, 0, ""
	for _, n := range p.Tree.Terminals() {
		count := uint64(0)
		if l := p.Tree.Label[n]; l >= 0 {
			count = uint64(data.GetLabelInstances()[l])
		}
		switch count {
		case 0:
			empty++
		case data.GetInstances():
			full++
		default:
			continue
		}
		if which == "" {
			which = p.Tree.Name[n]
		}
	}
	switch {
	case empty > 0:
		return fmt.Errorf("class %q has no instance (%d such), so method %s has no prior for it: leave ‹prune=none› out",
			which, empty, m)
	case full > 0:
		return fmt.Errorf("class %q is that of every instance, so method %s has no prior for it: there is "+
			"nothing to tell apart", which, m)
	}
	return nil
}

const (
	blockLeaves = 16 // lanes of a solve (internal/methods/hblr/solver.Lanes)

	// rangeEntries bounds the entries of a range's point. Only a range of a single column may have
	// more.
	rangeEntries = 1 << 18
	// There are at least minRanges ranges, which share the work on internals, provided that each
	// has rangeColumns columns.
	minRanges, rangeColumns = 8, 64
	maxRanges               = 1 << 12
	// The store keeps every past round of the extrapolation, so larger points have fewer of them:
	// somePastRounds above someEntries, and a single one above mostEntries.
	someEntries, somePastRounds = 1 << 19, 6
	manyEntries, fewPastRounds  = 1 << 23, 2
	mostEntries                 = 1 << 26 // above this size, a single past round

	// maxPieces bounds the number of steps in which a large job solves its leaves or moves its
	// points. A step has at least PieceTasks tasks.
	maxPieces = 8

	// narrowTolerance is the smallest tolerance that points in float32 can reach.
	narrowTolerance = 1e-4
)

// NarrowFrom is the size of a large job, in numbers of its leaves' means and one point together. A
// large job stores them as float32 and runs in pieces of at least PieceTasks tasks. Tests lower
// both variables.
var NarrowFrom, PieceTasks uint64 = 1 << 25, 48

// Plan implements method.Method.
func (m Method) Plan(p *method.Problem) (*method.Plan, error) {
	d := p.Spec.GetData()
	columns := d.GetFeatures()
	if method.Bias.Number(p.Spec.GetOptions()) > 0 {
		columns++
	}
	if columns == 0 || d.GetInstances() == 0 {
		return nil, fmt.Errorf("%d instances with %d features: there is nothing to train", d.GetInstances(), columns)
	}
	internals := uint64(len(p.Tree.Internals()))
	entries := internals * columns
	if m.variant() == "m2" {
		entries *= 2
	}
	ranges := min(max((entries+rangeEntries-1)/rangeEntries, min(minRanges, columns/rangeColumns), 1), maxRanges, columns)
	detail := Plan{Variant: m.variant(), Width: uint32((columns + ranges - 1) / ranges), Memory: Memory}
	switch {
	case entries > mostEntries:
		detail.Memory = 1
	case entries > manyEntries:
		detail.Memory = fewPastRounds
	case entries > someEntries:
		detail.Memory = somePastRounds
	}
	settings, err := SettingsOf(p.Spec.GetOptions())
	if err != nil {
		return nil, err
	}
	detail.Bounded, detail.Softmax, detail.Fitted = settings.Inference == Variational, settings.Likelihood == Softmax,
		settings.Prior == Fitted
	detail.Narrow = columns*uint64(len(p.Tree.Terminals()))+entries >= NarrowFrom &&
		settings.Tolerance >= narrowTolerance && !detail.Bounded && !detail.Softmax
	detail.cut(p.Tree, settings.Schedule == parity)
	blocks := len(detail.Begin) - 1
	cost := make([]float64, blocks)
	for b := range cost {
		cost[b] = float64(d.GetNonzeros()+d.GetInstances()) * float64(len(detail.Block(b)))
	}
	history, points := detail.Memory+1, 1
	if detail.Bounded { // a point at which the bound has decreased is dropped
		points = 2
	}
	ranges = (columns + uint64(detail.Width) - 1) / uint64(detail.Width)
	if detail.Pieces = 1; detail.Narrow && settings.Schedule == twoblock {
		detail.Pieces = uint32(min(max(min(uint64(blocks), ranges)/PieceTasks, 1), maxPieces))
	}
	plan := &method.Plan{
		Items: []method.Items{
			Blocks: {Kind: method.Terminals, Count: blocks, Cost: cost, Members: detail.Block},
			Ranges: {Kind: method.Ranges, Count: int(ranges)},
			Whole:  {Kind: method.Whole, Count: 1},
		},
		Variables: []method.Variable{
			{Name: Leaf, Items: Blocks, Versions: 1},
			{Name: Contribution, Items: Blocks, Versions: 1, Cut: true, By: Ranges},
			{Name: Trace, Items: Blocks, Versions: 1},
			{Name: Above, Items: Ranges, Versions: 1, Whole: true, Cut: true, By: Blocks},
			{Name: Half, Items: Ranges, Versions: 1, Whole: true},
			{Name: Part, Items: Ranges, Versions: 1, Whole: true},
			{Name: X, Items: Ranges, Versions: points, Whole: true},
			{Name: G, Items: Ranges, Versions: history, Whole: true},
			{Name: F, Items: Ranges, Versions: history, Whole: true},
			{Name: XAlpha, Items: Whole, Versions: points},
			{Name: GAlpha, Items: Whole, Versions: history},
			{Name: FAlpha, Items: Whole, Versions: history},
		},
		Sums:  sumNames(),
		Nodes: p.Tree.Len(), Terminals: len(p.Tree.Terminals()), Internals: int(internals),
		Detail: method.Encode(detail),
	}
	if m.variant() == "m2" && !detail.Bounded {
		plan.Variables = append(plan.Variables, method.Variable{Name: Pace, Items: Ranges, Versions: 1, Whole: true})
	}
	if detail.Apart() {
		plan.Variables = append(plan.Variables, method.Variable{Name: Slope, Items: Whole, Versions: 1})
	}
	if detail.Softmax {
		offsets := method.Variable{Name: Offset, Items: Whole, Versions: 1}
		if detail.Bounded {
			offsets.Versions = OffsetMemory + 1
			plan.Variables = append(plan.Variables, method.Variable{Name: OffsetF, Items: Whole, Versions: OffsetMemory + 1})
		} else {
			plan.Variables = append(plan.Variables, method.Variable{Name: Couple, Items: Whole, Versions: 1},
				method.Variable{Name: JointState, Items: Blocks, Versions: 1})
		}
		plan.Variables = append(plan.Variables, offsets,
			method.Variable{Name: Share, Items: Blocks, Versions: 1},
			method.Variable{Name: PreviousMeans, Items: Blocks, Versions: 1})
	}
	if detail.Fitted {
		rate := method.Variable{Name: Rate, Items: Blocks, Versions: 1}
		if m.variant() == "m2" {
			rate.Cut, rate.By = true, Ranges
		}
		plan.Variables = append(plan.Variables, rate)
	}
	if detail.Bounded {
		plan.Variables = append(plan.Variables,
			method.Variable{Name: Sigma, Items: Blocks, Versions: 1},
			method.Variable{Name: EM, Items: Ranges, Versions: 2, Whole: true},
			method.Variable{Name: EMAlpha, Items: Whole, Versions: 2})
	}
	return plan, nil
}

// cut divides the leaves into blocks. With schedule parity the leaves of even depth come first.
func (p *Plan) cut(tree *taxonomy.Tree, parity bool) {
	sets := [][]uint32{nil}
	if parity {
		sets = append(sets, nil)
	}
	for _, n := range tree.Terminals() {
		s := 0
		if parity {
			s = tree.Parity(n)
		}
		sets[s] = append(sets[s], uint32(n))
	}
	p.Begin = []uint32{0}
	for _, nodes := range sets {
		if parity {
			p.Sets = append(p.Sets, uint32(len(p.Begin)-1))
		}
		for at := 0; at < len(nodes); at += blockLeaves {
			p.Nodes = append(p.Nodes, nodes[at:min(at+blockLeaves, len(nodes))]...)
			p.Begin = append(p.Begin, uint32(len(p.Nodes)))
		}
	}
	if parity {
		p.Sets = append(p.Sets, uint32(len(p.Begin)-1))
	}
}
