// Package plan plans and drives the correlated multinomial logit of Shahbaba and Neal (2007),
// trained by Markov chain Monte Carlo. It is a soft-max in which the coefficients of a class are
// sums over its path. internal/methods/corrmnl/solver has the model, its priors and the sampler.
//
//	sample   chains  some iterations of each chain, from its current point
//	compare  whole   R-hat and effective sample sizes over all chains
//	emit     whole   the mean of the draws, and the kept draws, as weights
//
// Chains are items, so they run in parallel. A sweep is a batch of iterations of every chain. The
// first sweeps are the burn-in, during which step sizes are adapted. MCMC gives no error bound: the
// job ends after its iterations and reports how well the chains agree.
package plan

import (
	"errors"
	"fmt"
	"math"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
)

func init() { registry.Register(60, Method{}) }

// Name is the value of --method.
const Name = "corrmnl"

// Method is the correlated multinomial logit.
type Method struct{}

// Name implements method.Method.
func (Method) Name() string { return Name }

// About implements method.Method.
func (Method) About() string {
	return "Bayesian soft-max whose classes share coefficients along their paths, by MCMC; for small problems"
}

var options = []method.Option{
	method.Loss("softmax"), method.Bias,
	{Name: "iterations", Kind: method.Int, Default: "2500", Range: method.Range{Least: 2, Most: 1 << 24},
		Group: method.GroupMethod, Report: true,
		Help: "`N` iterations of each chain, burn-in included"},
	{Name: "burn-in", Kind: method.Int, Default: "1000", Range: method.Range{Least: 1, Most: 1 << 24},
		Group: method.GroupMethod, Report: true,
		Help: "first `N` iterations, which adapt the step size and are discarded"},
	{Name: "chains", Kind: method.Int, Default: "4", Range: method.Range{Least: 4, Most: 256,
		Why: "fewer say little of how far they agree"}, Group: method.GroupMethod, Report: true,
		Help: "`N` MCMC chains from dispersed starts, run side by side"},
	{Name: "keep-draws", Kind: method.Int, Default: "200", Range: method.Range{Least: 4, Most: 1 << 16},
		Group: method.GroupMethod,
		Help:  "average predictions over `N` posterior draws, which the model keeps"},
	{Name: "leapfrog", Kind: method.Int, Default: "30", Range: method.Range{Least: 1, Most: 1 << 12},
		Group: method.GroupPath,
		Help:  "at most `N` leapfrog steps of a trajectory, each a pass over the data"},
	method.EvalEvery,
}

// Options implements method.Method.
func (Method) Options() []method.Option { return options }

// Settings holds the options that the programs use.
type Settings struct {
	Bias       float64 `option:"bias"`
	Iterations uint32  `option:"iterations"`
	BurnIn     uint32  `option:"burn-in"`
	Chains     uint32  `option:"chains"`
	Keep       uint32  `option:"keep-draws"`
	Leapfrog   uint32  `option:"leapfrog"`
	MaxSweeps  uint32  `option:"max-sweeps"`
	EvalEvery  uint32  `option:"eval-every"`
}

// SettingsOf parses the options of a job.
func SettingsOf(o *taxonv1.Options) (s Settings, err error) {
	return s, method.ReadOptions(o, options, &s)
}

// batches is the number of sweeps into which the draws are divided. It is also the number of batch
// means whose variance estimates the sampling error.
const batches = 30

// cut divides the iterations into sweeps: first the burn-in, then sweeps of `length` draws each.
// The last sweep may be shorter.
func (s Settings) cut() (length, burnIn, sweeps uint32) {
	draws := s.Iterations - s.BurnIn
	length = max(draws/batches, 1)
	burnIn = s.Iterations - draws/length*length
	return length, burnIn, (burnIn+length-1)/length + draws/length
}

// kept returns the number of draws of a chain that the model stores. They are every `every`-th
// draw.
func (s Settings) kept() (most, every uint32) {
	length, burnIn, _ := s.cut()
	draws := (s.Iterations - burnIn) / length * length
	most = min((s.Keep+s.Chains-1)/s.Chains, draws)
	return most, draws / most
}

// Traits implements method.Method.
func (Method) Traits(o *taxonv1.Options) method.Traits {
	f := form.Form{Weights: form.Whole, Link: form.Softmax}
	if s, err := SettingsOf(o); err == nil && s.Iterations > s.BurnIn {
		most, _ := s.kept()
		f.Draws = int(most * s.Chains)
	}
	return method.Traits{Form: f}
}

