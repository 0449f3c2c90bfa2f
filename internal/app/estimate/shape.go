package estimate

import (
	"math"
	"strconv"

	"taxon/coordinator/method/registry"
	"taxon/internal/data/generate"
	taxonv1 "taxon/proto/taxon/v1"
)

// Spec describes a training on generated data without generating them. The class sizes and the tree
// are as generate.Write would make them. All other numbers are means of the shape.
func Spec(s generate.Shape, seed uint64) *taxonv1.JobSpec {
	d := &taxonv1.Data{Instances: uint64(s.Instances), Features: uint64(s.Features),
		Nonzeros: uint64(float64(s.Instances) * s.Nonzeros)}
	if s.Labels > 1 {
		d.SeveralLabels = max(1, uint64(float64(s.Instances)*min(s.Labels-1, 1)))
	}
	for c, n := range generate.Sizes(s, seed) {
		d.Labels = append(d.Labels, "c"+strconv.Itoa(c))
		d.LabelInstances = append(d.LabelInstances, uint32(float64(n)*s.Labels+0.5))
	}
	d.FeatureCountsLog = wordCounts(s)
	spec := &taxonv1.JobSpec{Options: defaults(registry.Names()[0]), Data: d}
	if s.Internals == 0 {
		return spec
	}
	s.DAG = false // the tree that would be trained
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

// countCells is the resolution of the word frequencies.
const countCells = 4096

// wordCounts returns the cumulative nonzeros of the words, most frequent first, in the form of
// Data.feature_counts_log. Words are drawn with probability 1/(rank+4), and a row has each at most
// once.
func wordCounts(s generate.Shape) []uint32 {
	norm := 0.0
	for f := range s.Features {
		norm += 1 / float64(f+4)
	}
	cells := min(countCells, max(s.Features, 1))
	width := max((s.Features+cells-1)/cells, 1)
	var out []uint32
	sum := 0.0
	for f := 0; f < s.Features; f++ {
		sum -= float64(s.Instances) * math.Expm1(-s.Nonzeros/(float64(f+4)*norm))
		if f%width == width-1 || f == s.Features-1 {
			out = append(out, uint32(min(sum, math.MaxUint32)))
		}
	}
	for len(out) < cells {
		out = append(out, out[len(out)-1])
	}
	return out
}

// defaults returns the options that an estimate for a method assumes.
func defaults(method string) *taxonv1.Options {
	o := &taxonv1.Options{Method: method}
	_ = registry.Fill(o, nil) // planning refuses an unknown method
	return o
}
