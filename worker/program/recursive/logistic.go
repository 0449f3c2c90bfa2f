package recursive

import (
	"slices"

	params "taxon/coordinator/method/recursive"
	"taxon/internal/coupling"
	"taxon/mapper"
)

// smooth says whether the job's loss is smooth. The state is then v, not duals.
func (j *job) smooth() bool { return j.problem.Loss == mapper.Logistic }

// encodeState writes a block's state in the form of the job's loss.
func (j *job) encodeState(s *mapper.State) []byte {
	if j.smooth() {
		return encodeSmooth(s)
	}
	return encodeState(s)
}

func (j *job) decodeState(b []byte, lanes int) (*mapper.State, error) {
	if j.smooth() {
		return decodeSmooth(b, lanes, j.features)
	}
	return decodeState(b, j.set.Matrix.Rows)
}

// senders is the number of parents that contributions are numbered by. A smooth loss uses twice
// as many numbers, the second half for G.
func (j *job) senders() int {
	if j.smooth() {
		return 2 * j.parents()
	}
	return j.parents()
}

// sent gives a block's contributions the numbers of their parents. Contributions of G, which a
// priced block has too, get the parents' second numbers. Both are sent as float32: the rounding
// of G changes the certificate to second order only.
func (j *job) sent(r *mapper.Result, parents []int32) []coupling.Contribution {
	out := slices.Concat(r.Contributions, r.Gradients)
	for i := range out {
		out[i].Parent = parents[out[i].Parent]
		if i >= len(r.Contributions) {
			out[i].Parent += int32(j.parents())
		}
	}
	return out
}

// innerGap is the gap at which a block's lanes aim, in the scale of their subproblems. The
// hinge's inner gaps of a parent's terminals add up. A smooth loss's gradients add up, and the
// gap is their square, so each gap must be smaller by the number of terminals.
func (j *job) innerGap(block uint32, m *params.Map) float64 {
	gap := m.InnerGap / j.pull(block)
	if j.smooth() && len(j.forest.Parent) > 0 {
		gap /= float64(len(j.plan.BlockTerminals))
	}
	return gap
}
