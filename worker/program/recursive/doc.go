// Package recursive runs the tasks of the methods that pull a class to its parent by 1/2 ||w -
// w_parent||^2: rr-svm, rr-lr, bsvm and blr, on trees, on graphs and without a structure. A task
// reads duals, contributions and vectors, has mapper or reducer compute, and writes the result.
package recursive
