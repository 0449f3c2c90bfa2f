// Package calibration turns scores into probabilities, by a temperature or by isotonic
// regression. They are fitted to the scores of instances that the model was not trained on. Maths
// on slices.
//
// The order of an instance's classes never changes, and so its labels don't. By levels the order
// of probabilities may change, and labels still follow the scores.
package calibration

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// Kinds of calibration.
const (
	// scores times a number, shifted where classes are judged one by one
	Temperature = "temperature"
	Isotonic    = "isotonic" // a monotone function of what the temperature gives
	// one for each level of the hierarchy, where instances have one label
	Levels = "levels"
)

// Kinds are all of them.
var Kinds = []string{Temperature, Isotonic, Levels}

// Calibration is calibration.json. Let s be an instance's scores. If each instance has one label
// (Joint),
//
//	q_k = exp(Slope s_k) / sum_j exp(Slope s_j)
//
// and otherwise q_k = 1 / (1 + exp(-Slope s_k - Offset)). A temperature's probabilities are q.
// Isotonic ones are g(q_k), divided by their sum over the classes if Joint. g connects the knots
// (X, Y) by straight lines and is constant outside of them. By levels q comes down the hierarchy,
// see Way.Down.
type Calibration struct {
	Kind   string    `json:"kind"`
	Joint  bool      `json:"joint"` // the probabilities of an instance's classes sum to 1
	Slope  float64   `json:"slope"`
	Offset float64   `json:"offset"`
	X      []float64 `json:"x,omitempty"`      // ascending
	Y      []float64 `json:"y,omitempty"`      // never falling, in (0, 1)
	Powers []float64 `json:"powers,omitempty"` // of the levels, from the top

	HeldOut HeldOut `json:"held_out"`
}

// HeldOut describes the held-out instances that it was fitted on, and its quality there.
type HeldOut struct {
	Instances int     `json:"instances"`
	LogLoss   float64 `json:"log_loss"` // a row, or if not Joint a row and class
}

// Check refuses values that Fit never returns.
func (c *Calibration) Check() error {
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	switch {
	case !slices.Contains(Kinds, c.Kind):
		return fmt.Errorf("calibration: kind %q: not known: it was written by a newer version of taxon", c.Kind)
	case !finite(c.Slope) || c.Slope <= 0 || !finite(c.Offset):
		return fmt.Errorf("calibration: slope %g, offset %g: the slope must be above 0", c.Slope, c.Offset)
	case (c.Kind == Levels) != (len(c.Powers) > 0) || c.Kind == Levels && !c.Joint:
		return fmt.Errorf("calibration: %s with %d powers", c.Kind, len(c.Powers))
	case len(c.X) != len(c.Y) || (c.Kind == Isotonic) != (len(c.X) > 0):
		return fmt.Errorf("calibration: %s with %d and %d knots", c.Kind, len(c.X), len(c.Y))
	}
	for _, a := range c.Powers {
		if !finite(a) || a <= 0 {
			return fmt.Errorf("calibration: power %g of a level: must be above 0", a)
		}
	}
	for k, x := range c.X {
		if y := c.Y[k]; !finite(x) || !(y > 0 && y < 1) || k > 0 && (x <= c.X[k-1] || y < c.Y[k-1]) {
			return fmt.Errorf("calibration: knot %d (%g, %g): knots ascend, between 0 and 1", k, x, y)
		}
	}
	return nil
}

// Sums says whether probabilities need the sum of all classes' Raw.
func (c *Calibration) Sums() bool { return c.Joint && c.Kind == Isotonic }

// Raw is the probability of a class with score s before it is divided by the sum of all classes';
// norm is log sum_j exp(Slope s_j) if Joint.
func (c *Calibration) Raw(s, norm float64) float64 {
	q := math.Exp(float64(c.Slope*s) - norm)
	if !c.Joint {
		q = 1 / (1 + math.Exp(float64(-c.Slope*s)-c.Offset))
	}
	if c.Kind == Isotonic {
		return c.line(q)
	}
	return q
}

// line is g.
func (c *Calibration) line(q float64) float64 {
	k := sort.SearchFloat64s(c.X, q)
	switch {
	case k == 0:
		return c.Y[0]
	case k == len(c.X):
		return c.Y[k-1]
	}
	t := (q - c.X[k-1]) / (c.X[k] - c.X[k-1])
	return c.Y[k-1] + float64(t*(c.Y[k]-c.Y[k-1]))
}

// Row replaces the scores of all classes of an instance by their probabilities. By levels these
// come down the hierarchy.
func (c *Calibration) Row(s []float64) {
	norm := 0.0
	if c.Joint {
		norm = logSum(c.Slope, s)
	}
	total := 0.0
	for k, x := range s {
		s[k] = c.Raw(x, norm)
		total += s[k]
	}
	if c.Sums() {
		for k := range s {
			s[k] /= total
		}
	}
}

// logSum is log sum_j exp(a s_j).
func logSum(a float64, s []float64) float64 {
	most, sum := math.Inf(-1), 0.0
	for _, x := range s {
		most = max(most, a*x)
	}
	for _, x := range s {
		sum += math.Exp(float64(a*x) - most)
	}
	return most + math.Log(sum)
}
