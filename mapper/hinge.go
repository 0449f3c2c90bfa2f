package mapper

import (
	"context"
	"math/bits"
)

// hingeSolver solves blocks with the hinge. Where rows have few zeros, its descents continue lane
// by lane. Precise solves also choose how the weights are rounded.
type hingeSolver struct{ dualSolver }

func newHingeSolver(p *Problem) *hingeSolver {
	h := &hingeSolver{newDualSolver(p)}
	if p.denseRows() {
		h.lines.whole = true
		h.single.byLane = &laneDescent[float32]{visit: p.Kernel.lanes32}
		h.double.byLane = &laneDescent[float64]{visit: p.Kernel.lanes64}
	}
	return h
}

// Solve implements Solver.
func (h *hingeSolver) Solve(ctx context.Context, b *Block, warm *State, o Options) (*Result, error) {
	h.open(b, warm)
	defer h.close()
	sums, priced := Sums{}, warm != nil && warm.Priced
	if o.Epochs > 0 {
		if _, err := h.descend(ctx, o, &sums); err != nil {
			return nil, err
		}
	}
	h.rebuild()
	if o.Price {
		if o.Precise {
			h.chooseRounding()
		}
		h.fillWeights()
		if err := h.price(ctx, o.Band, [Lanes]float64{}, !priced && o.Epochs > 0, &sums); err != nil {
			return nil, err
		}
	}
	return h.result(sums, o.Price || priced, func(_ uint32, lanes uint16) uint8 { return uint8(bits.OnesCount16(lanes)) }),
		nil
}

// roundingBias lists the factors 1+bias by which w = y + v may be enlarged before it is rounded
// to float32. The enlarged features are those that v touches, which are all features of its
// support.
//
// At the hinge's corner rounding changes P at first order: a margin of 1 that becomes 1 - 1e-8
// costs C 1e-8, which is 1e-5 of a small P at C = 100. A bias moves each such margin beyond the
// corner, whatever share of it comes from y. By first-order optimality it costs its share of the
// sum of the free duals. The larger biases are for features whose products are large compared
// with their sum.
var roundingBias = [...]float64{0, 0x1p-24, 0x1p-23, 0x1p-22, 0x1p-21, 0x1p-20, 0x1p-19, 0x1p-18, 0x1p-17, 0x1p-16}

// ValidRounding reports whether every rounding of the state is an index into roundingBias. It is
// called for a state that was read from the store.
func (s *State) ValidRounding() bool {
	for _, c := range s.Rounding {
		if int(c) >= len(roundingBias) {
			return false
		}
	}
	return true
}

// weight returns (1+bias)(y + v), rounded once to float32; where v is zero it returns y. Adding +0
// keeps -0 out of the tile, so that masked and unmasked updates give equal bits.
func weight(y float32, v float64, rounding uint8) float32 {
	if v == 0 {
		return y + 0
	}
	w := float64(y) + v
	return float32(w+float64(w*roundingBias[rounding])) + 0
}

// chooseRounding chooses for each lane the rounding with the least primal over the listed rows. Of
// equal ones it takes the first. The choice changes W alone and leaves the duals and D as they are.
func (h *hingeSolver) chooseRounding() {
	var best [Lanes]float64
	var choice [Lanes]uint8
	for c := range roundingBias {
		for l := range h.rounding {
			h.rounding[l] = uint8(c)
		}
		h.fillWeights()
		cost := h.lanePrimals()
		for l := range h.b.Slot {
			if c == 0 || cost[l] < best[l] {
				best[l], choice[l] = cost[l], uint8(c)
			}
		}
	}
	h.rounding = choice
}

// lanePrimals returns, for each lane, 1/2 ||w-y||^2 + C times the sum of the losses of the listed
// rows.
func (h *hingeSolver) lanePrimals() (cost [Lanes]float64) {
	for l, e := range h.edges() {
		cost[l] = e / 2
	}
	for k, i := range h.rows {
		idx, val := h.p.X.Row(int(i))
		for m := h.work[k] | h.live[k]; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			z := score64(h.w, idx, val, h.p.Bias, l)
			if h.pos[k]>>l&1 == 0 {
				z = -z
			}
			cost[l] += float64(h.rowC(i, h.pos[k], l) * Hinge.Value(z))
		}
	}
	return cost
}
