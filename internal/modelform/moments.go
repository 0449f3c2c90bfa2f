package modelform

// A record with precisions has the columns of its mean, of width w, and behind them
//
//	w + f       the variance of column f, of leaves alone
//	2w + 2f     a precision of column f that the node owns, rounded to float32
//	2w + 2f + 1 what rounding left of it
//
// One precision for all columns stands at f = 0. Columns without an entry do not occur in the
// training data. The variance of an internal node follows from precisions.

// Width is how many columns records have at most, where vectors have w.
func (f Form) Width(w int) int {
	if f.Precision != NoPrecision {
		return 4 * w
	}
	return w * (1 + f.Draws)
}

// DrawColumn is that of column f in draw k, of records with draws, which lie behind the mean.
func DrawColumn(w, k, f int) int { return w*(1+k) + f }

// VarianceColumn is that of the variance of column f.
func VarianceColumn(w, f int) int { return w + f }

// PrecisionColumn is that of the upper half of the precision of column f; the lower one follows.
func PrecisionColumn(w, f int) int { return 2*w + 2*f }

// SplitFloat64 splits a number: it is the sum of both, to 49 bits.
func SplitFloat64(x float64) (high, low float32) {
	high = float32(x)
	return high, float32(x - float64(high))
}
