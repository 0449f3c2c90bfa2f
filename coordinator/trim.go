package coordinator

// With a smooth loss every dual is nonzero, and every vector dense: most of its entries are
// too small to matter. Leaving them out costs a known part of the gap, to second order in
// their size (decision 11).
const (
	// trimShare is what all nodes together may leave out, as a share of the last certified
	// gap, or of the tolerance once the gap is below it.
	trimShare = 0.1
	// trimMost bounds what stands for that gap, as a share of P: the first gaps are many
	// times P, and say little about how far P is from its least.
	trimMost = 0.1
	// trimFirst is what a vector may leave out before any gap is known, as a share of half
	// its squared length.
	trimFirst = 1e-3
)

// trim is what one node's vector may leave out: a part of the gap, or below 0 a share of
// half the squared length. A tree has about as many internals as terminals, or fewer.
func (o *outer) trim() float64 {
	switch {
	case !o.smooth || o.terminals == 0:
		return 0
	case !o.Certified:
		return -trimFirst
	}
	total := max(min(o.Last.Objective-o.Last.Dual, trimMost*o.Last.Objective), o.gap*o.Last.Objective)
	return trimShare * total / float64(2*o.terminals)
}
