// Package plan plans and drives multi-class support vector machines, flat and over a tree:
//
//	min_W  P(W) = R(W) + C sum_i xi_i,   xi_i = max(0, max_r s_r (e_r - m_r))
//
// m_r is the margin of instance i over the alternative r. Every instance has exactly one label y_i.
// Except for msvm, C is divided by the number of instances.
//
//	msvm, flatmult  Crammer and Singer: r are the other classes, m_r = (w_y - w_r).x, R = 1/2 sum ||w||^2
//	hiermult        the same at each node of a tree, among its children, on the instances below it
//	hsvm            r are the other leaves, a leaf's vector is the sum over its path; s = Delta(y, r) or e = Delta(y, r)
//	rr-msvm         the same vectors, each node's the difference from its parent's: the loss of msvm, R = 1/2 sum ||w_n - w_parent||^2
//	transfer, ot    r are the siblings of the nodes on the path to y; R ties nodes to their parents, or
//	                sets them apart from their ancestors
//
// docs/methods.md describes each method. They are solved by dual coordinate ascent over a working
// set of alternatives for each instance; internal/methods/msvm/solver has the maths. The whole
// problem is one item, except for hiermult, which has an item for each node. A sweep has one task
// per item: passes over the working sets, then a pass over all alternatives, which computes the
// certificate. The duals are the state: they are stored after every sweep, and determine the
// weights.
//
//   - method.go: the methods, refused problems
//   - plan.go: the plan, memory and time
//   - params.go: values and figures that coordinator and worker share
//
// The steps are those of internal/methods/blockwise.
package plan

import (
	"errors"
	"fmt"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/methods/blockwise"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
)

func init() { registry.Register(40, Methods...) }

// Method is one of the methods, by the value of --method.
type Method string

// These are the methods.
const (
	Flat       Method = "msvm"
	FlatMean   Method = "flatmult"
	PerNode    Method = "hiermult"
	Paths      Method = "hsvm"
	Transfer   Method = "transfer"
	Orthogonal Method = "ot"
	Recursive  Method = "rr-msvm"
)

// Methods lists all methods of this package.
var Methods = []method.Method{Flat, FlatMean, PerNode, Paths, Transfer, Orthogonal, Recursive}

// Name implements method.Method.
func (m Method) Name() string { return string(m) }

// About implements method.Method.
func (m Method) About() string {
	return map[Method]string{
		Flat:       "the multi-class SVM of Crammer and Singer, without the structure",
		FlatMean:   "the same with C divided by the number of instances",
		PerNode:    "the same at each node of a hierarchy among its children; predictions descend from the root",
		Paths:      "one SVM over all paths of a hierarchy, with losses that grow with the distance of the leaves",
		Transfer:   "one SVM over the children of all nodes, which pulls each to its parent; predictions descend",
		Orthogonal: "one SVM over the children of all nodes, which sets each apart from its ancestors; predictions descend",
		Recursive: "recursive regularisation with the multi-class SVM of Crammer and Singer: classes near their parents, " +
			"all against each other",
	}[m]
}

// flat reports whether the method ignores the structure.
func (m Method) flat() bool { return m == Flat || m == FlatMean }

// Traits implements method.Method.
func (m Method) Traits(*taxonv1.Options) method.Traits {
	t := method.Traits{Unstructured: m.flat()}
	switch {
	case m.flat(), m == Recursive:
	case m == Paths:
		t.Form = form.Form{Weights: form.Whole, Predictor: form.Sums}
	default:
		t.Form = form.Form{Weights: form.Whole, Predictor: form.Greedy}
	}
	return t
}

// These are the ways in which hsvm rescales losses.
const (
	Slack  = "slack"
	Margin = "margin"
)

// Options implements method.Method.
func (m Method) Options() []method.Option {
	out := []method.Option{method.Loss("crammer-singer"), method.Cost, method.Bias, method.GapWanted, method.EvalEvery}
	switch m {
	case Flat, FlatMean, Recursive:
		return append(out, method.PriorShift)
	case PerNode:
		return out
	case Paths:
		out = append(out, method.Option{Name: "rescale", Kind: method.Choice, Default: Slack, Choices: []string{Slack,
			Margin}, Group: method.GroupMethod, Report: true,
			Help: "how the distance of two leaves enters the loss: slack rescaling or margin rescaling", Grid: []string{Slack}})
	case Orthogonal:
		out = append(out, method.Option{Name: "alpha", Kind: method.Float, Default: "1", Range: method.Above0,
			Group: method.GroupMethod, Report: true,
			Help: "orthogonality penalty between nodes and their ancestors; halved until the problem " +
				"is convex", Grid: []string{"1"}})
	}
	out[0] = method.Loss("hinge")
	return out
}

// Check implements method.Method.
func (m Method) Check(p *method.Problem) error {
	if m.flat() {
		if err := method.NoStructure(string(m), p); err != nil {
			return err
		}
	} else if err := m.checkTree(p); err != nil {
		return err
	}
	return OneLabelEach(string(m), p.Spec.GetData())
}

// checkTree returns an error if the structure is not a tree, or if no node has a choice of
// children.
func (m Method) checkTree(p *method.Problem) error {
	switch {
	case p.Tree.IsGraph():
		return fmt.Errorf("method %s needs a tree: give ‹hierarchy› one, or read a hierarchy in which nodes have several "+
			"parents as one with ‹dag=first-parent›", m)
	case p.Spec.GetStructure() == nil:
		return fmt.Errorf("method %s needs a hierarchy: give ‹hierarchy=FILE› (without one, msvm is the multi-class SVM)", m)
	case len(families(p.Tree)) == 0:
		return errors.New("the structure has no node with two children: there is nothing to choose between")
	}
	return nil
}

// OneLabelEach returns an error unless every instance has exactly one label.
func OneLabelEach(name string, d *taxonv1.Data) error {
	return method.OneLabelEach(d, "method "+name, "rr-svm, rr-lr, bsvm or blr")
}

// Driver implements method.Method.
func (m Method) Driver(spec *taxonv1.JobSpec, plan *method.Plan, s method.State) (method.Driver, error) {
	setup := blockwise.Setup{Value: Dual}
	if len(plan.Detail) > 0 {
		detail, err := Detail(plan.Detail)
		if err != nil {
			return nil, err
		}
		if setup.Nodes = detail.Name; m == Orthogonal {
			setup.Report = map[string]any{"alpha_used": detail.Alpha, "lambda_min": detail.LambdaMin}
		}
	}
	return blockwise.New(spec.GetOptions(), setup, s)
}
