package tune

import (
	"fmt"
	"math"
	"strconv"
)

// Point is one combination of options.
type Point struct {
	Method   string  `json:"method"`
	Loss     string  `json:"loss"`
	Bias     float64 `json:"bias"`
	Positive string  `json:"positive_weight"`
	Internal float64 `json:"internal_weight"`
	C        float64 `json:"C"`
	Shift    float64 `json:"prior_shift"` // of rare classes' scores: needs no training of its own
}

// Path is the name of the options other than C, fit for a file's name.
func (p Point) Path() string {
	name := fmt.Sprintf("%s-%s-bias%s-pos%s-int%s", p.Method, p.Loss, number(p.Bias), p.Positive, number(p.Internal))
	if p.Shift != 0 {
		name += "-shift" + number(p.Shift)
	}
	return name
}

// Name names the point, fit for a file's name.
func (p Point) Name() string { return p.Path() + "-C" + number(p.C) }

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Grid lists the values of each option; no list is empty.
type Grid struct {
	Kinds    []Kind // methods with their losses
	Bias     []float64
	Positive []string
	Internal []float64
	C        []float64
}

// Kind is a method with a loss.
type Kind struct {
	Method, Loss string
	Flat         bool // no internal nodes: Internal has no effect
}

// Paths lists the grid's points path by path: all options but C fixed, C ascending. Points
// that differ in nothing that has an effect stand there once. The order is that of the
// lists, the first the slowest.
func (g *Grid) Paths() [][]Point {
	var out [][]Point
	cs := Sorted(g.C)
	for _, k := range g.Kinds {
		for _, b := range g.Bias {
			for _, w := range g.Positive {
				for i, in := range g.Internal {
					if k.Flat && i > 0 {
						continue
					}
					if k.Flat {
						in = 1
					}
					path := make([]Point, len(cs))
					for j, c := range cs {
						path[j] = Point{Method: k.Method, Loss: k.Loss, Bias: b, Positive: w, Internal: in, C: c}
					}
					out = append(out, path)
				}
			}
		}
	}
	return out
}

// Score is what a point reached: Value over all folds' rows together, Spread the standard
// error of the mean of the folds' own values.
type Score struct {
	Value  float64
	Spread float64
}

// NewScore joins a pooled value with the folds' own ones.
func NewScore(pooled float64, folds []float64) Score {
	mean, n := 0.0, float64(len(folds))
	for _, v := range folds {
		mean += v / n
	}
	square := 0.0
	for _, v := range folds {
		square += (v - mean) * (v - mean)
	}
	s := Score{Value: pooled}
	if n > 1 {
		s.Spread = math.Sqrt(square / (n - 1) / n)
	}
	return s
}

// Better says whether a is better than b, in a measure that is to be low or high.
func Better(a, b float64, low bool) bool {
	if low {
		return a < b
	}
	return a > b
}

// Best is the index of the best score; of equal ones the first. -1: there is none.
func Best(scores []Score, low bool) int {
	best := -1
	for i, s := range scores {
		if best < 0 || Better(s.Value, scores[best].Value, low) {
			best = i
		}
	}
	return best
}

// OneStandardError is the one-standard-error rule (L. Breiman et al.: Classification and
// regression trees, 1984, 3.4.3) along the best point's path: the first of its points, so
// the most regularised, whose value is no more than the best one's standard error away
// from the best value. path lists the indices of that path, C ascending.
func OneStandardError(scores []Score, best int, path []int, low bool) int {
	limit := scores[best].Value - scores[best].Spread
	if low {
		limit = scores[best].Value + scores[best].Spread
	}
	for _, i := range path {
		if !Better(limit, scores[i].Value, low) {
			return i
		}
	}
	return best
}
