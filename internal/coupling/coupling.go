// Package coupling is the message from the terminals' solver (mapper) to the internals' solver
// (reducer): the contributions of a block of terminals to its parents.
package coupling

// Contribution is a block's contribution to one parent: the sum of its terminals' v_n and their
// curvature, at the features where any of them has support.
type Contribution struct {
	Parent    int32    // mapper: index into Block.Mean; reducer: internal node, or leaf group of a graph
	Feature   []uint32 // ascending
	Sum       []float64
	Curvature []uint8 // hinge: number of terminals with support; other losses: sum of degrees in units of 1/Unit
}

// Unit is the value of full curvature where curvature comes in degrees: with all losses but the
// hinge.
const Unit = 15
