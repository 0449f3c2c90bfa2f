// Package program runs the tasks of the methods that couple a class with its parent by 1/2 ||w -
// w_parent||^2 (rr-svm, rr-lr, bsvm, blr; on trees, graphs and flat). It reads duals, contributions
// and vectors, calls mapper and reducer, and writes their results.
package program
