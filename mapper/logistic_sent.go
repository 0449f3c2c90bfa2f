package mapper

import (
	"math"

	"taxon/internal/linalg/contribution"
)

// contributions returns for each parent the sums of v, or of G, and the codes of the curvature,
// which is the sum of h/(1+h) over the lanes. If there is no bound h, every lane counts 1.
func (e *logisticSolver) contributions(v [][Lanes]float32, bounded bool) []contribution.Contribution {
	out := make([]contribution.Contribution, len(e.b.Mean))
	for slot := range out {
		c := contribution.Contribution{Parent: int32(slot), Feature: make([]uint32, 0, len(v)), Sum: make([]float64, 0,
			len(v)), Curvature: make([]uint8, 0, len(v))}
		var lanes []int
		for l, at := range e.b.Slot {
			if at == slot {
				lanes = append(lanes, l)
			}
		}
		for f := range v {
			sum, curvature := 0.0, float32(len(lanes))
			if bounded {
				curvature = 0
			}
			for _, l := range lanes {
				sum += float64(v[f][l])
				if bounded {
					curvature += degree(float32(e.share * e.bound[f][l]))
				}
			}
			if sum != 0 || bounded && curvature != 0 {
				c.Feature, c.Sum = append(c.Feature, uint32(f)), append(c.Sum, sum)
				c.Curvature = append(c.Curvature, contribution.Code(curvature))
			}
		}
		out[slot] = c
	}
	return out
}

// dense returns contributions at all features. If curved is true, they hold v and its curvature.
// The curvature follows from the bound. If there is no bound, all lanes count wherever a lane has a
// value. If curved is false, the contributions hold G without a curvature.
func (e *logisticSolver) dense(v [][Lanes]float32, curved, bounded bool) []contribution.Dense {
	out := make([]contribution.Dense, len(e.b.Mean))
	lanes, _ := e.slotLanes()
	padded := (len(v) + Lanes - 1) / Lanes * Lanes // sixteen features at a time
	for slot := range out {
		out[slot] = contribution.Dense{Parent: int32(slot), Sum: make([]float32, len(v), padded)}
		if curved {
			out[slot].Curvature = make([]uint8, len(v), padded)
		}
	}
	var turned, rest [Lanes][Lanes]float32
	turn := func(tile [][Lanes]float32, f int) {
		from := &tile[f]
		if f+Lanes > len(tile) {
			rest = [Lanes][Lanes]float32{}
			copy(rest[:], tile[f:])
			from = &rest[0]
		}
		e.loops.transposed(from, &turned)
	}
	for f := 0; f < len(v); f += Lanes {
		turn(v, f)
		for slot, mask := range lanes {
			e.loops.laneSums(&turned, uint64(mask), &out[slot].Sum[f])
		}
		if !curved {
			continue
		}
		if bounded {
			turn(e.bound, f)
		} else {
			e.full(&turned)
		}
		for slot, mask := range lanes {
			e.loops.laneCodes(&turned, uint64(mask), e.share, &out[slot].Curvature[f])
		}
	}
	return out
}

// full replaces the lanes' values at sixteen features by bounds of the curvature. At a feature
// where any lane has a value, the bound is infinite in all lanes. At other features it is zero.
func (e *logisticSolver) full(v *[Lanes][Lanes]float32) {
	for f := range Lanes {
		bound := float32(0)
		for l := range v {
			if v[l][f] != 0 {
				bound = math.MaxFloat32
			}
		}
		for l := range v {
			v[l][f] = bound
		}
	}
}
