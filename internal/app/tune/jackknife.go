package tune

import (
	"math"
	"math/rand/v2"
)

// A race drops points after the first folds if further folds are unlikely to change their rank (O.
// Maron, A. Moore: Hoeffding races, NIPS 1993; M. Birattari et al.: A racing algorithm for
// configuring metaheuristics, GECCO 2002). Points are compared on the same held-out rows, so the
// test is on their difference, which varies far less than either value.

// Groups is the number of parts that a Jackknife leaves out in turn.
const Groups = 20

// DropStdErrs is the number of standard errors behind the best at which a point is dropped after
// one of five folds. The rows of r folds are a sample of all rows. The probability that a point
// which leads over all k folds is that far behind on r of them is the probability that a Student t
// variable of Groups-1 degrees of freedom exceeds DropStdErrs / sqrt(1 - r/k): 0.17 % after one of
// five. Limit keeps that probability for any r.
const DropStdErrs = 3

// Limit returns the number of standard errors behind the best at which a point is dropped after
// some of all folds. It decreases with the number of remaining folds.
func Limit(folds, all int) float64 {
	return DropStdErrs * math.Sqrt(max(1-float64(folds)/float64(all), 0)/0.8)
}

// Group assigns n rows to the groups, evenly and at random.
func Group(n int, seed uint64) []int {
	out := make([]int, n)
	for i, r := range rand.New(rand.NewPCG(seed, 0x67726f7570)).Perm(n) {
		out[r] = i % Groups
	}
	return out
}

// Jackknife holds a measure over some rows. Entry 0 is over all of them, and entry 1+g over the
// rows outside group g.
type Jackknife [1 + Groups]float64

// error returns the standard error of a statistic with these values, by the delete-a-group
// jackknife (B. Efron, R. Tibshirani: An introduction to the bootstrap, 1993, 11.5):
//
//	se^2 = (G-1)/G sum_g (x_g - mean x)^2
func (j *Jackknife) error() float64 {
	mean, square := 0.0, 0.0
	for _, x := range j[1:] {
		mean += x / Groups
	}
	for _, x := range j[1:] {
		square += float64((x - mean) * (x - mean))
	}
	return math.Sqrt(square * (Groups - 1) / Groups)
}

// difference returns the difference of two measures over the same rows.
func difference(a, b *Jackknife) (d Jackknife) {
	for i := range d {
		d[i] = a[i] - b[i]
	}
	return d
}

// Out reports whether a point is behind the best by more than limit standard errors of their
// difference. With oneSE the best point's own standard error is added, so that no point is dropped
// that OneStandardError could choose. low means that smaller values are better. Both must be
// measured on the same rows.
func Out(best, point *Jackknife, limit float64, low, oneSE bool) bool {
	d := difference(best, point)
	if low {
		d = difference(point, best)
	}
	limit *= d.error()
	if oneSE {
		limit += best.error()
	}
	return d[0] > limit
}

// Leader returns the index of the best value, and of equal ones the first. It is -1 if there is
// none.
func Leader(points []*Jackknife, low bool) int {
	best := -1
	for i, p := range points {
		if best < 0 || Better(p[0], points[best][0], low) {
			best = i
		}
	}
	return best
}

// Past reports whether a path has passed its best point. It has if each of the last patience points
// of the path is far behind that point. If patience is 0, Past returns false.
func Past(path []*Jackknife, patience int, low, oneSE bool) bool {
	best := Leader(path, low)
	if patience == 0 || best < 0 || len(path)-patience <= best {
		return false
	}
	for _, p := range path[len(path)-patience:] {
		if !Out(path[best], p, DropStdErrs, low, oneSE) {
			return false
		}
	}
	return true
}
