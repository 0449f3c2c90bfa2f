// Package msvm plans and drives the multi-class support vector machine of Crammer and Singer:
//
//	min_W  P(W) = 1/2 sum_m ||w_m||^2 + C sum_i xi_i,   xi_i = max(0, max_{m != y_i} 1 + w_m.x_i - w_{y_i}.x_i)
//
// over all classes at once, without a structure; every instance has exactly one label y_i. It
// is solved by the sequential dual method: mapper/msvm has the maths.
//
// The whole problem is one item, and a sweep one step with one task: passes of dual coordinate
// descent over the classes that each instance looks at, then a pass over all instances and
// classes, which certifies what is there. The duals are the state: they are stored after every
// sweep, and the weights follow from them.
//
//   - method.go: what is refused, the plan, memory and time
//   - params.go: what coordinator and worker tell each other
//
// The steps are those of coordinator/method/whole.
package msvm

import (
	"fmt"

	"taxon/coordinator/method"
	"taxon/coordinator/method/whole"
	taxonv1 "taxon/proto/taxon/v1"
)

// Name is the value of --method.
const Name = "msvm"

// Loss is the one loss that the method has.
const Loss = "crammer-singer"

// Method is the multi-class support vector machine.
type Method struct{}

// Name implements method.Method.
func (Method) Name() string { return Name }

// About implements method.Method.
func (Method) About() string {
	return "the multi-class SVM of Crammer and Singer, without the structure"
}

// Unstructured implements method.Unstructured.
func (Method) Unstructured() bool { return true }

// Options implements method.Method.
func (Method) Options() []method.Option {
	return []method.Option{method.Loss(Loss), method.Cost, method.Bias, method.GapWanted, method.EvalEvery, method.PriorShift}
}

// Check implements method.Method.
func (Method) Check(p *method.Problem) error {
	if err := method.NoStructure(Name, p); err != nil {
		return err
	}
	return OneLabelEach(p.Spec.GetData())
}

// OneLabelEach refuses data whose instances do not all have exactly one label.
func OneLabelEach(d *taxonv1.Data) error {
	return method.OneLabelEach(d, "method "+Name, "rr-svm, rr-lr, bsvm or blr")
}

// Plan implements method.Method.
func (Method) Plan(p *method.Problem) (*method.Plan, error) {
	d, classes := p.Spec.GetData(), len(p.Tree.Terminals())
	if classes == 0 || d.GetInstances() == 0 {
		return nil, fmt.Errorf("%d instances of %d classes: there is nothing to train", d.GetInstances(), classes)
	}
	return &method.Plan{
		Items:  []method.Items{whole.Problems: {Kind: method.Whole, Count: 1, Cost: []float64{float64(d.GetNonzeros()) * float64(classes)}}},
		Values: []method.Value{{Name: Dual, Items: whole.Problems, Versions: 1}},
		Sums:   sumNames,
		Nodes:  p.Tree.Len(), Terminals: classes,
	}, nil
}

// Figures of the estimate: an instance looks at some classes, each of which takes a dual, a
// class and its share of the instance's figures.
const (
	workingClasses = 16
	bytesPerDual   = 12
	rowBytes       = 160 // of a pricing pass, and of the order
	visitSeconds   = 2.5e-9
	priceSeconds   = 0.3e-9
	epochs         = 20
	sweeps         = 8
)

// Estimate implements method.Method.
func (Method) Estimate(p *method.Problem, plan *method.Plan) method.Estimate {
	data, classes := p.Spec.GetData(), uint64(plan.Terminals)
	rows, working := data.GetInstances(), min(classes, workingClasses)
	duals := rows * working * bytesPerDual
	vectors := 8 * classes * (data.GetFeatures() + 1)
	tile := (4*16 + 4) * (data.GetFeatures() + 1)
	e := method.Estimate{
		Data: method.DataBytes(data), WorkerShared: method.TreeBytes(plan.Nodes) + 12*rows,
		WorkerSlot:  vectors + tile + rows*(rowBytes+8*working) + 3*duals,
		Coordinator: method.TreeBytes(plan.Nodes),
		StoreSweep:  duals + 1, StoreJob: 2*duals + 1, TrafficSweep: 2*duals + 1,
		Dense:     true,
		SlotHolds: fmt.Sprintf("weights of %d classes over %d features, in float64", classes, data.GetFeatures()),
		Sweeps:    sweeps,
	}
	e.StoreLocal = e.StoreJob
	visits := float64(data.GetNonzeros() + rows)
	e.SecondsSweep = []float64{priceSeconds*visits*float64(classes) + epochs*visitSeconds*visits*float64(working)/4}
	return e
}

// Driver implements method.Method.
func (Method) Driver(spec *taxonv1.JobSpec, _ *method.Plan, s method.State) (method.Driver, error) {
	return whole.New(spec.GetOptions(), whole.Setup{Value: Dual}, s)
}
