// Package report describes a model in one HTML file that needs no network: the model's certificate
// and the course of its training, its measures on test data with explanations, the places in the
// hierarchy where it makes mistakes, explanations of its worst mistakes, and a comparison with
// other models. The part that is fit for publication becomes a model card.
package report
