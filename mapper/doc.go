// Package mapper solves the terminal nodes' subproblems of recursive regularisation:
// up to sixteen linear classifiers at a time, by dual coordinate descent. Pure maths
// on slices: no clock, no I/O, no global randomness, no logging.
//
// # The problem
//
// Given a terminal n with parent vector y (the mean m_n of its neighbours on a tree
// leaf, S_n = 1), instances x_i and signs y_in ([TKDD] eq. 15):
//
//	min_w  1/2 ||w - y||^2 + C sum_i loss(y_in w.x_i)
//
// and its dual (eq. 12), with the hinge's box [0, C] or the squared hinge's [0, inf):
//
//	max_a  sum_i a_i (1 - y_in y.x_i) - 1/2 ||v||^2 [ - sum_i a_i^2 / (4C) ],   v = sum_i a_i y_in x_i
//	w = y + v                                                                  (eq. 13)
//
// # Symbols, paper to code
//
//	N, d        rows, columns     Matrix.Rows, Matrix.Cols
//	x_i         row i             Matrix.Row(i); the bias is column d with value Solver.Bias
//	y_in        sign              bit l of a row's positive mask
//	m_n         y                 Block.Mean[slot]
//	s_i         row's weight      Solver.Weight
//	C_in        C s_i, C s_i w    Solver.rowC; w for y_in = +1: Solver.PositiveWeight, Block.Weight
//	w_n         W[f][l]           Scratch.w, float32, 16 lanes interleaved a feature
//	v_n         V[f][l]           Scratch.v, float64, rebuilt from the duals
//	a_in        A[k][l]           Scratch.a; committed sparse in State
//	C, K=C/S_n  C                 Solver.C (trees: S_n = 1 at every terminal)
//	G           G                 y_in w.x_i - 1 (+ a/(2C) for the squared hinge)
//	gap         Sums.InnerGap     primal minus dual of the subproblem, never negative
//
// # How it is solved
//
// Sixteen classes ("lanes") share each pass over a row's nonzeros; a bit mask per row
// says which lanes still look at it: shrinking per class (Hsieh et al. 2008). Between
// pricing passes only a working set is visited (rows that are positive, have a dual,
// or lie within Options.Band of the margin). A pricing pass scores every row, gives the
// exact float64 sums of the certificate and draws the next working set; what the
// working set missed shows in the duality gap, so nothing is ever believed unproved.
//
// Rows with few zeros need no tile: once few lanes look at a row, the hinge's descents go on
// lane by lane, sixteen features at a time (descendDense).
//
// On few columns descent is slow, as every row moves every weight: a squared hinge goes on
// there by Newton's method with a factored Hessian (solveNewton).
//
// The loops that take the time are a Kernel: AVX-512, AVX2 or Go, with equal bits.
//
// The logistic loss, whose duals are all nonzero, is solved in the primal by Newton's
// method (solveLogistic); its state is v, and the certificate comes from its gradient.
//
// Papers: Gopal & Yang, TKDD 9(3), 2015 [TKDD]; Hsieh et al., ICML 2008 (Algorithm 3).
package mapper
