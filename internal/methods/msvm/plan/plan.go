package plan

import (
	"fmt"

	"taxon/coordinator/method"
	"taxon/internal/data/taxonomy"
	"taxon/internal/linalg/treeldl"
	"taxon/internal/methods/blockwise"
)

// Plan is the content of method.Plan.Detail. It is the part of the plan that workers cannot derive
// from the specification.
type Plan struct {
	// Node is the node of each problem of hiermult.
	Node []uint32 `json:",omitempty"`

	// Name is the node's name, or "-" for a virtual root.
	Name []string `json:",omitempty"`

	// Alpha is the value in use, for ot.
	Alpha float64 `json:",omitempty"`

	// LambdaMin is the smallest eigenvalue of the comparison matrix at Alpha, for ot.
	LambdaMin float64 `json:",omitempty"`
}

// Detail decodes the detail of a plan made by this package.
func Detail(detail []byte) (*Plan, error) {
	p := &Plan{}
	return p, method.Decode(detail, p)
}

// families lists the nodes with at least two children.
func families(tree *taxonomy.Tree) (out []uint32) {
	children := make([]int, tree.Len())
	for _, p := range tree.Parent {
		if p >= 0 {
			children[p]++
		}
	}
	for n, c := range children {
		if c > 1 {
			out = append(out, uint32(n))
		}
	}
	return out
}

// rowsBelow counts the instances at or below each node.
func rowsBelow(p *method.Problem) []float64 {
	rows := make([]float64, p.Tree.Len())
	for n := len(rows) - 1; n >= 0; n-- {
		if l := p.Tree.Label[n]; p.Tree.Leaf[n] && l >= 0 {
			rows[n] += float64(p.Spec.GetData().GetLabelInstances()[l])
		}
		if a := p.Tree.Parent[n]; a >= 0 {
			rows[a] += rows[n]
		}
	}
	return rows
}

// Plan implements method.Method.
func (m Method) Plan(p *method.Problem) (*method.Plan, error) {
	d, classes := p.Spec.GetData(), len(p.Tree.Terminals())
	if classes == 0 || d.GetInstances() == 0 {
		return nil, fmt.Errorf("%d instances of %d classes: there is nothing to train", d.GetInstances(), classes)
	}
	items := method.Items{Kind: method.Whole, Count: 1, Cost: []float64{float64(d.GetNonzeros()) * float64(classes)}}
	plan := &method.Plan{
		Variables: []method.Variable{{Name: Dual, Items: blockwise.Problems, Versions: 1}},
		Sums:      sumNames,
		Nodes:     p.Tree.Len(), Terminals: classes, Internals: len(p.Tree.Internals()),
	}
	switch m {
	case PerNode:
		detail, rows := &Plan{}, rowsBelow(p)
		items = method.Items{Kind: method.Nodes}
		for _, n := range families(p.Tree) {
			if rows[n] == 0 {
				continue
			}
			name := p.Tree.Name[n]
			if p.Tree.Kind[n] == taxonomy.Virtual {
				name = "-"
			}
			detail.Node, detail.Name = append(detail.Node, n), append(detail.Name, name)
			items.Cost = append(items.Cost, rows[n]/float64(d.GetInstances())*float64(d.GetNonzeros()))
		}
		if len(detail.Node) == 0 {
			return nil, fmt.Errorf("no node with two children has an instance below it: there is nothing to train")
		}
		items.Count = len(detail.Node)
		items.Members = func(k int) []uint32 { return detail.Node[k : k+1] }
		plan.Detail = method.Encode(detail)
	case Orthogonal:
		var o struct {
			Alpha float64 `option:"alpha"`
		}
		if err := method.ReadOptions(p.Spec.GetOptions(), m.Options(), &o); err != nil {
			return nil, err
		}
		detail := &Plan{}
		detail.Alpha, detail.LambdaMin = convex(p.Tree, o.Alpha)
		plan.Detail = method.Encode(detail)
	}
	plan.Items = []method.Items{blockwise.Problems: items}
	return plan, nil
}

