// Package solver is the maths of the correlated multinomial logit of Shahbaba and Neal (2007):
// its posterior, and draws from it. It is pure maths on slices. Solver.Sample continues a chain of
// draws, and Diagnose compares chains.
//
// # The model
//
// Every branch j of a tree (a node other than the root) has coefficients phi_j. A class's are the
// sums along its path, so classes that share a path have correlated priors:
//
//	p(y|x) proportional to exp(w_y.x),   w_y = sum of phi_j over the branches from the root to y
//	phi_jf ~ N(0, 1/(T_l S_f)), l the level of j;   of the bias: N(0, 1/E)
//	T_l, S_f, E ~ Gamma(shape 1, rate 1)
//
// T_l = tau_l^-2 is a level's precision, S_f = sigma_f^-2 a feature's (automatic relevance
// determination), E = eta^-2 the intercepts'. The hyper-priors are ours: the paper does not state
// its own.
//
// # The draws
//
// An iteration is a Hamiltonian trajectory of all phi at the present precisions. Draws that change
// the likelihood little or not at all follow (gibbs.go): a node's coefficients against those below
// it, each precision given all else, the scale of T against that of S.
//
//	U(phi) = -sum_i log p(y_i|x_i) + 1/2 sum A phi^2,   A_jf = T_l S_f, of the bias E
//	M_jf   = A_jf + sum_i x_if^2 q_j (1-q_j),           q_j the share of the rows below j
//
// M are the masses. They do not depend on phi, so the trajectory leaves the posterior invariant. Its
// step size is fitted while Options.Adapt is set (dual averaging, Hoffman and Gelman 2014), and fixed
// afterwards.
//
// Diagnose compares chains: split R-hat and effective sample sizes.
package solver
