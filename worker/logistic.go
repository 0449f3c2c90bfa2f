package worker

import "taxon/mapper"

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

// encodeSmooth writes v of a block's lanes at the features where any has some.
func encodeSmooth(s *mapper.State) []byte {
	e := encoder{make([]byte, 0, 16+2*len(s.Feature)+4*len(s.Value))}
	e.byte(formatSmooth)
	e.uvarint(len(s.Feature))
	e.ascending(s.Feature, 0)
	e.f32(s.Value)
	return e.b
}

// decodeSmooth reads the v of so many lanes over `width` features.
func decodeSmooth(b []byte, lanes int, width uint32) (*mapper.State, error) {
	d := decoder{b: b}
	d.format(formatSmooth)
	n := d.count(1 + 4*lanes)
	s := &mapper.State{Priced: true, Feature: make([]uint32, n), Value: make([]float32, n*lanes)}
	d.ascending(s.Feature, 0, width)
	d.f32(s.Value)
	return s, d.end("state of a block")
}
