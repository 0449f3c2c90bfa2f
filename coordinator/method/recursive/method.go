// Package recursive plans and drives recursive regularisation, and the flat methods that are
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
//   - plan.go, ranges.go: blocks of terminals and feature ranges
//   - driver.go: the steps, momentum, safeguard; stop.go: certificate and stopping; timeup.go: the end by the clock
//   - estimate*.go: memory and time
package recursive

import (
	"errors"
	"fmt"
	"slices"

	"taxon/coordinator/method"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
)

// Methods are the methods of this family: they differ in the loss that they take, and in
// whether they use the structure.
var Methods = []method.Method{named("rr-svm"), named("rr-lr"), named("bsvm"), named("blr")}

// named is a method of the family.
type named string

// Name implements method.Method.
func (n named) Name() string { return string(n) }

// Unstructured implements method.Unstructured.
func (n named) Unstructured() bool { return n == "bsvm" || n == "blr" }

// Check implements method.Method. Ranges that only the solver knows about are the worker's to refuse.
func (n named) Check(p *method.Problem) error {
	o := p.Spec.GetOptions()
	errs := []error{jobspec.CheckWeights(o)}
	if !(o.GetC() > 0) {
		errs = append(errs, fmt.Errorf("option C is %g: give a value above 0", o.GetC()))
	}
	if !(o.GetBias() >= 0) {
		errs = append(errs, fmt.Errorf("bias %g: give 0 (none) or more", o.GetBias()))
	}
	known := []string{"", jobspec.ScheduleTwoblock, jobspec.ScheduleParity, jobspec.ScheduleColour, jobspec.ScheduleJacobi}
	if !slices.Contains(known, o.GetSchedule()) {
		errs = append(errs, fmt.Errorf("schedule %q: use twoblock, parity, colour or jacobi", o.GetSchedule()))
	}
	if p.Tree.IsGraph() && o.GetSchedule() == jobspec.ScheduleParity {
		errs = append(errs, fmt.Errorf("schedule parity needs a tree, as a graph has no levels: use twoblock or colour"))
	}
	return errors.Join(errs...)
}

// Plan implements method.Method.
func (n named) Plan(p *method.Problem) (*method.Plan, error) {
	plan := newPlan(p.Tree, p.Spec)
	return &method.Plan{
		Items: []method.Items{
			Blocks: {Kind: method.Terminals, Count: len(plan.BlockSet), Cost: blockCosts(p.Tree, p.Spec.GetData(), plan), Members: plan.Block},
			Ranges: {Kind: method.Ranges, Count: len(plan.RangeBegin) - 1},
		},
		Values: []method.Value{
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
	d := newDriver(spec, detail, plan.Internals > 0)
	if s == nil {
		return d, nil
	}
	return d, d.restore(s)
}
