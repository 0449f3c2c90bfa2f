package modelform

// A record with precisions has the columns of its mean, of width w, and after them
//
//	w + f       the variance of column f, for leaves only
//	2w + 2f     a precision of column f that belongs to the node, rounded to float32
//	2w + 2f + 1 the remainder of that rounding
//
// A precision for all columns is at f = 0. Columns without an entry do not occur in the training
// data. The variance of an internal node follows from precisions.

// Width is the most columns of a record, if vectors have w.
func (f Form) Width(w int) int {
	if f.Precision != NoPrecision {
		return 4 * w
	}
	return w * (1 + f.Draws)
}

// DrawColumn is the column of column f in draw k, in records with draws. Draws come after the
// mean.
func DrawColumn(w, k, f int) int { return w*(1+k) + f }

// VarianceColumn is the column of the variance of column f.
func VarianceColumn(w, f int) int { return w + f }

// PrecisionColumn is the column of the upper half of column f's precision; the lower half is next
// to it.
func PrecisionColumn(w, f int) int { return 2*w + 2*f }

// SplitFloat64 splits x into two float32 whose sum is x to 49 bits.
func SplitFloat64(x float64) (high, low float32) {
	high = float32(x)
	return high, float32(x - float64(high))
}