// leastEigenvalue is the least eigenvalue that the comparison matrix must have.
const leastEigenvalue = 1e-6

// convex halves alpha until the comparison matrix of K ([OT] eq. 6; K_nn on the diagonal, -alpha
// between nodes and their ancestors) is positive definite, so that the problem is strongly convex
// (Corollary 2). It returns the resulting alpha and the matrix's smallest eigenvalue.
func convex(tree *taxonomy.Tree, alpha float64) (used, least float64) {
	k := treeldl.NewShape(tree.Parent).New()
	for n, end := range tree.SubtreeEnd() {
		k.Diagonal[n] = float64(end - int32(n))
	}
	for ; ; alpha /= 2 {
		for e := range k.Entry {
			k.Entry[e] = -alpha
		}
		if least = k.Least(); least > leastEigenvalue {
			return alpha, least
		}
	}
}

// These constants calibrate the estimate. An instance has a working set of classes. Each of them
// takes a dual, a class, and a share of the instance's figures.
const (
	workingClasses = 16

	// narrow is the largest number of classes for which internal/methods/msvm/solver keeps a second
	// copy of the vectors.
	narrow       = 128
	bytesPerDual = 12
	// rowBytes is the number of bytes per row that a full pass and the order of the rows take.
	rowBytes     = 160
	visitSeconds = 2.5e-9
	priceSeconds = 0.3e-9
	epochs       = 20
	sweeps       = 8
)

// Estimate implements method.Method.
func (m Method) Estimate(p *method.Problem, plan *method.Plan) method.Estimate {
	data, classes := p.Spec.GetData(), uint64(plan.Terminals)
	rows, working, holds := data.GetInstances(), min(classes, workingClasses), fmt.Sprintf("weights of %d classes",
		plan.Terminals)
	touched := float64(working) / 4 // classes that a visit of an instance reads or changes
	extra := uint64(0)
	switch m {
	case PerNode: // of the largest family; the rows below a node are copied
		children := make([]uint64, plan.Nodes)
		classes = 0
		for _, a := range p.Tree.Parent {
			if a >= 0 {
				children[a]++
				classes = max(classes, children[a])
			}
		}
		holds, extra = fmt.Sprintf("weights of the %d children of a node", classes), method.DataBytes(data)+12*rows
	case Paths, Recursive, Transfer, Orthogonal:
		paths := m == Paths || m == Recursive
		classes = uint64(plan.Nodes)
		holds = fmt.Sprintf("weights of %d nodes", classes)
		depth := 0.0
		end := p.Tree.SubtreeEnd()
		largest := 0.0
		for n, d := range p.Tree.Depth {
			depth = max(depth, float64(d))
			if p.Tree.Depth[n] == 1 {
				size := float64(end[n] - int32(n))
				largest = max(largest, size)
				if !paths {
					extra += uint64(8 * size * size)
				}
			}
		}
		if touched *= depth; !paths {
			touched += largest
		}
		if m == Orthogonal {
			extra *= 4
		}
		extra += rows * 8 * uint64(depth)
	}
	duals := rows * working * bytesPerDual
	vectors := 8 * classes * (data.GetFeatures() + 1)
	if classes <= narrow {
		vectors *= 2
	}
	tile := (4*16 + 4) * (data.GetFeatures() + 1)
	e := method.Estimate{
		Data: method.DataBytes(data), WorkerShared: method.TreeBytes(plan.Nodes) + 12*rows,
		WorkerSlot:  vectors + tile + rows*(rowBytes+8*working) + 3*duals + extra,
		Coordinator: method.TreeBytes(plan.Nodes),
		StoreSweep:  duals + 1, StoreJob: 2*duals + 1, TrafficSweep: 2*duals + 1,
		Dense:     true,
		SlotHolds: fmt.Sprintf("%s over %d features, in float64", holds, data.GetFeatures()),
		Sweeps:    sweeps,
	}
	e.StoreLocal = e.StoreJob
	visits := float64(data.GetNonzeros() + rows)
	e.SecondsSweep = []float64{priceSeconds*visits*float64(classes) + epochs*visitSeconds*visits*touched}
	return e
}
