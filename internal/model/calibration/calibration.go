// Package calibration converts scores into probabilities, by a temperature or by isotonic
// regression, fitted to the scores of instances that the model was not trained on. It works on
// slices and needs no model.
//
// The order of an instance's classes never changes, so its labels do not either. With Levels the
// order of probabilities may change, and labels still follow the scores.
package calibration

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// These are the kinds of calibration.
const (
	// Temperature multiplies scores by a number and, where classes are judged one by one, shifts
	// them.
	Temperature = "temperature"
	// Isotonic is a monotone function of Temperature's probabilities.
	Isotonic = "isotonic"
	// Levels has a temperature for each level of the hierarchy. Each instance must have a single
	// label.
	Levels = "levels"
)

// Kinds lists all kinds.
var Kinds = []string{Temperature, Isotonic, Levels}

// Calibration is the content of calibration.json. Let s be an instance's scores. If each instance
// has one label (Joint),
//
//	q_k = exp(Slope s_k) / sum_j exp(Slope s_j)
//
// and otherwise q_k = 1 / (1 + exp(-Slope s_k - Offset)). The probabilities of Temperature are q.
// Those of Isotonic are g(q_k), divided by their sum over the classes if Joint, where g
// interpolates the knots (X, Y) linearly and is constant outside of them. With Levels q is adjusted
// down the hierarchy; see Way.Down.
type Calibration struct {
	Kind string `json:"kind"`
	// Joint reports that the probabilities of an instance's classes sum to 1.
	Joint  bool    `json:"joint"`
	Slope  float64 `json:"slope"`
	Offset float64 `json:"offset"`
	// X is ascending.
	X []float64 `json:"x,omitempty"`
	// Y is non-decreasing, in (0, 1).
	Y []float64 `json:"y,omitempty"`
	// Powers holds the powers of the levels, from the top.
	Powers []float64 `json:"powers,omitempty"`

	HeldOut HeldOut `json:"held_out"`
}

// HeldOut describes the held-out instances on which a calibration was fitted, and its quality
// there.
type HeldOut struct {
	Instances int `json:"instances"`
	// LogLoss is the mean per row or, if not Joint, per row and class.
	LogLoss float64 `json:"log_loss"`
}

// Check returns an error for values that Fit never returns.
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

// Sums reports whether probabilities need the sum of all classes' Raw.
func (c *Calibration) Sums() bool { return c.Joint && c.Kind == Isotonic }

// Raw returns the probability of a class with score s before normalisation. If Joint, norm is log
// sum_j exp(Slope s_j).
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

// line returns g(q).
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

// Row replaces the scores of all classes of an instance by their probabilities. With Levels they
// are adjusted down the hierarchy.
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

// logSum returns log sum_j exp(a s_j).
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
