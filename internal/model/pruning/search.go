package pruning

import (
	"math"

	"taxon/internal/model"
)

// searchSteps bounds searches for a threshold. A threshold of 2^-40 of the largest weight drops
// nothing that float32 sums would show.
const searchSteps = 40

// searchFar is the number of points beyond the allowed loss that counts as far from it.
const searchFar = 2

// LargestThreshold finds the largest threshold whose loss is allowed. excess returns by how many
// points the loss of a threshold exceeds the allowed one. The search starts at the largest weight
// and goes down, by halves while the loss is far from the allowed one, then by an eighth of an
// octave from the half before: measured scores are not quite monotone, and large thresholds give
// small models, which are cheap to try. The last call of excess was for the returned threshold.
func LargestThreshold(m *model.Model, excess func(t float64) (float64, error)) (float64, error) {
	t := largestWeight(m)
	for range searchSteps {
		far, err := excess(t)
		if err != nil {
			return 0, err
		}
		if far <= searchFar {
			break
		}
		t /= 2
	}
	for k := 7; k > -8*searchSteps; k-- {
		at := t * math.Exp2(float64(k)/8)
		if over, err := excess(at); err != nil || over <= 1e-9 {
			return at, err
		}
	}
	_, err := excess(0)
	return 0, err
}

// SmallestThreshold finds the smallest threshold, to an eighth of an octave, at which a model takes
// at most `most` bytes. sizes returns the size for a threshold. Larger thresholds are assumed to give
// smaller models. The result is false if there is no such threshold.
func SmallestThreshold(m *model.Model, most int64, sizes func(t float64) (int64,
	error)) (t float64, ok bool, err error) {
	if n, err := sizes(0); err != nil || n <= most {
		return 0, err == nil, err
	}
	at := func(k int) float64 { return largestWeight(m) * math.Exp2(-float64(k)/8) }
	fits, over := -1, 8*searchSteps
	for over-fits > 1 {
		k := (fits + over) / 2
		n, err := sizes(at(k))
		if err != nil {
			return 0, false, err
		}
		if n <= most {
			fits = k
		} else {
			over = k
		}
	}
	if fits < 0 {
		return at(0), false, nil
	}
	return at(fits), true, nil
}

// largestWeight returns a power of two at or above the largest absolute weight.
func largestWeight(m *model.Model) float64 {
	w := 0.0
	for n := range m.Tree.Len() {
		_, values := m.Overrides(n)
		for _, v := range values {
			w = max(w, math.Abs(float64(v)))
		}
	}
	return math.Exp2(math.Ceil(math.Log2(max(w, math.SmallestNonzeroFloat32))))
}
