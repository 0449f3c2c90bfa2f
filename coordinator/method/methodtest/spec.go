// Package methodtest has made-up jobs for the tests of methods and of the coordinator.
package methodtest

import (
	"fmt"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// WordNetLike returns a job like the data set wordnet-freq, which has 28,780 features of Zipf
// frequencies and 3,383 classes under 1,768 inner nodes.
func WordNetLike(terminals, internals int) *taxonv1.JobSpec {
	const features, nonzeros, buckets = 28_780, 562_000, 1024
	st, d := &taxonv1.Structure{}, &taxonv1.Data{Instances: 44_317, Features: features, Nonzeros: nonzeros}
	for n := range terminals + internals {
		st.Names = append(st.Names, fmt.Sprintf("n%d", n))
		if n > 0 {
			parent := (n - 1) / 3
			if n >= internals {
				parent = (n - internals) * internals / terminals
			}
			st.Parents, st.Children = append(st.Parents, uint32(parent)), append(st.Children, uint32(n))
		}
		if n >= internals {
			d.Labels, d.LabelInstances = append(d.Labels, st.Names[n]), append(d.LabelInstances, 13)
		}
	}
	count := make([]float64, features)
	total := 0.0
	for f := range count {
		count[f] = 1 / float64(f+3)
		total += count[f]
	}
	width, sum := (features+buckets-1)/buckets, 0.0
	for f := range count {
		sum += count[f] / total * nonzeros
		if (f+1)%width == 0 || f == features-1 {
			d.FeatureCountsLog = append(d.FeatureCountsLog, uint32(sum))
		}
	}
	return &taxonv1.JobSpec{Data: d, Structure: st, Options: Options("rr-svm", "loss", "hinge", "c", 1,
		"gap", 0.01, "bias", 1, "schedule", "twoblock")}
}

// Of returns a job like WordNetLike for a method, with the method's default options. It has a
// structure unless the method trains without one.
func Of(m method.Method) *taxonv1.JobSpec {
	spec := WordNetLike(200, 50)
	spec.Options = Options(m.Name())
	if m.Traits(spec.Options).Unstructured {
		spec.Structure = nil
	}
	return spec
}

// Kind is a kind of data or structure that a method may refuse.
type Kind struct {
	Name string
	// Change makes a job that Of has returned one of the kind.
	Change func(*taxonv1.JobSpec)
}

// Kinds lists all kinds.
var Kinds = []Kind{
	{"no hierarchy", func(s *taxonv1.JobSpec) { s.Structure = nil }},
	{"a graph", func(s *taxonv1.JobSpec) {
		s.Structure = WordNetLike(200, 50).Structure
		s.Structure.Graph = true
	}},
	{"several labels a row", func(s *taxonv1.JobSpec) { s.Data.SeveralLabels = 5 }},
	{"rows without labels", func(s *taxonv1.JobSpec) { s.Data.NoLabel = 5 }},
}
