// Package labelset converts the scores of an instance into a set of labels. One-versus-rest
// classifiers rank classes well, but zero is a poor threshold: on multi-label data most positives
// of a rare class score below it. Fit finds better cut-offs from scores of held-out instances with
// known labels:
//
//   - instance: a threshold for each instance, which a regression predicts from its sorted
//     scores ([TKDD] 5.2, after Gopal and Yang 2010);
//   - scut: a threshold for each class (Yang 2001), shrunk along the hierarchy;
//   - rcut: the same number of labels for every instance (Yang 2001).
//
// They maximise a goal: micro-F1, macro-F1 or the mean of both. Every rule chooses among the Depth
// best classes of an instance. No rule gives an empty set: if no class passes, the best one is the
// label.
//
// The package is pure: it uses no file, clock or global randomness. Equal profiles, added in equal
// order, give equal bits.
package labelset
