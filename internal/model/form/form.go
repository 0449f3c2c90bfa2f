// Package form describes how a model's weights are stored and how the model predicts, in a few
// fields of its manifest. A method names the form of its models (coordinator/method.Traits).
// Package model knows the forms and no method.
package form

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Form describes a model's records and its prediction. The zero value is a linear model whose
// records are differences from the parent.
type Form struct {
	// Weights is the content of a node's record: Overrides or Whole.
	Weights string `json:"weights,omitempty"`
	// Predictor is the way in which scores rank the classes: Linear, Descent, Greedy, Sums, Nested
	// or Paths.
	Predictor string `json:"predictor,omitempty"`
	// Link converts a score into the number shown with option scores: Identity, Logistic or
	// Softmax.
	Link string `json:"link,omitempty"`
	// Precision says which precisions a record holds after its vector, which is then a mean:
	// NoPrecision, OfChildren, ByFeature or Own.
	Precision string `json:"precision,omitempty"`
	// Draws is the largest number of draws from a posterior that a record holds after its vector,
	// which is then a mean. Predictions average the draws. Zero means none.
	Draws int `json:"draws,omitempty"`
}

// These are the values of the fields. Empty strings are the defaults.
const (
	// Overrides records hold the weights that differ from the parent's.
	Overrides = ""
	// Whole records hold all nonzero weights of the node's own vector.
	Whole = "whole"

	// Linear scores a class by x.w of its terminal.
	Linear = ""
	// Descent takes x.w of a node as the margin of the edge above it, and follows the best child
	// from the root.
	Descent = "descent"
	// Greedy predicts as Descent does, from records that hold the nodes' whole vectors.
	Greedy = "greedy"
	// Nested predicts a node if its parent is predicted and its own x.w is above 0. The result is a
	// set of partial paths.
	Nested = "nested"
	// Paths predicts the set of partial paths with the greatest sum of x.w over its nodes.
	Paths = "paths"
	// Sums scores a class by the sum of x.w over the nodes from the root to its terminal.
	Sums = "sums"

	// NoPrecision records hold vectors alone.
	NoPrecision = ""
	// OfChildren records of internal nodes hold one precision for all children and columns.
	OfChildren = "children"
	// ByFeature records of internal nodes hold one precision per column, for all children.
	ByFeature = "feature"
	// Own records of nodes with a parent hold one precision for all columns, which is the node's
	// own.
	Own = "own"

	// Identity shows the score itself.
	Identity = ""
	// Logistic shows a probability for each class by itself: 1/(1+exp(-score)).
	Logistic = "logistic"
	// Softmax shows a distribution over all classes: exp(score)/sum of exp(scores).
	Softmax = "softmax"
)

// predictors maps the name of each predictor to whether it predicts sets of labels by itself.
var predictors = map[string]bool{Linear: false, Descent: false, Greedy: false, Sums: false, Nested: true, Paths: true}

// Register adds a predictor's name. It is called by Register of package scoring.
func Register(name string, sets bool) {
	if _, taken := predictors[name]; taken {
		panic("two predictors named " + name)
	}
	predictors[name] = sets
}

// Check returns an error for values that this program does not know.
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

// Sets reports whether the predictor gives sets of labels by itself, without a cut-off. Such a set
// may contain labels of internal nodes, where its paths end, and may be empty.
func (f Form) Sets() bool { return predictors[f.Predictor] }

// ByPath reports whether a class's score is computed from the scores of the nodes on its path.
func (f Form) ByPath() bool { return f.Predictor != Linear }

// Above returns the node from whose weights the record of a node with this parent differs. It is -1
// for zero.
func (f Form) Above(parent int32) int32 {
	if f.Weights == Whole {
		return -1
	}
	return parent
}

// A record with precisions holds the columns of its mean, of width w, and after them
//
//	w + f       the variance of column f, for leaves only
//	2w + 2f     a precision of column f that belongs to the node, rounded to float32
//	2w + 2f + 1 the remainder of that rounding
//
// A precision for all columns is at f = 0. Columns without an entry do not occur in the training
// data. The variance of an internal node follows from precisions.

// Width returns the largest number of columns of a record, for vectors of width w.
func (f Form) Width(w int) int {
	if f.Precision != NoPrecision {
		return 4 * w
	}
	return w * (1 + f.Draws)
}

// DrawColumn returns the column of column f in draw k, in records with draws. Draws follow the
// mean.
func DrawColumn(w, k, f int) int { return w*(1+k) + f }

// VarianceColumn returns the column of the variance of column f.
func VarianceColumn(w, f int) int { return w + f }

// PrecisionColumn returns the column of the upper half of column f's precision. The lower half is
// next to it.
func PrecisionColumn(w, f int) int { return 2*w + 2*f }

// SplitFloat64 splits x into two float32 whose sum is x to 49 bits.
func SplitFloat64(x float64) (high, low float32) {
	high = float32(x)
	return high, float32(x - float64(high))
}
