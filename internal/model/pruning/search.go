package pruning

import (
	"math"

	"taxon/internal/model"
)

// searchSteps bounds searches for a threshold: one of 2^-40 of the largest weight prunes nothing that
// float32 sums would show.
const searchSteps = 40

// searchFar is how many points more than allowed count as far from it.
const searchFar = 2

// LargestThreshold finds the largest threshold that loses no more than is allowed; excess says how many points more
// a threshold loses. It goes down from the largest weight, by halves while the loss is far from what is allowed,
// then by eighths of a doubling from the half before: measured scores are not quite monotone, and large
// thresholds make small models, which are the cheap ones to try. What it returns is what excess was asked last.
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

// SmallestThreshold finds the smallest threshold, to an eighth of a doubling, at which a model takes at most so
// many bytes, as sizes says; false: none does. Larger thresholds are taken to make smaller models.
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

// largestWeight is that, as a power of two at or above it.
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
