// Package report describes a model in one HTML file that needs no network. It has the model's
// certificate and how the training reached it, its measures on test data with their meanings,
// where in the hierarchy it makes mistakes, explanations of its worst mistakes, and a comparison
// with others. What strangers may read goes into a model card.
package report
