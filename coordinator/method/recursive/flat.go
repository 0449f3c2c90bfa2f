package recursive

import (
	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Flat drives the terminals of one block as a problem of their own, over so many instances:
// its steps are OpMap, whose sums have the figures named here, and at the end an emitting one.
// Solves of a block that other methods make part of theirs thus end as a flat job does.
func Flat(o *taxonv1.Options, terminals int, instances uint64) method.Driver {
	spec := &taxonv1.JobSpec{Options: o, Data: &taxonv1.Data{Instances: instances}}
	return newDriver(spec, &Plan{BlockTerminals: make([]uint32, terminals), BlockSet: []uint32{0}}, false)
}
