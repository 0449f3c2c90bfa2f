package recursive

import (
	"math"

	params "taxon/coordinator/method/recursive"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
)

// Carried implements program.Carrier.
func (m Method) Carried() []string { return []string{params.Dual, params.X} }

// Carry implements program.Carrier: internals stay as they are.
func (m Method) Carry(name string, data []byte, from, to *taxonv1.Options) ([]byte, error) {
	if name == params.Dual {
		return carryState(data, to.GetLoss(), from.GetC(), to.GetC())
	}
	return data, nil
}

// carryState turns the state that a block ended with under one C into one that it may begin
// with under another: duals at the hinge's old bound go to its new one, as do those beyond the
// squared hinge's C in proportion; the others stay, within the new box. Where most duals are free,
// as on text with a large C, they hardly grow with C, and scaled they would overshoot. A smooth
// loss has no duals: its v = w - y stays as it is. Working sets stay as well: the first sweep is
// priced and draws new ones.
//
// CPU seconds to a gap of 1e-2, rr-svm, C from 1 to 10: clef, hinge, 4.1, all duals scaled 7.1, all kept
// 4.7; squared hinge 1.3, 3.4 scaled. News20 1.0, 1.1, 1.1; squared hinge 0.5 either way. From 0.1 to 1 scaling is the
// better by a little on clef (squared hinge 0.5, not 0.8).
func carryState(data []byte, loss string, from, to float64) ([]byte, error) {
	l, err := mapper.ParseLoss(loss)
	if err != nil {
		return nil, err
	}
	if l == mapper.Logistic {
		return data, nil
	}
	s, err := decodeState(data, math.MaxUint32)
	if err != nil {
		return nil, err
	}
	for i, a := range s.Dual {
		if a >= atBound*from || to < from {
			a *= to / from
		}
		if from != to {
			s.Dual[i] = float64(float32(a * inside))
		}
	}
	return encodeState(s), nil
}

// atBound is the share of C from which on a dual counts as one at its bound.
const atBound = 0.999

// inside keeps scaled duals within their box whatever the rounding: one that stays a
// little below its bound moves there when its row is visited.
const inside = 1 - 2.4e-7
