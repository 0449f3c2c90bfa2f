// Package mapper solves the terminal nodes' subproblems of recursive regularisation:
// up to sixteen linear classifiers at a time, by dual coordinate descent. Pure maths
// on slices: no clock, no I/O, no global randomness, no logging.
//
// # The problem
//
// Given are a terminal n (a node with a loss), the vector y, instances x_i and signs y_in.
// On a tree y is the vector of n's parent. On a graph it is m_n, the mean of n's neighbours
// ([TKDD] eq. 15):
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
//	x_i         row i             Matrix.Row(i); the bias is column d with value Problem.Bias
//	y_in        sign              bit l of a row's positive mask
//	m_n         y                 Block.Mean[slot]
//	s_i         row's weight      Problem.Weight
//	C_in        C s_i, C s_i w    tile.rowC; w for y_in = +1: Problem.PositiveWeight, Block.Weight
//	w_n         w[f][l]           tile.w, float32, 16 lanes interleaved a feature
//	v_n         v[f][l]           dualSolver.v, float64, rebuilt from the duals
//	a_in        a[k][l]           list.a; committed sparse in State
//	C, K=C/S_n  C                 Problem.C; Block.C on graphs (trees: S_n = 1 at every terminal)
//	s_n         curvature         Contribution.Curvature: support, or degrees h/(1+h)
//	G           G                 y_in w.x_i - 1 (+ a/(2C) for the squared hinge)
//	gap         Sums.InnerGap     primal minus dual of the subproblem, never negative
//
// # How it is solved
//
// A Problem is what all blocks share. A Solver owns the memory for one block at a time. The
// loss decides its type, and the shape of the data decides which methods it uses:
//
//	hingeSolver     descent; laneDescent where rows have few zeros
//	squaredSolver   descent; newton where columns are few
//	logisticSolver  Newton's method in the primal, by conjugate gradients over the rows in doubt
//
// Sixteen classes ("lanes") share each pass of a descent over a row's nonzeros. Their weights
// are a tile: one line of sixteen numbers a feature. A bit mask per row says which lanes still
// visit it, which is shrinking per class (Hsieh et al. 2008). Up to four lanes descend on a
// narrower tile.
//
// Between pricing passes only a working set is visited: rows that are positive, have a dual,
// or lie within Options.Band of the margin. A pricing pass scores every row, gives the
// exact float64 sums of the certificate and draws the next working set. What the working set
// missed shows in the duality gap, so the certificate covers it.
//
// The logistic loss's duals are all nonzero. Its state is v, and the certificate comes from
// the gradient.
//
// The loops that take the time are a Kernel: AVX-512, AVX2 or Go, with equal bits. The Go
// function's comment says what all of them compute.
//
// Papers: Gopal & Yang, TKDD 9(3), 2015 [TKDD]; Hsieh et al., ICML 2008 (Algorithm 3).
package mapper
