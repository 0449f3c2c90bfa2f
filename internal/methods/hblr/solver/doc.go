// Package solver is the maths of hierarchical Bayesian logistic regression by partial MAP:
// the leaves' subproblems, the internals' means, the Gamma step and the priors. It is pure maths on
// slices.
//
// Scratch.Solve (binary) and Joint (soft-max) solve a block of leaves, Bounded and Full do so for the
// variational form, Tree.Solve solves for the internals, and Tree.Update does the Gamma step.
//
// # The model
//
// Every node of a tree has a vector w_n with a normal prior around its parent's ([TKDD] 3):
//
//	w_root ~ N(0, I),   w_n ~ N(w_parent, diag(A_n)^-1)
//	M1  A_n = alpha_parent(n)         one alpha an internal node
//	M2  A_n = alpha_parent(n)^(1..d)  one an internal node and feature
//	M3  A_n = alpha_n                 one per node other than the root
//	alpha ~ Gamma(shape a, rate b)
//
// and each leaf a binary logistic likelihood over all instances. The posterior is taken as
// normals N(mu_n, Psi_n), Psi_n diagonal, times Gammas with means E[alpha]. The method finds a fixed
// point of these updates, A_n being the expected precisions:
//
//	leaf      mu = argmax  -1/2 (w-mu_parent)' A (w-mu_parent) + sum_x log p(t_x | w)   (eq. 7)
//	          1/Psi_i = sum_x x_i^2 p (1-p) + A_i
//	internal  Psi^-1 = A_n + sum_c A_c,   mu_n = Psi (A_n mu_parent + sum_c A_c mu_c)   (eq. 5)
//	alpha     E = tau/ups, tau = a + k/2, ups = b + 1/2 sum (Psi_n + Psi_c + (mu_n-mu_c)^2)  (eq. 6)
//
// where k counts the terms of the sum: d children for M1, children for M2, d for M3. (The paper's eq. 6
// lacks the 1/2 of the squares.) d counts the features that occur. The others are left out.
//
// # Symbols, paper to code
//
//	x, p_xn     Rows.X; coef = t - p, curve = p (1-p) in Scratch
//	mu_n        leaf: Leaf.Mean; internal: a row of a range's vector
//	mu_parent   Block.Above
//	A_n         Block.Precision; Tree.precision
//	Psi_n       1/(h+A) in Solved; 1/(A_n + sum A_c) by Tree.Variance
//	a_n, b_n    Prior
//	E[alpha_n]  Alpha
//
// # What differs from the paper
//
// The Gamma step is not tau/ups itself, which is an EM step and barely moves where the data
// determine little, but MacKay's form of the same fixed point (Gamma in gamma.go). The internals are
// solved all at once by elimination (Tree.Solve), and the leaves' contributions are modelled by
// the curvature of their losses, which moves no fixed point either. The driver extrapolates from the
// last iterates (anderson.go in package plan).
//
// Papers: Gopal & Yang, TKDD 9(3), 2015 [TKDD]; Gopal, Yang, Bai, Niculescu-Mizil, NIPS 2012.
package solver
