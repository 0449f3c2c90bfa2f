// Package drift tells whether the papers' objective on a graph, without an anchor and with
// the logistic loss, has a minimiser.
//
// Adding one vector u to all of a component's weights changes no edge. P falls for ever along
// u, and is nowhere least, if u tells the component's rows apart without a mistake: with s_i = +1
// for the rows that bear all of the component's classes, -1 for those that bear none,
//
//	u.x_i = 0 for the rows that bear some,   s_i u.x_i >= 0 for the others,   > 0 for one of them,
//
// as every term of the loss then stays or falls, and one falls without end. If no component
// has such a u, every direction in which P does not grow leaves it unchanged, so P attains its
// least value (Rockafellar: Convex Analysis, theorem 27.1). Hinge losses attain theirs in any case, being
// piecewise quadratic (Frank, Wolfe 1956); terminals without edges are held by zero.
//
// Two searches, cheapest first. A u along a single feature: one that no row with some of the
// classes holds, and whose values in the others all have one sign; exact, and on text, whose values
// are positive, nearly all there is. Then any u: by Stiemke's lemma there is none if and only
// if sum s_i l_i x_i + sum m_j x_j = 0 for some l >= 1 and free m, and the residual of the
// closest such sum is a u (its optimality conditions are the lines above).
package drift
