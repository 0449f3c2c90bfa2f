// Package labelset turns the scores of an instance into a set of labels. One-versus-rest
// classifiers rank classes well, but zero is a poor place to cut the ranking: on
// multi-label data most positives of a rare class score below it. Fit learns, from scores
// of held-out instances with known labels, where to cut:
//
//   - instance: a threshold of the instance's own, predicted from its sorted score profile
//     by a regression ([TKDD] 5.2, after Gopal and Yang 2010);
//   - scut: a threshold a class; rcut: a number of labels (both Yang 2001).
//
// Every rule takes its labels from the Depth best classes of an instance, and never gives
// an empty set: the best class stands for one.
//
// The package is pure: no file, clock or global randomness. Equal profiles, added in equal
// order, give equal bits.
package labelset
