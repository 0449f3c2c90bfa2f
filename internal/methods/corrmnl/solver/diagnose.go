package solver

import "math"

// Diagnosis says how far chains agree.
type Diagnosis struct {
	// RHat is the largest split R-hat (Gelman et al. 2013, 11.4) of all watched quantities. It is
	// 0 when there are too few draws.
	RHat float64
	// ESS is the smallest effective sample size, by batch means. It is 0 when there are too few
	// batches.
	ESS float64
	// Draws is the number of draws of all chains after the burn-in.
	Draws int
	// Energy is the mean of -log of the posterior's density over these draws.
	Energy float64
}

// leastBatches is the number of batches that are needed for a variance of their means.
const leastBatches = 8

// Diagnose compares the chains by the batches of their draws. A half chain is half of its batches.
// If their number is odd, the middle one belongs to the first half.
//
//	R-hat^2 = ((n-1)/n W + B/n) / W      W: mean variance within halves of n draws; B/n: variance of their means
//	ESS     = N s^2 / v                  s^2: the numerator; v: variance of batch means, times the draws of a batch
func Diagnose(chains []*State) (d Diagnosis) {
	var halves [][]Batch
	batches, watched := 0, 0
	for _, c := range chains {
		d.Draws += c.Draws
		batches += len(c.Batches)
		if n := len(c.Batches); n > 1 {
			halves = append(halves, c.Batches[:(n+1)/2], c.Batches[(n+1)/2:])
			watched = len(c.Batches[0].Sum)
		} else if n == 1 {
			watched = len(c.Batches[0].Sum)
		}
	}
	if d.Draws == 0 {
		return d
	}
	least := math.Inf(1)
	for k := range watched {
		total := 0.0
		within, means, draws := 0.0, make([]float64, len(halves)), 0.0
		for h, list := range halves {
			n, sum, square := 0.0, 0.0, 0.0
			for _, b := range list {
				n += float64(b.Draws)
				sum += b.Sum[k]
				square += b.Square[k]
			}
			means[h] = sum / n
			within += max(square-float64(sum*means[h]), 0) / max(n-1, 1) / float64(len(halves))
			draws += n / float64(len(halves))
		}
		for _, c := range chains {
			for _, b := range c.Batches {
				total += b.Sum[k]
			}
		}
		mean := total / float64(d.Draws)
		if k == watched-1 {
			d.Energy = -mean
		}
		between := 0.0
		for _, m := range means {
			between += float64((m - mean) * (m - mean))
		}
		if len(halves) < 2 || !(within > 0) || draws < 2 {
			continue
		}
		variance := float64((draws-1)/draws*within) + between/float64(len(halves)-1)
		d.RHat = max(d.RHat, math.Sqrt(variance/within))
		if batches < leastBatches {
			continue
		}
		v := 0.0
		for _, c := range chains {
			for _, b := range c.Batches {
				m := b.Sum[k]/float64(b.Draws) - mean
				v += float64(float64(b.Draws) * m * m)
			}
		}
		if v /= float64(batches - 1); v > 0 {
			least = min(least, float64(d.Draws)*variance/v)
		}
	}
	if !math.IsInf(least, 1) {
		d.ESS = least
	}
	return d
}

// Mean returns the mean of phi over all draws. Without draws it returns the mean of the chains'
// current points.
func Mean(chains []*State) []float64 {
	out, draws := make([]float64, len(chains[0].Phi)), 0
	for _, c := range chains {
		for _, b := range c.Batches {
			add(out, b.Sum[:len(out)])
			draws += b.Draws
		}
	}
	if draws == 0 {
		for _, c := range chains {
			add(out, c.Phi)
		}
		draws = len(chains)
	}
	for k := range out {
		out[k] /= float64(draws)
	}
	return out
}
