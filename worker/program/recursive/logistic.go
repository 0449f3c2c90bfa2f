package recursive

import (
	params "taxon/coordinator/method/recursive"
	"taxon/mapper"
	"taxon/worker/codec"
)

// smooth says whether the job's loss is smooth: its state is v, not duals.
func (j *job) smooth() bool { return j.solver.Loss == mapper.Logistic }

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

// withGradients puts a priced block's G behind its v, under the parents' second numbers.
// Both travel as float32: the certificate feels the rounding of G to second order only.
func (j *job) withGradients(r *mapper.Result, parents []int32) ([]mapper.Contribution, []int32) {
	if len(r.Gradients) == 0 {
		return r.Contributions, parents
	}
	sent, to := append([]mapper.Contribution(nil), r.Contributions...), append([]int32(nil), parents...)
	for _, c := range r.Gradients {
		to = append(to, parents[c.Slot]+int32(j.parents()))
		c.Slot += len(parents)
		sent = append(sent, c)
	}
	return sent, to
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

// encodeSmooth writes v of a block's lanes at the features where any has some.
func encodeSmooth(s *mapper.State) []byte {
	e := codec.Encoder{B: make([]byte, 0, 16+2*len(s.Feature)+4*len(s.Value))}
	e.Byte(formatSmooth)
	e.Uvarint(len(s.Feature))
	e.Ascending(s.Feature, 0)
	e.F32(s.Value)
	return e.B
}

// decodeSmooth reads the v of so many lanes over `width` features.
func decodeSmooth(b []byte, lanes int, width uint32) (*mapper.State, error) {
	d := codec.Decoder{B: b}
	d.Format(formatSmooth)
	n := d.Count(1 + 4*lanes)
	s := &mapper.State{Priced: true, Feature: make([]uint32, n), Value: make([]float32, n*lanes)}
	d.Ascending(s.Feature, 0, width)
	d.F32(s.Value)
	return s, d.End("state of a block")
}
