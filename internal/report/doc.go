// Package report writes what there is to say of a model as one HTML file that needs no network: its
// certificate and how it got there, its measures on test data with what each means, where in the
// hierarchy it is mistaken, its worst mistakes taken apart, and how it compares with others. What of
// it is for strangers it writes as a model card.
package report
