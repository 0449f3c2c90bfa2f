package plan

import (
	"fmt"

	"taxon/coordinator/method"
)

// These constants calibrate the estimate.
const (
	// visitSeconds is the time in seconds for a nonzero and a class, and for an entry of a vector.
	visitSeconds     = 1e-9
	visitsPerNonzero = 2 // one for the scores, one for the gradient
	sweeps           = 50
)

// Estimate implements method.Method. Its unit is a vector of one float64 per weight.
func (m Method) Estimate(p *method.Problem, plan *method.Plan) method.Estimate {
	data, classes := p.Spec.GetData(), m.vectors(p.Tree)
	columns := data.GetFeatures() + 1
	vector := 8 * classes * columns
	shards, ranges := uint64(plan.Items[Rows].Count), uint64(plan.Items[Ranges].Count)
	contribution := vector // that of a shard covers only the features of its rows
	if nonzeros := data.GetNonzeros()/shards + data.GetInstances(); nonzeros < columns {
		contribution = 8 * classes * nonzeros
	}
	visits := visitsPerNonzero * float64(data.GetNonzeros()+data.GetInstances()) * float64(classes)
	e := method.Estimate{
		Data: method.DataBytes(data), WorkerShared: method.TreeBytes(plan.Nodes) + 8*columns,
		WorkerSlot:   max(vector+2*contribution, vector/ranges*(2*Memory+6+shards)),
		Coordinator:  64*(shards+(2*Memory+3)*ranges) + method.TreeBytes(plan.Nodes),
		StoreSweep:   3*vector + shards*contribution,
		StoreJob:     (2*Memory+5)*vector + 2*shards*contribution,
		TrafficSweep: (4*Memory+9)*vector + shards*(vector+2*contribution),
		Dense:        true,
		SlotHolds: fmt.Sprintf("weights and gradient of %d vectors over %d features, in float64", classes,
			data.GetFeatures()),
		Sweeps:       sweeps,
		SecondsSweep: []float64{Rows: visitSeconds * visits, Ranges: visitSeconds * float64((7*Memory+10)*vector/8)},
	}
	e.StoreLocal = e.StoreJob
	return e
}
