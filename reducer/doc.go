// Package reducer updates the internal nodes of recursive regularisation and adds up
// their share of the certificate. It is pure maths on slices. Every feature is independent
// of every other, so the work is cut into feature ranges.
//
// Task.Run does one update of one range; Scratch.Run does the same with memory to reuse. The words
// block, support and strip are explained in the glossary of package mapper.
//
// # The problem
//
// Given are, for each parent p and feature, the sum V_p of its terminals' v_n and their
// curvature s_p. Wanted are the internals' next vectors. Curvature says how much a terminal
// resists a move of its parent. Where a terminal has no support it follows its parent. The rules:
//
//	Support  the support-aware system (methods: "variable metric twoblock"):
//	         (deg_p + s_p) w_p - sum_{internal q~p} w_q = s_p y_p + V_p
//	         s_p = number of p's terminals with support on the feature, plus Task.Follower
//	         for each terminal without support whose lowest ancestor with support below is p
//	Family   the same with s_p = K_p, p's terminals, at the nodes that the sparse system
//	         touches; the others still follow their parents
//	Full     the same with s_p = K_p at every node: the exact minimum of
//	         the edge terms given the terminals at y_p + v_n; always a majoriser
//	Mean     w_p = mean of the neighbours, for the nodes of one independent set
//	         ([TKDD] eq. 11)
//	Jacobi   the mean for all nodes at once from the last values, damped
//
// The rules None, Emit and ToZero compute no step. deg_p counts the internal neighbours and the
// root's zero parent. An edge between two internal nodes has the weight Forest.Inner or
// Forest.Edge. A solved terminal's vector is w_n = y_p + v_n. On a
// graph (Forest.Graph) a leaf group, the terminals with the same neighbours, takes the place
// of a parent's terminals, and the systems are those of type Graph.
//
// # Sparse vectors
//
// A node stores a feature only where its value differs from its parent's (Vectors).
// Where no terminal below p has support, the support-aware system makes p follow its
// parent exactly, so the internals stay as sparse as the duals are.
//
// Symbols: x_p is Vectors (the current values), xPrev those of the previous update,
// y = x + beta (x - xPrev) the extrapolated point (FISTA), and U_n the sum of v over the
// subtree of n. With them D(a) = sum a - 1/2 sum_n ||U_n||^2, because w_n(a) is the sum of U
// over n and its ancestors.
package reducer