// Check implements method.Method.
func (Method) Check(p *method.Problem) error {
	s, err := SettingsOf(p.Spec.GetOptions())
	errs := []error{err, OneLabelEach(p.Spec.GetData())}
	if err == nil && s.Iterations <= s.BurnIn {
		errs = append(errs, fmt.Errorf("burn-in %d of %d iterations leaves no draw: give fewer, or more ‹iterations›",
			s.BurnIn, s.Iterations))
	}
	switch {
	case p.Tree.IsGraph():
		errs = append(errs, fmt.Errorf("method %s sums coefficients along the paths of a tree, which a graph has not: give "+
			"‹hierarchy› a tree, or read it as one with ‹dag=first-parent›", Name))
	case p.Spec.GetStructure() == nil:
		errs = append(errs, fmt.Errorf("method %s needs a hierarchy: give ‹hierarchy=FILE› (without one, "+
			"mlr is the soft-max)", Name))
	case len(p.Tree.Terminals()) < 2:
		errs = append(errs, errors.New("the structure has one class: there is nothing to choose between"))
	}
	return errors.Join(errs...)
}

// OneLabelEach returns an error unless every instance has exactly one label.
func OneLabelEach(d *taxonv1.Data) error {
	return method.OneLabelEach(d, "method "+Name, "rr-svm, rr-lr, bsvm or blr")
}

// Plan implements method.Method.
func (Method) Plan(p *method.Problem) (*method.Plan, error) {
	d := p.Spec.GetData()
	s, err := SettingsOf(p.Spec.GetOptions())
	if err != nil {
		return nil, err
	}
	if d.GetInstances() == 0 || d.GetFeatures() == 0 && s.Bias == 0 {
		return nil, fmt.Errorf("%d instances with %d features: there is nothing to train", d.GetInstances(), d.GetFeatures())
	}
	cost := make([]float64, s.Chains)
	for c := range cost {
		cost[c] = float64(d.GetNonzeros()+d.GetInstances()) * float64(len(p.Tree.Terminals()))
	}
	return &method.Plan{
		Items: []method.Items{Chains: {Kind: method.Chains, Count: int(s.Chains), Cost: cost}, All: {Kind: method.Whole,
			Count: 1}},
		Variables: []method.Variable{{Name: Chain, Items: Chains, Versions: 1}},
		Sums:      sumNames,
		Nodes:     p.Tree.Len(), Terminals: len(p.Tree.Terminals()), Internals: len(p.Tree.Internals()),
	}, nil
}

// These constants calibrate the estimate.
const (
	visitSeconds = 2.6e-9 // seconds per nonzero and class of a gradient
	entrySeconds = 2e-8   // seconds per coefficient of a leapfrog step
	someSteps    = 10     // typical number of steps of a trajectory
)

// Estimate implements method.Method. Its unit is the vector of all branches' coefficients.
func (Method) Estimate(p *method.Problem, plan *method.Plan) method.Estimate {
	d := p.Spec.GetData()
	s, err := SettingsOf(p.Spec.GetOptions())
	if err != nil || s.Iterations <= s.BurnIn {
		return method.Estimate{} // Check has returned an error for it
	}
	length, _, sweeps := s.cut()
	most, _ := s.kept()
	entries := uint64(plan.Nodes) * (d.GetFeatures() + 1)
	vector, lanes := 8*entries, (uint64(plan.Terminals)+3)/4*4
	chain := vector*(1+2*batches) + 4*entries*uint64(most)
	values := uint64(s.Chains) * chain
	e := method.Estimate{
		Data: method.DataBytes(d), WorkerShared: method.TreeBytes(plan.Nodes) + vector + 12*d.GetInstances(),
		WorkerSlot:  6*vector + 8*d.GetInstances()*lanes + 2*chain + 8*32*(d.GetFeatures()+1),
		Coordinator: method.TreeBytes(plan.Nodes) + 64*uint64(s.Chains),
		StoreSweep:  values, StoreJob: 2 * values, StoreLocal: 2 * values, TrafficSweep: 2 * values,
		Dense: true,
		SlotHolds: fmt.Sprintf("a chain's draws of the coefficients of %d nodes over %d features", plan.Nodes,
			d.GetFeatures()),
		Less:   "‹keep-draws›",
		Sweeps: int(min(sweeps, math.MaxInt32)),
	}
	step := visitSeconds*float64(d.GetNonzeros()+d.GetInstances())*float64(plan.Terminals) + entrySeconds*float64(entries)
	e.SecondsSweep = []float64{float64(s.Chains) * float64(length) * float64(min(s.Leapfrog, someSteps)+1) * step}
	return e
}

// Driver implements method.Method.
func (Method) Driver(spec *taxonv1.JobSpec, _ *method.Plan, s method.State) (method.Driver, error) {
	return newDriver(spec.GetOptions(), s)
}
