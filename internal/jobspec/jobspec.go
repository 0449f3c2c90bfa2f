// Package jobspec derives from a job's specification the tree that is trained, and the weights of
// its losses and edges. It is pure, so that coordinator, workers and clients derive the same.
package jobspec

import (
	"fmt"
	"strconv"

	"taxon/internal/data/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// Tree returns the tree, or the graph, that a job trains. Coordinator and workers call it with the
// same specification, and so agree on node numbers. rooted is a property of the job's method
// (method.Traits). The warnings are for the user.
func Tree(spec *taxonv1.JobSpec, rooted bool) (*taxonomy.Tree, []string, error) {
	prune, err := taxonomy.ParsePrune(spec.GetOptions().Value("prune"))
	if err != nil {
		return nil, nil, err
	}
	data := spec.GetData()
	if len(data.GetLabels()) != len(data.GetLabelInstances()) {
		return nil, nil, fmt.Errorf("%d labels with %d instance counts: the data set's description is "+
			"broken, ingest it again",
			len(data.GetLabels()), len(data.GetLabelInstances()))
	}
	counts := make([]int, len(data.GetLabelInstances()))
	for l, n := range data.GetLabelInstances() {
		counts[l] = int(n)
	}
	var structure *taxonomy.Structure
	if s := spec.GetStructure(); s != nil {
		structure = &taxonomy.Structure{Names: s.GetNames(), Parents: s.GetParents(), Children: s.GetChildren()}
	}
	if structure == nil && rooted {
		tree, _, err := taxonomy.Build(&taxonomy.Structure{}, data.GetLabels(), counts, prune)
		return tree, nil, err
	}
	if spec.GetStructure().GetGraph() {
		return taxonomy.BuildGraph(structure, data.GetLabels(), counts)
	}
	return taxonomy.Build(structure, data.GetLabels(), counts, prune)
}

// Balanced is the value of the option positive-weight that weights a class's positives inversely to
// their frequency.
const Balanced = "balanced"

// balancedCap bounds the weight under Balanced. Without it the dual variables of a class with one
// instance among 10^5 would have an upper bound that no solver reaches.
const balancedCap = 100

// PositiveWeight returns the factor of C for a class's positives. option is the value of
// positive-weight, which must be valid. positives and instances are total weights of instances.
func PositiveWeight(option string, positives, instances float64) float64 {
	if option != Balanced {
		w, _ := strconv.ParseFloat(option, 64) // it has been parsed
		return w
	}
	if positives <= 0 || 2*positives >= instances {
		return 1 // balanced never weights positives below negatives
	}
	return min((instances-positives)/positives, balancedCap)
}

// These are the values of the option edge-weights, which selects how the weights of edges between
// internal nodes are determined.
const (
	EdgesEven  = "even"
	EdgesDepth = "depth"
	EdgesSize  = "size"
)

// EdgeWeights returns the weights of the edges above a tree's internal nodes, by the values of the
// options edge-weights and internal-weight. If it is nil, the weight is internal between two internal
// nodes, and 1 above a root.
func EdgeWeights(tree *taxonomy.Tree, by string, internal float64) []float64 {
	if tree.IsGraph() || by == EdgesEven {
		return nil
	}
	out, end := make([]float64, tree.Len()), tree.SubtreeEnd()
	leaves := make([]int, tree.Len()+1) // leaves before each node
	for n, leaf := range tree.Leaf {
		leaves[n+1] = leaves[n]
		if leaf {
			leaves[n+1]++
		}
	}
	for n, p := range tree.Parent {
		switch {
		case p < 0:
			out[n] = 1
		case by == EdgesDepth:
			out[n] = float64(internal * float64(tree.Depth[n]))
		default:
			out[n] = float64(internal * float64(leaves[end[n]]-leaves[n]))
		}
	}
	return out
}

// CostByDegree is a value of the option cost-by.
const CostByDegree = "degree"

// TerminalCost returns C/S', the weight of a terminal's losses relative to its attraction to its
// neighbours' mean. by is the value of the option cost-by. pull is S', the sum of the weights of its
// edges and the anchor; see Pull.
func TerminalCost(by string, c, pull float64) float64 {
	if by == CostByDegree {
		return c
	}
	return c / pull
}

// BiasZero is the value of the option bias-pull with which biases are regularised towards zero instead
// of towards the parents' biases.
const BiasZero = "zero"

// Pull returns S' = S_n + lambda0 of terminal n: the sum of the weights of its edges (1 each) and
// the anchor. A terminal without edges has the zero vector as its only neighbour.
func Pull(tree *taxonomy.Tree, n uint32, anchor float64) float64 {
	if !tree.IsGraph() || len(tree.Adjacent.Of(int32(n))) == 0 {
		return 1
	}
	return float64(len(tree.Adjacent.Of(int32(n)))) + anchor
}

// Learnable returns an error if a training on the data could not distinguish any two instances,
// because each has every class. One class is sufficient if instances without it serve as negatives.
// unlabelled reports whether the job uses instances without a label. Data without any label are
// left to Tree, which refuses them.
func Learnable(d *taxonv1.Data, unlabelled func() bool) error {
	classes, one := 0, ""
	for l, n := range d.GetLabelInstances() {
		if n == 0 {
			continue
		}
		if uint64(n) < d.GetInstances() {
			return nil
		}
		classes, one = classes+1, d.GetLabels()[l]
	}
	switch classes {
	case 0:
		return nil
	case 1:
		add := "instances of other classes"
		if unlabelled() {
			add += ", or some without a label"
		}
		return fmt.Errorf("every instance has the one label %s: there is nothing to tell apart; add %s", strconv.Quote(one),
			add)
	}
	return fmt.Errorf("every instance has all %d labels: there is nothing to tell apart; add instances "+
		"that lack some of them", classes)
}
