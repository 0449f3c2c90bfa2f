// Package plan plans and drives maximum margin hierarchical multilabel models, H-M3 of [JMLR]. The
// model has a microlabel for each node of the tree, and vectors for the labelings of its edges. The
// margin of each instance's labeling over any other grows with the loss of the other.
// internal/methods/hm3/solver has the problem and its solution.
//
// The whole problem is one item, driven by internal/methods/blockwise. Its value holds the
// marginals of the instances' duals. The root is a microlabel, which is 0 for an instance without a
// label. If there are several roots, or no structure, a root that is not a class joins them. An
// instance may have any number of labels, including those of internal nodes, for which no leaf is
// added.
package plan

import (
	"fmt"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/data/taxonomy"
	"taxon/internal/methods/blockwise"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
)

func init() { registry.Register(50, Method{}) }

// Name is the value of --method. Loss is the only loss of the method.
const (
	Name = "hm3"
	Loss = "margin"
)

// Dual is the family of values.
const Dual = "dual"

// These are the figures of a task, in the order of method.Sums.
const (
	SumMoved  = blockwise.Figures + iota // instances whose duals are not all on the true labeling
	SumEpochs                            // passes over the instances
	SumVisits                            // nonzeros times microlabels
	Figures
)

// LabelLoss is the option for the loss of a labeling.
var LabelLoss = method.Option{Name: "label-loss", Kind: method.Choice, Default: "delta", Choices: []string{"delta",
	"unif", "sibl", "subtree"}, Group: method.GroupMethod,
	Help: "loss of a set of paths: delta (wrong nodes), or wrong nodes with right parents: " +
		"unif, sibl, subtree weights",
	Grid: []string{"delta"}, Report: true}

// Method is the method H-M3.
type Method struct{}

// Name implements method.Method.
func (Method) Name() string { return Name }

// About implements method.Method.
func (Method) About() string {
	return "maximum margin of sets of paths (H-M3): all nodes' labels of an instance together"
}

// Traits implements method.Method. The score of each node's vector is added to the paths through
// the node.
func (Method) Traits(*taxonv1.Options) method.Traits {
	return method.Traits{Form: form.Form{Weights: form.Whole, Predictor: form.Paths}, Rooted: true}
}

// Options implements method.Method.
func (Method) Options() []method.Option {
	return []method.Option{method.Loss(Loss), LabelLoss, method.Cost, method.Bias, method.Families, method.GapWanted,
		method.EvalEvery}
}

// Settings holds the options that the program uses.
type Settings struct {
	LabelLoss string  `option:"label-loss"`
	C         float64 `option:"C"`
	Bias      float64 `option:"bias"`
}

// SettingsOf parses the options of a job.
func SettingsOf(o *taxonv1.Options) (s Settings, err error) {
	err = method.ReadOptions(o, Method{}.Options(), &s)
	return s, err
}

// Check implements method.Method.
func (Method) Check(p *method.Problem) error {
	switch {
	case p.Tree.IsGraph():
		return fmt.Errorf("method %s searches labelings of a tree, which a graph is not: give ‹hierarchy› a tree, or read "+
			"it as one with ‹dag=first-parent›", Name)
	case len(Microlabels(p.Tree)) < 2:
		return fmt.Errorf("method %s has vectors of edges, and this structure has none", Name)
	}
	return nil
}

// Microlabels lists the nodes that have a microlabel, with the root first. These are all nodes
// except the leaves that taxon adds.
func Microlabels(t *taxonomy.Tree) (nodes []uint32) {
	for n, k := range t.Kind {
		if k != taxonomy.Spawned {
			nodes = append(nodes, uint32(n))
		}
	}
	return nodes
}

// Plan implements method.Method.
func (Method) Plan(p *method.Problem) (*method.Plan, error) {
	d := p.Spec.GetData()
	return &method.Plan{
		Items: []method.Items{blockwise.Problems: {Kind: method.Whole, Count: 1,
			Cost: []float64{float64(d.GetNonzeros()) * 4 * float64(p.Tree.Len())}}},
		Variables: []method.Variable{{Name: Dual, Items: blockwise.Problems, Versions: 1}},
		Sums: blockwise.Sums(method.Sum{Name: "moved", Count: true}, method.Sum{Name: "epochs", Count: true},
			method.Sum{Name: "visits", Count: true}),
		Nodes: p.Tree.Len(), Terminals: len(p.Tree.Terminals()), Internals: len(p.Tree.Internals()),
	}, nil
}

// These constants calibrate the estimate. An instance has a few nonzero marginals per node.
const (
	marginals    = 1.5
	visitSeconds = 4e-9 // seconds per nonzero and microlabel
	epochs       = 15
	sweeps       = 6
)

// Estimate implements method.Method.
func (Method) Estimate(p *method.Problem, plan *method.Plan) method.Estimate {
	d, nodes := p.Spec.GetData(), uint64(plan.Nodes)
	rows := d.GetInstances()
	duals := uint64(9*marginals*float64(rows*nodes)) + 1
	vectors := 96 * nodes * (d.GetFeatures() + 1)
	e := method.Estimate{
		Data: method.DataBytes(d), WorkerShared: method.TreeBytes(plan.Nodes) + rows*(48+nodes/8),
		WorkerSlot: vectors + 96*rows*nodes + 3*duals, Coordinator: method.TreeBytes(plan.Nodes),
		StoreSweep: duals, StoreJob: 2 * duals, StoreLocal: 2 * duals, TrafficSweep: 2 * duals,
		Dense: true,
		SlotHolds: fmt.Sprintf("weights of four labelings of %d edges over %d features, and two changes of them, in float64",
			nodes, d.GetFeatures()),
		Sweeps: sweeps,
	}
	e.SecondsSweep = []float64{visitSeconds * epochs * float64(d.GetNonzeros()+rows) * float64(nodes)}
	return e
}

// Driver implements method.Method.
func (Method) Driver(spec *taxonv1.JobSpec, _ *method.Plan, s method.State) (method.Driver, error) {
	return blockwise.New(spec.GetOptions(), blockwise.Setup{Value: Dual}, s)
}
