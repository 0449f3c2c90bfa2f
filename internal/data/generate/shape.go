// Package generate generates labelled documents with a class hierarchy, of a given shape and of any
// size. It serves tests and scaling studies for which no real data of that size are available.
//
// Three things follow a power law:
//
//   - the classes' sizes: n_r ~ (r+10)^-3/4 for the r-th largest (a density of exponent 7/3);
//   - the words' frequencies: p_r ~ 1/(r+3) (Zipf);
//   - the numbers of children: a density of exponent 7/3, by preferential attachment.
//
// Lengths of documents are log-normal with sigma 0.6. Each class has a topic of 64 words. A node
// takes four in five of its parent's words and draws the rest anew. So relatives share words, and a
// hierarchy helps. A document's further labels are relatives of its first.
//
// Everything is a function of the shape and the seed. Each document has its own random sequence, so
// the bytes depend neither on threads nor on the machine. Memory is a few words per node and
// eight bytes per feature, for any number of documents.
package generate

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Shape describes the data that are generated. Counts refer to the training data, unless they say
// otherwise.
type Shape struct {
	Like      string  `json:"like"`
	Scale     float64 `json:"scale"`
	Instances int     `json:"instances"`

	// Test is the number of test instances.
	Test    int `json:"test"`
	Classes int `json:"classes"`

	// Internals is the number of internal nodes of the hierarchy, including the root. There is no
	// hierarchy if it is 0.
	Internals int `json:"internals"`
	Features  int `json:"features"`

	// Nonzeros is the mean number of nonzeros of an instance.
	Nonzeros float64 `json:"nonzeros"`

	// Labels is the mean number of labels of an instance.
	Labels float64 `json:"labels"`

	// Depth bounds the number of edges from the root to a class. It is unlimited if it is 0.
	Depth int  `json:"depth"`
	DAG   bool `json:"dag"`

	// MoreParent is the mean number of parents that a node has beyond its first, in a DAG.
	MoreParent float64 `json:"more_parents"`
}

// shapes lists the data sets that can be imitated, at scale 1.
//
//   - lwiki: counts from Gopal and Yang, Hierarchical Bayesian inference and recursive
//     regularization for large-scale classification (TKDD 2015), Table 1, with 42 nonzeros an
//     instance. The number of further parents is assumed.
//   - wordnet: nouns of WordNet with their glosses as documents, as the tests use it.
//   - flat: as many rare classes as wordnet has frequent ones, without a hierarchy.
var shapes = []Shape{
	{Like: "lwiki", Instances: 2_365_436, Test: 452_167, Classes: 325_056, Internals: 478_020 - 325_056,
		Features: 1_617_899,
		Nonzeros: 42, Labels: 3.26, MoreParent: 0.8},
	{Like: "wordnet", Instances: 67_043, Test: 15_071, Classes: 17_157, Internals: 6_157, Features: 38_968, Nonzeros: 12,
		Labels: 1.03, MoreParent: 0.03},
	{Like: "flat", Instances: 44_317, Test: 10_113, Classes: 3_383, Features: 28_780, Nonzeros: 12.7, Labels: 1.02},
}

// Names lists the data sets that Like accepts.
func Names() []string {
	var out []string
	for _, s := range shapes {
		out = append(out, s.Like)
	}
	return out
}

// Like returns the shape of a data set, scaled. Instances, classes and internal nodes grow with
// scale, and features with scale^(3/4), as a vocabulary grows with its text (Heaps' law).
func Like(name string, scale float64) (Shape, error) {
	i := slices.IndexFunc(shapes, func(s Shape) bool { return s.Like == name })
	if i < 0 {
		return Shape{}, fmt.Errorf("no data set %q to be like: one of %s", name, strings.Join(Names(), ", "))
	}
	if !(scale > 0 && scale <= 100) {
		return Shape{}, fmt.Errorf("scale %v: above 0 and at most 100", scale)
	}
	s := shapes[i]
	s.Scale = scale
	times := func(n int, f float64) int { return int(math.Round(float64(float64(n) * f))) }
	s.Instances, s.Test = max(1, times(s.Instances, scale)), max(1, times(s.Test, scale))
	s.Classes = max(2, times(s.Classes, scale))
	if s.Internals > 0 {
		s.Internals = max(1, times(s.Internals, scale))
	}
	root := math.Sqrt(scale)
	s.Features = max(100, times(s.Features, root*math.Sqrt(root)))
	return s, nil
}

// Validate returns an error if the shape cannot be generated.
func (s Shape) Validate() error {
	switch {
	case s.Instances < 1 || s.Instances > math.MaxInt32 || s.Test < 0 || s.Test > math.MaxInt32:
		return fmt.Errorf("%d training and %d test instances: 1 to %d, and at least 0", s.Instances, s.Test, math.MaxInt32)
	case s.Classes < 2 || s.Classes > 1<<27:
		return fmt.Errorf("%d classes: 2 to %d", s.Classes, 1<<27)
	case s.Classes > s.Instances:
		return fmt.Errorf("%d classes for %d instances: each class needs one", s.Classes, s.Instances)
	case s.Internals < 0 || s.Internals > s.Classes:
		return fmt.Errorf("%d inner nodes for %d classes: at most as many", s.Internals, s.Classes)
	case s.Features < 10 || s.Features > 1<<27:
		return fmt.Errorf("%d features: 10 to %d", s.Features, 1<<27)
	case !(s.Nonzeros >= 1 && s.Nonzeros <= 10_000):
		return fmt.Errorf("%v nonzeros an instance: 1 to 10000", s.Nonzeros)
	case !(s.Labels >= 1 && s.Labels <= 100):
		return fmt.Errorf("%v labels an instance: 1 to 100", s.Labels)
	case s.Depth < 0:
		return fmt.Errorf("depth %d: at least 1, or 0 for no limit", s.Depth)
	case s.Depth == 1 && s.Internals > 1:
		return fmt.Errorf("depth 1 and %d inner nodes: the root alone has classes one edge away", s.Internals)
	case !(s.MoreParent >= 0 && s.MoreParent <= 10):
		return fmt.Errorf("%v further parents a node: 0 to 10", s.MoreParent)
	}
	return nil
}
