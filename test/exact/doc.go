// Package exact is an independent reference for the joint training problem on tiny trees. It shares
// no code with the trainer: it has its own construction of the trained tree (spawn, prune, virtual
// root), its own objective and dual value in float64 over dense matrices, and its own solver, an
// interior point method on the primal, whose result is a bracket [Dual, Primal] around the optimum
// that proves itself.
//
// The problem, over nodes n of the trained tree with w_parent(root) := 0:
//
//	min_W  P(W) = sum_n 1/2 ||w_n - w_parent(n)||^2 + C sum_{terminals n} sum_i loss(y_in w_n.x_i)
//	loss(z) = max(0, 1-z), or its square
//
// Everything is kept simple on purpose: rows are dense, the Laplacian is inverted as a dense
// matrix, and no sum is reordered for speed. The package's tests train with the taxon command and
// compare its reports and exported weights with this reference.
package exact
