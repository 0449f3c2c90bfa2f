// Package plan plans and drives the methods that train each node independently, on the instances
// below its parent. td is top-down classification, the pachinko machine. At each node of the tree
// with at least two children, it trains one support vector machine per child against its siblings,
// on the instances below the node:
//
//	min_w  1/2 ||w_c||^2 + C sum over instances i below p of loss(y_ic w_c.x_i)     for each child c of p
//
// y_ic = +1 if instance i has a label at or below c. Without a structure it is plain
// one-versus-rest. A prediction follows the best child from the root to a leaf. See
// docs/methods.md; docs/adding-a-method.md describes how this method was added.
//
// h-svm and h-rls ([JMLR] section 5) have a problem for every class of the structure, on the
// instances with a label at or below its parent: those that are labelled with the parent itself are
// negatives. No leaf is added for them. The problem of a root contains all instances. h-svm solves
// the problem above, and h-rls a ridge regression in closed form,
//
//	min_w  1/2 ||w_c||^2 + C/2 sum over instances i at or below p of (y_ic - w_c.x_i)^2
//
// A class is predicted if its parent is predicted and w_c.x > 0.
//
// The problems do not depend on each other: one step solves all of them, and another step writes
// the weights.
package plan

import (
	"fmt"
	"slices"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/data/taxonomy"
	rr "taxon/internal/methods/rr/plan"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
)

func init() { registry.Register(20, Methods...) }

// These are the values of --method.
const (
	Name = "td"
	HSVM = "h-svm"
	HRLS = "h-rls"
)

// Method is the coordinator's side of a method of this package. Methods lists all three.
var (
	Method  method.Method = td{Name}
	Methods               = []method.Method{Method, td{HSVM}, td{HRLS}}
)

type td struct{ name string }

// Name implements method.Method.
func (m td) Name() string { return m.name }

// nested reports whether there is a problem for every class of the structure, and predictions are
// sets of labels.
func (m td) nested() bool { return m.name != Name }

// About implements method.Method.
func (m td) About() string {
	switch m.name {
	case HSVM:
		return "an SVM for each node, on the instances at or below its parent; predictions are sets of paths"
	case HRLS:
		return "a ridge regression for each node, on the instances at or below its parent; predictions are sets of paths"
	}
	return "one-versus-rest among the children of each node; predictions descend from the root"
}

// Traits implements method.Method. Each node has a vector of its own. In td the vector belongs to
// the edge above the node, and the root has none.
func (m td) Traits(*taxonv1.Options) method.Traits {
	if m.nested() {
		return method.Traits{Form: form.Form{Weights: form.Whole, Predictor: form.Nested}}
	}
	return method.Traits{Form: form.Form{Weights: form.Whole, Predictor: form.Descent}, Searched: true}
}

// Options implements method.Method.
func (m td) Options() []method.Option {
	if m.name == HRLS {
		return []method.Option{method.Loss("square"), method.Cost, method.Bias, method.Families, method.GapWanted}
	}
	return options
}

// options of the methods that train SVMs.
var options = []method.Option{method.Loss("hinge", "squared-hinge"), method.Cost, method.Bias, method.Families,
	method.PositiveWeight, method.GapWanted}

// Settings holds the options that the driver and the program use. Ridge regressions have no loss to
// choose, and ignore PositiveWeight.
type Settings struct {
	Loss           string  `option:"loss"`
	C              float64 `option:"C"`
	Bias           float64 `option:"bias"`
	PositiveWeight string  `option:"positive-weight"`
	Gap            float64 `option:"gap"`
	MaxSweeps      uint32  `option:"max-sweeps"`
}

// SettingsOf parses the options of a job.
func SettingsOf(o *taxonv1.Options) (s Settings, err error) {
	err = method.ReadOptions(o, options, &s)
	return s, err
}

// Check implements method.Method.
func (m td) Check(p *method.Problem) error {
	switch {
	case p.Tree.IsGraph():
		return fmt.Errorf("method %s descends from a root, and a graph has none: give ‹hierarchy› a tree, or read it as "+
			"one with ‹dag=first-parent›", m.name)
	case !m.nested() && len(m.newPlan(p.Tree).Node) == 0:
		return fmt.Errorf("method td needs a node with two children: in this structure there is nothing to choose between")
	}
	return nil
}

// Plan implements method.Method.
func (m td) Plan(p *method.Problem) (*method.Plan, error) {
	plan := m.newPlan(p.Tree)
	return &method.Plan{
		Items: []method.Items{Blocks: {Kind: method.Nodes, Count: len(plan.Problem), Cost: costs(p.Tree, p.Spec.GetData(),
			plan), Members: plan.Block}},
		Variables: []method.Variable{
			{Name: Weights, Items: Blocks, Versions: 1},
		},
		Sums:  sumNames,
		Nodes: p.Tree.Len(), Terminals: len(p.Tree.Terminals()), Internals: len(p.Tree.Internals()),
		Detail: method.Encode(plan),
	}, nil
}

