// Package scoring scores instances with a model: x.w at every class, what the model's predictor and link
// make of that, and what each level of a path adds to it. It is maths; package predict does the verb's work.
//
// A Predictor is safe for concurrent use. A Scorer, a Batch and a Result belong to one goroutine at a time.
package scoring
