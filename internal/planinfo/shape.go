package planinfo

import (
	"strconv"

	"taxon/internal/generate"
	taxonv1 "taxon/proto/taxon/v1"
)

// Spec describes the training of generated data without making them: the class sizes and
// the tree are those that Write would use, the rest are the shape's means.
func Spec(s generate.Shape, seed uint64) *taxonv1.JobSpec {
	d := &taxonv1.Data{Instances: uint64(s.Instances), Features: uint64(s.Features), Nonzeros: uint64(float64(s.Instances) * s.Nonzeros)}
	for c, n := range generate.Sizes(s, seed) {
		d.Labels = append(d.Labels, "c"+strconv.Itoa(c))
		d.LabelInstances = append(d.LabelInstances, uint32(float64(n)*s.Labels+0.5))
	}
	spec := &taxonv1.JobSpec{Options: Defaults(), Data: d}
	if s.Internals == 0 {
		return spec
	}
	s.DAG = false // what is trained is a tree
	tree := generate.NewTree(s, seed)
	st := &taxonv1.Structure{}
	for n := range tree.Internals {
		st.Names = append(st.Names, "n"+strconv.Itoa(n))
	}
	st.Names = append(st.Names, d.Labels...)
	for n := 1; n < len(tree.Parent); n++ {
		st.Parents = append(st.Parents, uint32(tree.Parent[n]))
		st.Children = append(st.Children, uint32(n))
	}
	spec.Structure = st
	return spec
}

// Defaults are the options that an estimate assumes.
func Defaults() *taxonv1.Options {
	return &taxonv1.Options{Method: "rr-svm", Loss: "hinge", Schedule: "twoblock", C: 1, Bias: 1, Gap: 1e-2, Prune: "empty",
		Stiffness: "support", Momentum: "fista", InnerEpochs: 3}
}