// blockChildren is the number of lanes of a solve (mapper.Lanes).
const blockChildren = 16

// newPlan lists the nodes that have a decision to learn, and divides their children into blocks. If
// the root is not stored, it comes first. Nested methods have problems for all classes.
func (m td) newPlan(tree *taxonomy.Tree) *Plan {
	children, least := make([][]uint32, tree.Len()+1), 2
	for n, parent := range tree.Parent {
		if !m.nested() || tree.Kind[n] == taxonomy.Node {
			children[parent+1] = append(children[parent+1], uint32(n))
		}
	}
	p := &Plan{Begin: []uint32{0}}
	if m.nested() {
		p.Nested, p.Ridge, least = true, m.name == HRLS, 1
	}
	for n, family := range children {
		if len(family) < least {
			continue
		}
		name := "-"
		if n > 0 && tree.Kind[n-1] != taxonomy.Virtual {
			name = tree.Name[n-1]
		}
		p.Node, p.Name = append(p.Node, int32(n)-1), append(p.Name, name)
		for block := range slices.Chunk(family, blockChildren) {
			p.Problem = append(p.Problem, uint32(len(p.Node)-1))
			p.Children = append(p.Children, block...)
			p.Begin = append(p.Begin, uint32(len(p.Children)))
		}
	}
	return p
}

// rowsBelow counts the instances at or below each node. An instance with several labels is counted
// once per label.
func rowsBelow(tree *taxonomy.Tree, data *taxonv1.Data) []float64 {
	rows := make([]float64, tree.Len()+1) // the last entry is for the root that is not stored
	for n := tree.Len() - 1; n >= 0; n-- {
		if l := tree.Label[n]; tree.Leaf[n] && l >= 0 {
			rows[n] += float64(data.GetLabelInstances()[l])
		}
		p := tree.Parent[n]
		if p < 0 {
			p = int32(tree.Len())
		}
		rows[p] += rows[n]
	}
	return rows
}

// costs returns the number of nonzeros that one pass over each block visits.
func costs(tree *taxonomy.Tree, data *taxonv1.Data, p *Plan) []float64 {
	rows := rowsBelow(tree, data)
	row := float64(data.GetNonzeros()) / float64(max(data.GetInstances(), 1))
	cost := make([]float64, len(p.Problem))
	for b := range cost {
		node := p.Node[p.Problem[b]]
		if node < 0 {
			node = int32(tree.Len())
		}
		cost[b] = row * rows[node] * float64(len(p.Block(b)))
	}
	return cost
}

// These constants calibrate the estimate, roughly: the bytes of an encoded weight, the time to
// encode and store it, the number of features in which a child has weights, and the number of
// passes of a problem.
const (
	bytesPerWeight = 6
	supportRows    = 64
	passes         = 20
	visitSeconds   = 0.6e-9 // seconds per nonzero and child
	byteSeconds    = 55e-9
)

// Estimate implements method.Method.
func (td) Estimate(p *method.Problem, plan *method.Plan) method.Estimate {
	data, nodes := p.Spec.GetData(), float64(p.Tree.Len())
	d, rows := float64(data.GetFeatures()), float64(max(data.GetInstances(), 1))
	entries := nodes * min(d+1, supportRows*float64(data.GetNonzeros())/rows)
	e := method.Estimate{
		Data: method.DataBytes(data), WorkerShared: method.TreeBytes(p.Tree.Len()),
		// the rows below a node are copied, unless they are all rows, which are shared
		WorkerSlot:  rr.SlotBytes(p.Spec.GetOptions().Value("loss"), data) + method.DataBytes(data),
		Coordinator: method.TreeBytes(p.Tree.Len()) + 64*uint64(nodes),
		StoreSweep:  uint64(bytesPerWeight * entries),
		SlotHolds:   fmt.Sprintf("sixteen children of a node over %d features, and the rows below it", data.GetFeatures()),
		Sweeps:      1,
	}
	e.StoreJob, e.StoreLocal, e.TrafficSweep = 2*e.StoreSweep, 2*e.StoreSweep, 3*e.StoreSweep
	seconds := byteSeconds * float64(e.StoreSweep)
	for _, cost := range plan.Items[Blocks].Cost {
		seconds += visitSeconds * passes * cost
	}
	e.SecondsSweep = []float64{seconds}
	return e
}

// Driver implements method.Method.
func (td) Driver(spec *taxonv1.JobSpec, plan *method.Plan, s method.State) (method.Driver, error) {
	detail, err := Detail(plan.Detail)
	if err != nil {
		return nil, err
	}
	o, err := SettingsOf(spec.GetOptions())
	if err != nil {
		return nil, err
	}
	return newDriver(&o, detail, s)
}
