// Package jobspec derives from a job's specification the tree that it trains and the independent
// sets of the tree's nodes. It is pure: coordinator, workers and clients derive the same from
// the same specification.
package jobspec

import (
	"fmt"
	"strings"

	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// Tree builds the tree, or the graph, that a job trains. Coordinator and workers call it on the same
// specification and so agree on node numbers. The warnings are for the user.
func Tree(spec *taxonv1.JobSpec) (*taxonomy.Tree, []string, error) {
	prune, err := taxonomy.ParsePrune(spec.GetOptions().GetPrune())
	if err != nil {
		return nil, nil, err
	}
	data := spec.GetData()
	if len(data.GetLabels()) != len(data.GetLabelInstances()) {
		return nil, nil, fmt.Errorf("%d labels with %d instance counts: the data set's description is broken, ingest it again",
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
	if structure == nil && rooted(spec.GetOptions()) {
		tree, _, err := taxonomy.Build(&taxonomy.Structure{}, data.GetLabels(), counts, prune)
		return tree, nil, err
	}
	if spec.GetStructure().GetGraph() {
		return taxonomy.BuildGraph(structure, data.GetLabels(), counts)
	}
	return taxonomy.Build(structure, data.GetLabels(), counts, prune)
}

// rooted says that without a structure the classes hang below a root all the same: it has a
// vector of its own (the papers' "flat" columns of hierarchical Bayesian logistic regression).
func rooted(o *taxonv1.Options) bool { return strings.HasPrefix(o.GetMethod(), "hblr-") }
