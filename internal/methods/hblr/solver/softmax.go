package solver

import "math"

// The soft-max likelihood, p(y|x) = exp(w_y.x) / sum_n exp(w_n.x), couples all leaves. Partial MAP takes
// them to their joint maximum (joint.go). The variational form has a bound that separates them by one
// number per row, which a task of its own computes from the shares of all blocks of leaves. Then the leaves
// are solved again, until both stop changing:
//
//	log sum_n exp(f_n) <= beta + sum_n [ (f_n-beta-xi_n)/2
//	+ lambda(xi_n) ((f_n-beta)^2 - xi_n^2) + log(1+exp(xi_n)) ]   (Bouchard; [TKDD] 3.1)
//	best at beta = (1/2 (|T|/2 - 1) + sum_n lambda(xi_n) mu_n.x) / sum_n lambda(xi_n)
//
// Block.Offset is beta of each row, or in partial MAP z = log sum_n exp(w_n.x).

// weighShares does what weigh does, for the soft-max: with p = exp(s - z) at the trial score
// s = score + length move, it sets coef to t - p and curve to p (1-p).
func (r Rows) weighShares(lanes int, score, move, trial, coef, curve []float64, positive []uint16, offset []float64,
	length *[Lanes]float64) (loss [Lanes]float64) {
	for i, own := range positive {
		weight, z := r.WeightOf(i), offset[i]
		for l := range lanes {
			at := i*lanes + l
			s := score[at] + float64(length[l]*move[at])
			trial[at] = s
			p := min(Exp(s-z), 1)
			t := float64(own >> l & 1)
			coef[at], curve[at] = float64(weight*(t-p)), float64(weight*float64(p*(1-p)))
			loss[l] += float64(float64(weight*t) * (z - s))
		}
	}
	return loss
}

// Penalty returns 1/2 (w-m)' A (w-m), summed over all leaves.
func (s *Scratch) Penalty() (sum float64) {
	for _, x := range s.penalty() {
		sum += x
	}
	return sum
}

// A soft-max does not change when all leaves move by one vector, so only the prior determines where they
// lie. Center, Drift and Follow find the best place in one step.

// Center moves all means, at the columns of a range, so that the root's is 0, as it is at the joint maximum.
func Center(mu []float64, columns int) {
	for i := columns; i < len(mu); i++ {
		mu[i] -= mu[i%columns]
	}
	clear(mu[:columns])
}

// Drift returns, by column, the sums over the block's leaves of A (w-m) and, after all these, of A.
func (b *Block) Drift(w []float64) []float64 {
	lanes := len(b.Positive)
	columns := len(w) / lanes
	out := make([]float64, 2*columns)
	for f := range columns {
		for l, p := range b.Precision {
			a, x := p.At(f), w[f*lanes+l]
			if b.Above[l] != nil {
				x -= b.Above[l][f]
			}
			out[f] += float64(a * x)
			out[columns+f] += a
		}
	}
	return out
}

// Follow returns the vector by which all leaves must move to minimise their priors, and adds the
// change that the move makes to the offsets. drift has Drift of each block.
func (r Rows) Follow(offset []float64, drift [][]float64) []float64 {
	move, score := make([]float64, r.Columns()), make([]float64, len(offset))
	for f := range move {
		move[f] = -sumAt(drift, f) / sumAt(drift, len(move)+f)
	}
	r.Scores(move, score, 1)
	for i, x := range score {
		offset[i] += x
	}
	return move
}

// logSum returns the logarithm of the sum of exp(x).
func logSum(x []float64) float64 {
	most, sum := math.Inf(-1), 0.0
	for _, v := range x {
		most = max(most, v)
	}
	for _, v := range x {
		sum += Exp(v - most)
	}
	return most + Log(sum)
}

// LogSums sets out, by row, to the logarithm of the sum of exp over parts, each by row.
func LogSums(parts [][]float64, out []float64) {
	x := make([]float64, len(parts))
	for i := range out {
		for k, part := range parts {
			x[k] = part[i]
		}
		out[i] = logSum(x)
	}
}

// Share adds to tau and pull, by row, the sums of 2 lambda(xi) and of 2 lambda(xi) (w.x - beta)
// over the block's leaves.
func (s *Bounded) Share(tau, pull []float64) {
	for i := range tau {
		for l := range s.lanes {
			u := s.score[i*s.lanes+l]
			_, t, _ := Jaakkola(s.variance[i*s.lanes+l] + float64(u*u))
			tau[i] += t
			pull[i] += float64(t * u)
		}
	}
}

// Beta returns the best beta of a row, given the last one and the sums of Share over all leaves.
func Beta(beta, tau, pull float64, leaves int) float64 {
	return beta + (float64(leaves)/2-1+pull)/tau
}
