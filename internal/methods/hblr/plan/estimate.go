package plan

import (
	"fmt"
	"math"

	"taxon/coordinator/method"
)

// These constants calibrate the estimate.
const (
	bytesPerNode = 400
	visitSeconds = 1.5e-9
	sweeps       = 25
	passes       = 16 // passes over the data per sweep

	// vectorsPerColumn is the number of float64 that a solve holds per leaf and column:
	// internal/methods/hblr/solver.Scratch, the means and their curvature.
	vectorsPerColumn = 10
	vectorsPerRow    = 6 // numbers that a solve holds per leaf and row

	// nearPerColumn is the number per leaf and column of a near problem, which exists for data with
	// nearRows rows.
	nearPerColumn = 10
	nearRows      = 1 << 14

	// boundPerColumn is the number with variational inference:
	// internal/methods/hblr/solver.Bounded, means, variances and curvature.
	boundPerColumn = 20
	boundPerRow    = 12

	// softmaxSolves is the number of solves of the leaves in a sweep of a soft-max, or of
	// equivalent passes with partial MAP.
	softmaxSolves = 4

	// softmaxVectors is the factor of vector operations of a soft-max by partial MAP, relative to a
	// binary sweep.
	softmaxVectors = 60

	// fullRounds is the number of rounds of a solve with full covariances, each of columns^3
	// operations.
	fullRounds = 10
)

// Estimate implements method.Method. Its unit is a vector of one float64 per column.
func (m Method) Estimate(p *method.Problem, plan *method.Plan) method.Estimate {
	data, nodes := p.Spec.GetData(), uint64(plan.Nodes)
	rows, columns := data.GetInstances(), data.GetFeatures()+1
	vector := 8 * columns
	blocks, ranges := uint64(plan.Items[Blocks].Count), uint64(plan.Items[Ranges].Count)
	leaves, internals := uint64(plan.Terminals), uint64(plan.Internals)
	// parents counts the parents of each block's leaves over all blocks; a point and a contribution
	// are vectors
	parents, point, contribution := leaves, internals, uint64(2)
	if m.variant() == "m2" {
		point, contribution = 2*internals, 4
	}
	detail, err := Detail(plan.Detail)
	pastRounds := uint64(Memory)
	pieces := uint64(1)
	if err == nil {
		pastRounds, pieces = uint64(detail.Memory), uint64(detail.Pieces)
		parents = detail.parents(p.Tree.Parent)
	}
	stored := vector // bytes of a vector in the store
	if err == nil && detail.Narrow {
		stored /= 2
	}
	above := stored * parents * point / max(internals, 1)
	visits, rounds := passes*float64(data.GetNonzeros()+rows)*float64(leaves), sweeps
	means := leaves // vectors that the store holds for the leaves
	slot := min(leaves, blockLeaves) * (vectorsPerColumn*vector + 8*vectorsPerRow*rows)
	if rows >= nearRows {
		slot += min(leaves, blockLeaves) * nearPerColumn * vector
	}
	holds := fmt.Sprintf("sixteen classes over %d features and %d instances, in float64", data.GetFeatures(), rows)
	settings, _ := SettingsOf(p.Spec.GetOptions())
	less := ""
	if settings.Inference == Variational {
		means, rounds, visits = 2*means, 2*rounds, 2*visits
		slot = min(leaves, blockLeaves) * (boundPerColumn*vector + 8*boundPerRow*rows)
		if settings.Covariance == Full {
			less = "‹covariance=diagonal›"
			visits += fullRounds * float64(leaves) * math.Pow(float64(columns), 3)
			slot = boundPerColumn*vector + 8*boundPerRow*rows + min(leaves, blockLeaves)*4*vector + covarianceBytes(data)
			holds = fmt.Sprintf("the covariance of a class over %d features, and %d instances, in float64", data.GetFeatures(),
				rows)
		}
	}
	// for a soft-max: bytes of shares, previous means, offsets and Newton's system
	softmax, vectors := uint64(0), float64(passes)
	if err == nil && detail.Fitted && m.variant() == "m2" {
		contribution++
	}
	if err == nil && detail.Softmax {
		visits *= softmaxSolves
		softmax = vector*leaves + 8*rows*(2*blocks+2*(OffsetMemory+1)) + 2*vector*blocks
		slot += 8*rows*(OffsetMemory+blocks) + 2*vector*blocks
		if !detail.Bounded {
			vectors *= softmaxVectors
			softmax += 2 * leaves * (5*vector + 2*8*rows) // they are rewritten at each step
			slot += blockLeaves*(5*vector+2*8*rows) + 8*rows*blocks
		}
	}
	if settings.Prior == Fitted && settings.Inverse == Full {
		slot += 2 * covarianceBytes(data)
	}
	// old values are dropped only after the new ones are written, piece by piece in a stage that
	// runs in pieces
	solved, moved, round := softmax+stored*(means+contribution*parents), stored*point+above, 2*stored*point
	sweep := solved + moved + round
	e := method.Estimate{
		Data: method.DataBytes(data), WorkerShared: bytesPerNode*nodes + 3*vector,
		WorkerSlot: max(slot+4*contribution*vector*min(leaves, blockLeaves),
			vector*point*(pastRounds+2*contribution+6)/ranges),
		Coordinator: 64*(4*blocks+(2*pastRounds+10)*ranges) + bytesPerNode*nodes,
		StoreSweep:  sweep,
		// New values are written before the old ones are dropped. A stage that runs in pieces drops them piece by piece.
		StoreJob:     solved + 2*moved + (pastRounds+1)*round + max(solved, moved, round),
		TrafficSweep: 2*sweep + stored*point*3*(pastRounds+1),
		Dense:        true,
		SlotHolds:    holds,
		Less:         less,
		Sweeps:       rounds,
		SecondsSweep: []float64{Blocks: visitSeconds * (visits + vectors*float64(vector/8*leaves)),
			Ranges: visitSeconds * float64(vector/8*point*(20+2*pastRounds))},
	}
	switch {
	case settings.Inference == Variational:
		moved *= 2
	case m.variant() == "m2":
		moved += stored * internals // paces
	}
	e.StoreLocal = solved + moved + max(solved/pieces+pastRounds*round, moved/pieces+(pastRounds+1)*round)
	return e
}

// parents returns the sum over all blocks of the number of parents of the block's leaves.
func (p *Plan) parents(parent []int32) (n uint64) {
	for b := range len(p.Begin) - 1 {
		seen := map[int32]bool{-1: true}
		for _, leaf := range p.Block(b) {
			seen[parent[leaf]] = true
		}
		n += uint64(len(seen) - 1)
	}
	return n
}
