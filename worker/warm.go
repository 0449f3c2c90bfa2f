package worker

import (
	"math"

	"taxon/mapper"
)

// CarryState turns the state that a block ended with into one that it may begin with under
// another C, ratio times as large: duals are scaled with it, which keeps those at the
// hinge's bound there and all of them within it. (Kept as they were, or with those at the
// bound alone scaled, they save little: squared hinge, C from 0.3 to 3, cold 6.5 CPU s, kept
// 6.5, scaled 1.3; hinge, C from 3 to 30, cold 21, kept 21, bound 16, scaled 6.5.) A smooth
// loss has no duals: its v = w - y stays as it is. Working sets stay as well: the first
// sweep is priced and draws new ones.
func CarryState(data []byte, loss string, ratio float64) ([]byte, error) {
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
	if ratio != 1 {
		for i, a := range s.Dual {
			s.Dual[i] = float64(float32(a * ratio * inside))
		}
	}
	return encodeState(s), nil
}

// inside keeps scaled duals within their box whatever the rounding: one that stays a
// little below its bound moves there when its row is visited.
const inside = 1 - 2.4e-7
