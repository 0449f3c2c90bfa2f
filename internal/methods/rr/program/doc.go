// Package program runs the tasks of the methods that couple a class with its parent by
// 1/2 ||w - w_parent||^2 (rr-svm, rr-lr, bsvm, blr; on trees, graphs and flat): it reads duals,
// contributions and vectors, lets mapper and reducer compute, and writes what they give.
package program
