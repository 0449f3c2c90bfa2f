package jobspec

import (
	"fmt"
	"math"
	"strconv"

	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// Balanced is the value of Options.positive_weight that weighs every class's positives
// by how rare they are.
const Balanced = "balanced"

// balancedCap bounds the weight that Balanced gives: a class with one instance among
// 10^5 would else have a box that no solver fills.
const balancedCap = 100

// ParsePositiveWeight reads Options.positive_weight: 0 stands for Balanced.
func ParsePositiveWeight(s string) (float64, error) {
	switch s {
	case "":
		return 1, nil
	case Balanced:
		return 0, nil
	}
	w, err := strconv.ParseFloat(s, 64)
	if err != nil || !(w > 0) || math.IsInf(w, 0) {
		return 0, fmt.Errorf("positive-weight %s: give a number above 0, or balanced", strconv.Quote(s))
	}
	return w, nil
}

// PositiveWeight is the factor of C for a class's positives, given how many of the
// instances they are, each counted by its weight. The option must be what it is declared to be.
func PositiveWeight(o *taxonv1.Options, positives, instances float64) float64 {
	w, _ := ParsePositiveWeight(o.GetPositiveWeight())
	if w > 0 {
		return w
	}
	if positives <= 0 || 2*positives >= instances {
		return 1 // balanced never takes weight from the positives
	}
	return min((instances-positives)/positives, balancedCap)
}

// InternalWeight is the weight of an edge between two internal nodes.
func InternalWeight(o *taxonv1.Options) float64 {
	if b := o.GetInternalWeight(); b > 0 {
		return b
	}
	return 1
}

// Uncertified says whether a job's objective has no certificate: a graph whose
// components may shift freely, as no anchor holds them.
func Uncertified(spec *taxonv1.JobSpec) bool {
	return spec.GetStructure().GetGraph() && spec.GetOptions().GetAnchor() == 0
}

// Pull is S_n + lambda0 of terminal n: the sum of its edges' weights (each 1) and the
// anchor. The zero vector is the one neighbour of a terminal without edges.
func Pull(tree *taxonomy.Tree, n uint32, anchor float64) float64 {
	if !tree.IsGraph() || len(tree.Adjacent.Of(int32(n))) == 0 {
		return 1
	}
	return float64(len(tree.Adjacent.Of(int32(n)))) + anchor
}
