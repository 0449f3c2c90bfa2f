package mlr

import (
	"fmt"

	"taxon/coordinator/method"
)

// Figures of the estimate.
const (
	dataBytesPerNonzero = 8
	dataBytesPerRow     = 24
	bytesPerNode        = 200
	visitSeconds        = 1e-9
	visitsPerNonzero    = 2 // scores, and the gradient
)

// Estimate implements method.Method. Its unit is a vector: a float64 for each weight.
func (Method) Estimate(p *method.Problem, plan *method.Plan) method.Estimate {
	data, classes := p.Spec.GetData(), uint64(plan.Terminals)
	columns := data.GetFeatures() + 1
	vector := 8 * classes * columns
	shards, ranges := uint64(plan.Items[Rows].Count), uint64(plan.Items[Ranges].Count)
	contribution := vector // of a shard: the features of its rows alone
	if nonzeros := data.GetNonzeros()/shards + data.GetInstances(); nonzeros < columns {
		contribution = 8 * classes * nonzeros
	}
	e := method.Estimate{
		Terminals: plan.Terminals, Nodes: plan.Nodes,
		SlotHolds:    fmt.Sprintf("weights and gradient of %d classes over %d features, in float64", classes, data.GetFeatures()),
		WorkerShared: dataBytesPerNonzero*data.GetNonzeros() + dataBytesPerRow*data.GetInstances() + bytesPerNode*uint64(plan.Nodes) + 8*columns,
		WorkerSlot:   max(vector+2*contribution, vector/ranges*(2*Memory+6+shards)),
		Coordinator:  64*(shards+(2*Memory+3)*ranges) + bytesPerNode*uint64(plan.Nodes),
		StoreSweep:   3*vector + shards*contribution,
		StoreJob:     (2*Memory+5)*vector + 2*shards*contribution,
		TrafficSweep: (4*Memory+9)*vector + shards*(vector+2*contribution),
		VisitsSweep:  visitsPerNonzero * float64(data.GetNonzeros()+data.GetInstances()) * float64(classes),
	}
	e.StoreLocal = e.StoreJob
	e.SecondsSweep = visitSeconds * (e.VisitsSweep + float64((7*Memory+10)*vector/8))
	return e
}
