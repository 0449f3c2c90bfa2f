package worker

import (
	"math"
	"math/bits"
	"slices"

	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
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

// sends is what a block's parents get, by node, with a priced block's G behind its v, under
// the parents' second numbers. Both travel as float32: the certificate feels the rounding of
// G to second order only.
func (k *task) sends(s *scratch, m *taxonv1.MapTask, r *mapper.Result, parents []int32) ([]mapper.Contribution, []int32) {
	sent, to := r.Contributions, parents
	gradients, of := r.Gradients, parents
	if k.job.home != nil && m.GetTrim() != 0 {
		k.compute(func() {
			sent, to, _ = k.fold(s, m.GetBlock(), sent, parents, m.GetTrim(), false)
			if len(gradients) > 0 {
				cost := 0.0
				gradients, of, cost = k.fold(s, m.GetBlock(), gradients, parents, 0, true)
				r.Sums.Dual -= cost
			}
		})
	}
	if len(gradients) == 0 {
		return sent, to
	}
	sent, to = slices.Clone(sent), slices.Clone(to)
	first := len(to)
	for _, p := range of {
		to = append(to, p+int32(k.job.parents()))
	}
	for _, c := range gradients {
		c.Slot += first
		sent = append(sent, c)
	}
	return sent, to
}

// trim is what a terminal of a block may leave out, in the scale of its subproblem.
func (j *job) trim(m *taxonv1.MapTask) float64 {
	if t := m.GetTrim(); t > 0 {
		return t / j.pull(m.GetBlock())
	}
	return m.GetTrim()
}

// innerGap is what a block's lanes aim at, in the scale of their subproblems. A smooth
// loss's gradients add up coherently over a parent's terminals, where the hinge's inner
// gaps just add: each has to be as many times smaller.
func (j *job) innerGap(m *taxonv1.MapTask) float64 {
	gap := m.GetInnerGap() / j.pull(m.GetBlock())
	if j.smooth() && len(j.forest.Parent) > 0 {
		gap /= float64(len(j.plan.BlockTerminals))
	}
	return gap
}

// encodeSmooth writes v of a block's lanes at the features where any has some: all lanes
// side by side, or, where that is shorter, those that are listed by a mask.
func encodeSmooth(s *mapper.State) []byte {
	lanes := 0
	if len(s.Feature) > 0 {
		lanes = len(s.Value) / len(s.Feature)
	}
	masks, values := lanesHeld(s, lanes)
	if 2*len(masks)+4*len(values) >= 4*len(s.Value) {
		e := encoder{make([]byte, 0, 16+2*len(s.Feature)+4*len(s.Value))}
		e.byte(formatSmooth)
		e.uvarint(len(s.Feature))
		e.ascending(s.Feature, 0)
		e.f32(s.Value)
		return e.b
	}
	e := encoder{make([]byte, 0, 16+4*len(s.Feature)+4*len(values))}
	e.byte(formatMasked)
	e.uvarint(len(s.Feature))
	e.ascending(s.Feature, 0)
	e.u16(masks)
	e.f32(values)
	return e.b
}

// lanesHeld are, feature by feature, the lanes that have a value, and the values.
func lanesHeld(s *mapper.State, lanes int) (masks []uint16, values []float32) {
	masks, values = make([]uint16, len(s.Feature)), make([]float32, 0, len(s.Value))
	for i := range masks {
		for l, v := range s.Value[i*lanes:][:lanes] {
			if math.Float32bits(v) != 0 {
				masks[i] |= 1 << l
				values = append(values, v)
			}
		}
	}
	return masks, values
}

// decodeSmooth reads the v of so many lanes over `width` features.
func decodeSmooth(b []byte, lanes int, width uint32) (*mapper.State, error) {
	d := decoder{b: b}
	if len(b) > 0 && b[0] == formatMasked {
		return decodeMasked(&d, lanes, width)
	}
	d.format(formatSmooth)
	n := d.count(1 + 4*lanes)
	s := &mapper.State{Priced: true, Feature: make([]uint32, n), Value: make([]float32, n*lanes)}
	d.ascending(s.Feature, 0, width)
	d.f32(s.Value)
	return s, d.end("state of a block")
}

// decodeMasked reads v with lanes listed by masks.
func decodeMasked(d *decoder, lanes int, width uint32) (*mapper.State, error) {
	d.format(formatMasked)
	n := d.count(3)
	s := &mapper.State{Priced: true, Feature: make([]uint32, n)}
	masks := make([]uint16, n)
	d.ascending(s.Feature, 0, width)
	d.u16(masks)
	held := 0
	for _, m := range masks {
		held += bits.OnesCount16(m)
		if m>>lanes != 0 {
			d.fail()
		}
	}
	if d.err == nil && len(d.b) != 4*held {
		d.fail()
	}
	if d.err == nil {
		values := make([]float32, held)
		d.f32(values)
		s.Value = make([]float32, n*lanes)
		for i, m := range masks {
			for ; m != 0; m &= m - 1 {
				s.Value[i*lanes+bits.TrailingZeros16(m)], values = values[0], values[1:]
			}
		}
	}
	return s, d.end("state of a block")
}
