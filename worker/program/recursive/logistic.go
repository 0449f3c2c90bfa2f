package recursive

import (
	"slices"

	params "taxon/coordinator/method/recursive"
	"taxon/internal/coupling"
	"taxon/mapper"
)

// smooth says whether the job's loss is smooth: its state is v, not duals.
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

// senders is the number of parents that contributions are numbered by: twice as many for
// a smooth loss, the second half for G.
func (j *job) senders() int {
	if j.smooth() {
		return 2 * j.parents()
	}
	return j.parents()
}

// sent addresses a block's contributions to its parents, and behind them, under the parents'
// second numbers, those of G that a priced block has. Both travel as float32: the certificate
// feels the rounding of G to second order only.
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

// innerGap is what a block's lanes aim at, in the scale of their subproblems. A smooth
// loss's gradients add up coherently over a parent's terminals, where the hinge's inner
// gaps just add: each has to be as many times smaller.
func (j *job) innerGap(block uint32, m *params.Map) float64 {
	gap := m.InnerGap / j.pull(block)
	if j.smooth() && len(j.forest.Parent) > 0 {
		gap /= float64(len(j.plan.BlockTerminals))
	}
	return gap
}
