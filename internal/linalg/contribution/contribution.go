// Package contribution defines the message from the terminals' solver (mapper) to the internals'
// solver (reducer): the contributions of a block of terminals to its parents.
package contribution

import "math"

// Contribution is a block's contribution to one parent: the sum of its terminals' v_n and their
// curvature, at the features where any of them has support.
type Contribution struct {
	// Parent is an index into Block.Mean in the mapper, and an internal node (or a leaf group of a
	// graph) in the reducer.
	Parent int32
	// Feature is ascending. Sum and Curvature have a value for each feature.
	Feature []uint32
	// Sum is the sum of v_n.
	Sum []float64

	// Curvature holds, with the hinge, the number of terminals with support. With other losses it
	// holds the Code of a sum of degrees.
	Curvature []uint8
}

// Dense is a contribution that has a value at every feature of a range: that of a smooth loss,
// whose duals are all nonzero.
type Dense struct {
	// Parent has the meaning of Contribution.Parent.
	Parent int32
	// Sum is the sum of v_n, or of G, at every feature.
	Sum []float32

	// Curvature holds codes. It is nil in contributions of G.
	Curvature []uint8
}

// Code returns the smallest code whose Degree is not below x, a sum of the degrees of at most 30
// terminals. Whole numbers of terminals have codes of their own, so no sum is rounded up to more
// than its number of terminals.
func Code(x float32) uint8 {
	if !(x > 0) {
		return 0
	}
	return uint8(max(int32((math.Float32bits(x)+codeRound)>>codeShift)-codeZero, 1))
}

// Degree returns the value of a code: 0, or four binary digits times a power of two.
func Degree(code uint8) float64 {
	if code == 0 {
		return 0
	}
	return float64(math.Float32frombits((uint32(code) + codeZero) << codeShift))
}

// A code consists of the upper bits of a float32, three of them from the fraction, and counts from
// 2^-27 on.
const (
	codeShift = 20
	codeRound = 1<<codeShift - 1
	codeZero  = (127 - 27) << 3
)
