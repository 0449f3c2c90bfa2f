package method

const (
	denseBelow = 1024 // columns: half-full rows of fewer are laid out lane by lane (mapper/dense.go),
	denseLanes = 4    // so many lanes of each at most, in lines of 16 features
	denseLane  = 32   // its dual, bound, place and number
)

// DenseRows is the bytes that a slot of a hinge job takes to lay rows out lane by lane, at
// most; 0 where it does not, as they are sparse or wide.
func DenseRows(rows, features, nonzeros uint64) uint64 {
	if features >= denseBelow || 2*nonzeros < rows*features {
		return 0
	}
	return denseLanes * rows * (64*((features+16)/16) + denseLane)
}
