package worker

import (
	"math"

	"taxon/mapper"
)

// CarryState turns the state that a block ended with into one that it may begin with under
// another C, ratio times as large: duals are scaled with it, which keeps those at the
// hinge's bound there and all of them within it. A smooth loss has no duals: its v = w - y
// stays as it is. Working sets stay as well: the first sweep is priced and draws new ones.
//
// What it saves is uneven (CLEF, rr-svm, gap 1e-2, CPU seconds scaled, kept, from nothing):
// squared hinge, C from 0.3 to 3, 1.3, 6.5, 6.5; hinge, C from 3 to 30, 6.5, 21, 21; hinge,
// C from 0.3 to 3, 4.0, 4.1, 4.1 on all rows and 3.0, -, 1.8 on half of them. On NEWS20
// nothing: six sweeps lead to that gap from anywhere. Since a begun job's first sweep solves
// longer (coordinator/outer.go: begunEpochs) it is more: hinge, C from 1 to 10, 5.2 on CLEF,
// 9.3 before and 9.5 from nothing; 2.0 on NEWS20, 3.7 and 4.3.
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
