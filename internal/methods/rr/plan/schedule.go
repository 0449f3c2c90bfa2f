package plan

import (
	"taxon/internal/data/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// These are the names of the schedules (option schedule). Package plan and the option's help
// describe them.
const (
	ScheduleTwoblock = "twoblock"
	ScheduleParity   = "parity"
	ScheduleColour   = "colour"
	ScheduleJacobi   = "jacobi"
)

// NodeSets returns the independent set of every node, and the number of sets. parity has one for
// odd and one for even depths, colour one for each colour of a proper colouring. The other
// schedules, and the flat problem, move all nodes of a kind at once. They have one set, which is
// not independent.
func NodeSets(tree *taxonomy.Tree, o *Settings) (set []uint32, sets uint32) {
	set = make([]uint32, tree.Len())
	if len(tree.Internals()) == 0 {
		return set, 1
	}
	var classes [][]int32
	switch o.Schedule {
	case ScheduleParity:
		parity := tree.ParitySets()
		classes = parity[:]
	case ScheduleColour:
		by, _ := taxonomy.ParseColouring(o.Colouring) // checked by Check
		classes = tree.Colours(by)
	default:
		return set, 1
	}
	for c, nodes := range classes {
		for _, n := range nodes {
			set[n] = uint32(c)
		}
	}
	return set, uint32(len(classes))
}

// uncertified reports whether a job's objective has no certificate, as on a graph without an
// anchor, whose components may shift freely.
func uncertified(spec *taxonv1.JobSpec) bool {
	return spec.GetStructure().GetGraph() && settings(spec).Anchor == 0
}
