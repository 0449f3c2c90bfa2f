// Package form describes what a model stores and how it predicts, in a few fields of the
// model's manifest. A method names the form of its models (coordinator/method.Traits).
// internal/model knows the forms, and no method.
package form

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Form is what a model's records hold and how they predict. The zero value is a linear model
// whose records are differences from the parent.
type Form struct {
	Weights string `json:"weights,omitempty"` // what a node's record holds: Overrides or Whole
	// how scores rank the classes: Linear, Descent, Greedy, Sums, Nested or Paths
	Predictor string `json:"predictor,omitempty"`
	// what --scores makes of a score: Identity, Logistic or Softmax
	Link string `json:"link,omitempty"`
	// whose precisions a record holds after its vector, which is then a mean: NoPrecision, OfChildren, ByFeature or Own
	Precision string `json:"precision,omitempty"`
	// most draws from a posterior that a record holds after its vector, which is then a mean;
	// predictions average the draws
	Draws int `json:"draws,omitempty"`
}

// Values of the fields. The empty ones are the defaults.
const (
	Overrides = ""      // the weights that differ from the parent's
	Whole     = "whole" // all nonzero weights of the node's own vector

	Linear = "" // a class's score is x.w of its terminal
	// x.w of a node is the margin of the edge above it; the best child is followed from the root
	Descent = "descent"
	Greedy  = "greedy" // the same, but records hold the nodes' whole vectors
	// a node is predicted where its parent is and its own x.w is above 0: sets of partial paths
	Nested = "nested"
	// the set of partial paths with the greatest sum of x.w over its nodes
	Paths = "paths"
	// a class's score is the sum of x.w over the nodes from the root to its terminal
	Sums = "sums"

	NoPrecision = "" // records hold vectors alone
	// internal nodes: one precision for all children and columns
	OfChildren = "children"
	ByFeature  = "feature" // internal nodes: one precision a column, for all children
	// all nodes with a parent: one precision of their own, for all columns
	Own = "own"

	Identity = ""         // the score itself
	Logistic = "logistic" // each class has a probability by itself: 1/(1+exp(-score))
	// a distribution over all classes: exp(score)/sum of exp(scores)
	Softmax = "softmax"
)

// predictors has the predictors there are, and whether each gives sets of labels itself.
var predictors = map[string]bool{Linear: false, Descent: false, Greedy: false, Sums: false, Nested: true, Paths: true}

// Register adds a predictor's name; see Register of package scoring, which calls it.
func Register(name string, sets bool) {
	if _, taken := predictors[name]; taken {
		panic("two predictors named " + name)
	}
	predictors[name] = sets
}

// Check reports values that this program does not know.
func (f Form) Check() error {
	var errs []error
	add := func(what, word string, known ...string) {
		for _, k := range known {
			if word == k {
				return
			}
		}
		errs = append(errs, fmt.Errorf("form: %s %q: not known: it was written by a newer version of taxon", what, word))
	}
	add("weights", f.Weights, Overrides, Whole)
	add("predictor", f.Predictor, slices.Sorted(maps.Keys(predictors))...)
	add("link", f.Link, Identity, Logistic, Softmax)
	add("precision", f.Precision, NoPrecision, OfChildren, ByFeature, Own)
	if f.Precision != NoPrecision && f.Weights != Whole {
		errs = append(errs, fmt.Errorf("form: precision %s needs weights %s: means are vectors of their own", f.Precision,
			Whole))
	}
	if f.Draws < 0 || f.Draws > 0 && (f.Weights != Whole || f.Predictor != Linear || f.Link != Softmax ||
		f.Precision != NoPrecision) {
		errs = append(errs, fmt.Errorf("form: %d draws need weights %s and link %s, and nothing else", f.Draws, Whole,
			Softmax))
	}
	if f.Predictor != Linear && f.Weights != Whole {
		errs = append(errs, fmt.Errorf("form: predictor %s needs weights %s: each edge or node has a vector of its own",
			f.Predictor, Whole))
	}
	return errors.Join(errs...)
}

// Probable reports whether scores are probabilities.
func (f Form) Probable() bool { return f.Link != Identity }

// Sets says whether the predictor gives sets of labels by itself, without a cut-off. Such a set
// may hold labels of internal nodes, where its paths end, and may be empty.
func (f Form) Sets() bool { return predictors[f.Predictor] }

// ByPath says whether a class's score is computed from those of the nodes on its path.
func (f Form) ByPath() bool { return f.Predictor != Linear }

// Above is the node from whose weights the record of node n differs, given n's parent; -1: zero.
func (f Form) Above(parent int32) int32 {
	if f.Weights == Whole {
		return -1
	}
	return parent
}

// A record with precisions has the columns of its mean, of width w, and after them
//
//	w + f       the variance of column f, for leaves only
//	2w + 2f     a precision of column f that belongs to the node, rounded to float32
//	2w + 2f + 1 the remainder of that rounding
//
// A precision for all columns is at f = 0. Columns without an entry do not occur in the training
// data. The variance of an internal node follows from precisions.

// Width is the most columns of a record, if vectors have w.
func (f Form) Width(w int) int {
	if f.Precision != NoPrecision {
		return 4 * w
	}
	return w * (1 + f.Draws)
}

// DrawColumn is the column of column f in draw k, in records with draws. Draws come after the
// mean.
func DrawColumn(w, k, f int) int { return w*(1+k) + f }

// VarianceColumn is the column of the variance of column f.
func VarianceColumn(w, f int) int { return w + f }

// PrecisionColumn is the column of the upper half of column f's precision; the lower half is next
// to it.
func PrecisionColumn(w, f int) int { return 2*w + 2*f }

// SplitFloat64 splits x into two float32 whose sum is x to 49 bits.
func SplitFloat64(x float64) (high, low float32) {
	high = float32(x)
	return high, float32(x - float64(high))
}
