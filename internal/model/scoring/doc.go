// Package scoring scores instances with a model: x.w at every class, the ranking and probabilities
// that the model's predictor and link derive from it, and the contribution of each level of a path.
// It only computes; the verb predict is in package predict.
//
// A Predictor is safe for concurrent use. A Scorer, a Batch and a Result belong to one goroutine at
// a time.
package scoring
