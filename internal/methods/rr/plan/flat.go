package plan

import (
	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Flat returns a driver for the terminals of one block as a problem of their own, on data of this
// many instances. Its steps are OpMap, whose sums have the figures named here, and an emitting step
// at the end. Other methods use it for their own blocks, which then end as a flat job does.
func Flat(o Settings, terminals int, instances uint64) method.Driver {
	spec := &taxonv1.JobSpec{Data: &taxonv1.Data{Instances: instances}}
	return newDriver(o, spec, &Plan{BlockTerminals: make([]uint32, terminals), BlockSet: []uint32{0}}, false)
}
