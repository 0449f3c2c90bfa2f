package tune

import "math"

// Score is what a point reached: Value over all folds' rows together, Spread the standard
// error of the mean of the folds' own values.
type Score struct {
	Value  float64
	Spread float64
}

// NewScore joins a pooled value with the folds' own ones.
func NewScore(pooled float64, folds []float64) Score {
	mean, n := 0.0, float64(len(folds))
	for _, v := range folds {
		mean += v / n
	}
	square := 0.0
	for _, v := range folds {
		square += (v - mean) * (v - mean)
	}
	s := Score{Value: pooled}
	if n > 1 {
		s.Spread = math.Sqrt(square / (n - 1) / n)
	}
	return s
}

// Better says whether a is better than b, in a measure that is to be low or high.
func Better(a, b float64, low bool) bool {
	if low {
		return a < b
	}
	return a > b
}

// OneStandardError is the one-standard-error rule (L. Breiman et al.: Classification and
// regression trees, 1984, 3.4.3) along the best point's path: the first of its points, so
// the most regularised, whose value is no more than the best one's standard error away
// from the best value. path lists the indices of that path, C ascending.
func OneStandardError(scores []Score, best int, path []int, low bool) int {
	limit := scores[best].Value - scores[best].Spread
	if low {
		limit = scores[best].Value + scores[best].Spread
	}
	for _, i := range path {
		if !Better(limit, scores[i].Value, low) {
			return i
		}
	}
	return best
}
