// Package contribution is the message from the terminals' solver (mapper) to the internals' solver
// (reducer): the contributions of a block of terminals to its parents.
package contribution

import "math"

// Contribution is a block's contribution to one parent: the sum of its terminals' v_n and their
// curvature, at the features where any of them has support.
type Contribution struct {
	Parent    int32    // mapper: index into Block.Mean; reducer: internal node, or leaf group of a graph
	Feature   []uint32 // ascending
	Sum       []float64
	Curvature []uint8 // hinge: number of terminals with support; other losses: the Code of a sum of degrees
}

// Dense is a contribution that has a value at every feature of a range: a smooth loss's, whose duals
// are all nonzero.
type Dense struct {
	Parent    int32 // as Contribution's
	Sum       []float32
	Curvature []uint8 // Codes; nil: none, of G
}

// Code is the least code whose Degree is not below x, a sum of at most 30 terminals' degrees. Numbers
// of terminals have codes of their own. So no sum is rounded to more than its terminals.
func Code(x float32) uint8 {
	if !(x > 0) {
		return 0
	}
	return uint8(max(int32((math.Float32bits(x)+codeRound)>>codeShift)-codeZero, 1))
}

// Degree is the value of a code: 0, or four binary digits times a power of two.
func Degree(code uint8) float64 {
	if code == 0 {
		return 0
	}
	return float64(math.Float32frombits((uint32(code) + codeZero) << codeShift))
}

const (
	codeShift = 20
	codeRound = 1<<codeShift - 1
	codeZero  = (127 - 27) << 3
)
