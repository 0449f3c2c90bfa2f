// Package eval measures predictions: flat measures (micro and macro F1, zero-one loss),
// ranked ones (precision at k, nDCG) and, given a class structure, hierarchical ones,
// with the tables by level and by class size and two significance tests. It is pure:
// rows go into an Accumulator one by one, the figures come out of Result, and equal rows
// in equal order give equal bits.
//
// Conventions, binding for every figure:
//
//   - Macro-F1 averages over the class set: the labels of the training data if they are
//     known (Options.Classes), else the labels of the rows' truth. 0/0 counts as 0. A true
//     label outside the class set is a false negative for the micro measures, a predicted
//     one a false positive; neither enters the macro average.
//   - A row is a set of true labels, a set of predicted ones and perhaps a ranking; repeats
//     within one are dropped (the first of a ranking stays). Rows without labels count.
//   - P@k divides by k whatever the number of labels; nDCG@5 divides by the gain of the best
//     ranking of the true labels; both are 0 for a row without labels.
//   - Hierarchical measures work on ancestor closures: a label's node and all nodes above it
//     (in a DAG over all parents) are its microlabels. Labels outside the structure are
//     dropped from them; there is no virtual microlabel above several roots.
//   - sym_diff is the mean size of the symmetric difference of the two closures.
//   - l_H [JMLR 2.1] sums c_j over the microlabels that differ and whose ancestors all agree,
//     l_H~ over those whose parents agree. As closures hold the ancestors of their members,
//     the two are equal here; both are reported since the papers' tables have both.
//     Weights: unif 1; sibl c_root = 1/#roots, c_j = c_parent/#siblings; subtree |T(j)|/|V|.
//     In a DAG the weights are those of the first-parent tree.
//   - tree_loss [OT 6] is half the tree distance. For sets of labels, and for labels outside
//     the structure, it is half the number of nodes on the root paths of exactly one side,
//     which is the same for two single labels. In a DAG: in the first-parent tree.
//   - hier_precision, hier_recall and hier_f1 are over the totals of microlabels of all rows;
//     a single root, which every row would share, is left out of them (but not of the others).
//   - by_level counts levels from 1, the roots, as [TKDD Table VIII]; [JMLR Table 3] counts
//     from 0. macro_f1 averages over the microlabels of the level that are at or above a class
//     of the class set (their number is classes); precision, recall and f1 are over totals.
//   - by_size has the bins of [TKDD Table IX] by number of training instances.
//   - The sign test is over (instance, class) decisions; Wilcoxon's signed-rank test over
//     the F1 of the classes in the class set, zero differences dropped; both two-sided.
package eval
