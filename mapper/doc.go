// Package mapper solves the terminal nodes' subproblems of recursive regularisation:
// up to sixteen linear classifiers at a time, by dual coordinate descent. It is pure maths
// on slices: it has no clock, no I/O, no global randomness and no logging.
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
// # Glossary
//
// These words mean the same in every package of the family (mapper, reducer, internal/methods):
//
//	block      at most sixteen terminals that are solved together: the unit of a map task
//	lane       the place of one terminal in a block, 0 to 15: bit l of a mask, column l of a tile
//	slot       the index of a distinct parent of a block; lanes with the same parent share a slot
//	tile       the weights of a block as an array of lines, feature by feature (type tile)
//	line       one feature of a tile: sixteen numbers side by side, a 64-byte cache line of float32;
//	           compact tiles have lines only for the features of the listed rows (type lines)
//	mask       a uint16 with one bit per lane
//	support    the (row, lane) pairs with a nonzero dual; a lane has support on a feature when one of
//	           these rows has it, and then its w may differ from its parent's there
//	list       the working set: the rows that the sweeps between two full passes visit
//	full pass  a pass that scores all rows of the data. It gives the float64 sums of the
//	           certificate and, with the hinges, draws the next working set
//	pricing    the second half of a full pass, in the sense of column generation: the working set
//	           is a restricted problem in which all other duals are held at zero, and pricing
//	           finds the duals outside of it that should enter. Functions and fields named price,
//	           priced or Priced belong to full passes
//	band       the width of the strip of margins, from 1 on, from which pricing also takes rows:
//	           those with a margin below 1+band may need a dual before the next full pass
//	inner gap  the duality gap of a block's own subproblems at a fixed y; the outer gap is that of
//	           the whole objective
//	sweep      one round of the outer iteration: all terminals, then all internals
//	epoch      one pass over the working set within a block
//	strip      sixteen features of one internal node, the reducer's unit for dense vectors
//
// # How it is solved
//
// A Problem is what all blocks share. A Solver owns the memory for one block at a time. The
// loss decides its type, and the shape of the data decides which methods it uses:
//
//	hingeSolver     descent; laneDescent where rows have few zeros
//	squaredSolver   descent; newton where columns are few
//	logisticSolver  Newton's method in the primal, by conjugate gradients over the near rows
//
// Sixteen lanes share each pass of a descent over a row's nonzeros. A mask per row says which
// lanes still visit it, which is shrinking per class (Hsieh et al. 2008). Blocks of up to four
// lanes descend on a narrower tile.
//
// Between full passes only the working set is visited: rows that are positive, have a dual,
// or lie within Options.Band of the margin. What the working set missed shows in the duality
// gap, so the certificate covers it.
//
// The logistic loss's duals are all nonzero. It has no working set: its state is v, and the
// certificate comes from the gradient.
//
// The loops that take the time are a Kernel: AVX-512, AVX2 or Go, with equal bits. The Go
// function's comment says what all of them compute.
//
// Papers: Gopal & Yang, TKDD 9(3), 2015 [TKDD]; Hsieh et al., ICML 2008 (Algorithm 3).
package mapper
