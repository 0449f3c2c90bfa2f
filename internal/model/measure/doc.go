// Package measure measures predictions: flat measures (micro and macro F1, zero-one loss), ranked
// ones (precision at k, nDCG) and, with a class structure, hierarchical ones; tables by level and
// by class size; two significance tests. It is pure: rows go into an Accumulator one by one,
// Result gives the figures, and equal rows in equal order give equal bits.
//
// Definitions:
//
//   - Macro-F1 averages over the class set: the labels of the training data if they are known
//     (Options.Classes), else the true labels of the rows. 0/0 counts as 0. For the micro
//     measures a true label outside the class set is a false negative, a predicted one a false
//     positive. Neither enters the macro average.
//   - A row is a set of true labels, a set of predicted ones and perhaps a ranking. Repeats
//     within one are dropped (the first of a ranking stays). Rows without labels count.
//   - P@k divides by k, whatever the number of labels. nDCG@5 divides by the gain of the best
//     ranking of the true labels. Both are 0 for a row without labels.
//   - Hierarchical measures use ancestor closures: a label's node and all nodes above it (in a
//     DAG over all parents) are its microlabels. They ignore labels outside the structure. There
//     is no virtual microlabel above several roots.
//   - sym_diff is the mean size of the symmetric difference of the two closures.
//   - l_H [JMLR 2.1] sums c_j over the microlabels that differ and whose ancestors all agree,
//     l_H~ over those whose parents agree. As closures hold the ancestors of their members, both
//     are equal here. Both are reported because the papers' tables have both.
//     Weights: unif 1; sibl c_root = 1/#roots, c_j = c_parent/#siblings; subtree |T(j)|/|V|.
//     In a DAG the weights are those of the first-parent tree.
//   - tree_loss [OT 6] is half the tree distance. For sets of labels, and for labels outside the
//     structure, it is half the number of nodes on the root paths of exactly one side; for two
//     single labels that is the same. In a DAG: in the first-parent tree.
//   - hier_precision, hier_recall and hier_f1 are over the totals of microlabels of all rows. A
//     single root, which all rows share, is left out of them (but not of the others).
//   - by_level counts levels from 1, the roots, as [TKDD Table VIII] does; [JMLR Table 3] counts
//     from 0. macro_f1 averages over the microlabels of the level that are at or above a class
//     of the class set (classes is their number); precision, recall and f1 are over totals.
//   - by_size has the bins of [TKDD Table IX], by number of training instances.
//   - The sign test is over (instance, class) decisions. Wilcoxon's signed-rank test is over the
//     F1 of the classes in the class set, with zero differences dropped. Both are two-sided.
package measure
