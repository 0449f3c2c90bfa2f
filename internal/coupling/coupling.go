// Package coupling is what the terminals' solve (mapper) and the internals' solve (reducer)
// tell each other: the contributions of a block of terminals to its parents.
package coupling

// Contribution is what a parent gets from a block: on the features where any of its terminals
// has support, the sum of their v_n and their curvature.
type Contribution struct {
	Parent    int32    // mapper: index into Block.Mean; reducer: internal node, or leaf group of a graph
	Feature   []uint32 // ascending
	Sum       []float64
	Curvature []uint8 // hinge: number of terminals with support; other losses: sum of degrees in units of 1/Unit
}

// Unit is what one terminal of full curvature counts where curvature comes in degrees: with
// all losses but the hinge.
const Unit = 15
