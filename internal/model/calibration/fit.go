package calibration

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Sample holds instances with the scores of all classes by a model that was trained without them.
type Sample struct {
	Classes int
	// Scores are stored row by row.
	Scores []float64
	// Truth maps a row to its classes, without those that the model lacks.
	Truth [][]int32
	// Weight maps a row to its weight. If it is nil, all weights are 1.
	Weight []float64
}

// MostScores bounds the number of scores in a sample.
const MostScores = 8 << 20

// Add appends a row.
func (s *Sample) Add(scores []float64, truth []int32, weight float64) {
	for _, x := range scores {
		s.Scores = append(s.Scores, max(-farthest, min(x, farthest)))
	}
	s.Truth, s.Weight = append(s.Truth, slices.Clone(truth)), append(s.Weight, weight)
}

// farthest bounds the absolute value of scores.
const farthest = 1e6

func (s *Sample) row(i int) []float64 { return s.Scores[i*s.Classes : (i+1)*s.Classes] }

// Fit returns the calibration of a kind with the least log-loss on the sample. joint reports that
// each row has one label. Levels needs the hierarchy and the nodes of the sample's classes.
func Fit(s *Sample, kind string, joint bool, way *Way, nodes []int32) (*Calibration, error) {
	c := &Calibration{Kind: Temperature, Joint: joint}
	known := 0
	for _, t := range s.Truth {
		known += len(t)
	}
	if known == 0 || s.Classes < 2 && joint {
		return nil, errors.New("no instance held out is of a class that the model has")
	}
	if joint {
		c.Slope = s.temperature()
	} else {
		c.Slope, c.Offset = s.logistic()
	}
	switch kind {
	case Temperature:
	case Isotonic:
		c.X, c.Y = s.isotonic(c)
		c.Kind = Isotonic
	case Levels:
		if !joint {
			return nil, errors.New("by levels: instances have several labels")
		}
		powers, err := s.powers(c, way, nodes)
		if err != nil {
			return nil, err
		}
		c.Kind, c.Powers = Levels, powers
	default:
		return nil, fmt.Errorf("calibrate %q: must be one of %v", kind, Kinds)
	}
	c.HeldOut = HeldOut{Instances: len(s.Truth), LogLoss: s.loss(c, way, nodes)}
	return c, c.Check()
}

// leastSlope and mostSlope bound the factor of the scores. If all rows are right, or all are wrong,
// the best factor is unbounded.
const (
	leastSlope = 1e-4
	mostSlope  = 1e4
)

// temperature returns the a that minimises sum_i w_i (log sum_k exp(a s_ik) - a s_i,true).
func (s *Sample) temperature() float64 { return bisect(s.rise) }

// bisect returns the a at which rise, the increasing derivative of a loss, is 0.
func bisect(rise func(a float64) float64) float64 {
	low, high := math.Log(leastSlope), math.Log(mostSlope)
	for range 50 {
		mid := (low + high) / 2
		if rise(math.Exp(mid)) > 0 {
			high = mid
		} else {
			low = mid
		}
	}
	return math.Exp((low + high) / 2)
}

// rise returns the derivative of the loss with respect to a.
func (s *Sample) rise(a float64) (sum float64) {
	for i, truth := range s.Truth {
		if len(truth) == 0 {
			continue
		}
		row := s.row(i)
		most := slices.Max(row)
		total, mean := 0.0, 0.0
		for _, x := range row {
			e := math.Exp(float64(a * (x - most)))
			total += e
			mean += float64(e * x)
		}
		mean /= total
		for _, t := range truth {
			mean -= row[t] / float64(len(truth))
		}
		sum += float64(s.Weight[i] * mean)
	}
	return sum
}

// logistic returns a and b of the logistic regression 1/(1+exp(-a s - b)) of y on s over all rows
// and classes, by Newton's method. The scores are scaled to a mean square of 1 meanwhile.
func (s *Sample) logistic() (a, b float64) {
	unit := 0.0
	for _, x := range s.Scores {
		unit += float64(x * x)
	}
	if unit = math.Sqrt(unit / float64(len(s.Scores))); unit == 0 {
		unit = 1
	}
	positive := make([]bool, s.Classes)
	a = 1
	for range 100 {
		var ga, gb, haa, hab, hbb float64
		for i, truth := range s.Truth {
			for _, t := range truth {
				positive[t] = true
			}
			w := s.Weight[i]
			for k, x := range s.row(i) {
				x /= unit
				p := 1 / (1 + math.Exp(float64(-a*x)-b))
				d := p
				if positive[k] {
					d = p - 1
				}
				v := float64(w * float64(p*(1-p)))
				ga, gb = ga+float64(float64(w*d)*x), gb+float64(w*d)
				haa, hab, hbb = haa+float64(float64(v*x)*x), hab+float64(v*x), hbb+v
			}
			for _, t := range truth {
				positive[t] = false
			}
		}
		haa, hbb = haa+1e-9, hbb+1e-9
		det := float64(haa*hbb) - float64(hab*hab)
		da, db := (float64(hbb*ga)-float64(hab*gb))/det, (float64(haa*gb)-float64(hab*ga))/det
		if far := max(math.Abs(da), math.Abs(db)); far > 2 { // far from the optimum Newton steps overshoot
			da, db = 2*da/far, 2*db/far
		}
		a, b = a-da, b-db
		if max(math.Abs(da), math.Abs(db)) < 1e-10 {
			break
		}
	}
	return max(leastSlope, min(a/unit, mostSlope)), b
}

// isotonic returns the knots of the monotone least-squares function of q over all rows and classes.
// Neighbouring values that decrease are pooled. Each pool is a knot, at the means of its q and its
// y. A pool without positives, or of positives only, gets half an instance of the other kind.
func (s *Sample) isotonic(c *Calibration) (x, y []float64) {
	type pool struct{ weight, q, y float64 } // sums
	pairs := make([]pool, 0, len(s.Scores))
	row := make([]float64, s.Classes)
	for i, truth := range s.Truth {
		w := s.Weight[i]
		if w == 0 {
			continue
		}
		copy(row, s.row(i))
		c.Row(row)
		at := len(pairs)
		for _, q := range row {
			pairs = append(pairs, pool{w, q, 0})
		}
		for _, t := range truth {
			pairs[at+int(t)].y = w
		}
	}
	slices.SortFunc(pairs, func(a, b pool) int { return cmp.Compare(a.q, b.q) })
	var pools []pool
	for i := 0; i < len(pairs); {
		p, q := pool{}, pairs[i].q
		for ; i < len(pairs) && pairs[i].q == q; i++ { // equal ones are one
			p.weight, p.y = p.weight+pairs[i].weight, p.y+pairs[i].y
		}
		p.q = p.weight * q
		pools = append(pools, p)
		for n := len(pools); n > 1; n = len(pools) {
			last, before := pools[n-1], &pools[n-2]
			if before.y*last.weight < last.y*before.weight {
				break
			}
			before.weight, before.q, before.y = before.weight+last.weight, before.q+last.q, before.y+last.y
			pools = pools[:n-1]
		}
	}
	for _, p := range pools {
		q, least := p.q/p.weight, 0.5/(p.weight+1)
		v := max(least, min(p.y/p.weight, 1-least))
		if k := len(x); k > 0 {
			v = max(v, y[k-1])
			if q <= x[k-1] {
				continue
			}
		}
		x, y = append(x, q), append(y, v)
	}
	return x, y
}

// loss returns the mean log-loss, per row if joint, and otherwise per row and class.
func (s *Sample) loss(c *Calibration, way *Way, nodes []int32) float64 {
	row := make([]float64, s.Classes)
	var down []float64
	if c.Kind == Levels {
		down = make([]float64, len(way.parent))
	}
	positive := make([]bool, s.Classes)
	sum, of := 0.0, 0.0
	for i, truth := range s.Truth {
		copy(row, s.row(i))
		c.Row(row)
		if down != nil {
			for k, n := range nodes {
				down[n] = row[k]
			}
			way.Down(c.Powers, down)
			for k, n := range nodes {
				row[k] = down[n]
			}
			clear(down)
		}
		for _, t := range truth {
			positive[t] = true
			if c.Joint {
				sum -= float64(s.Weight[i] / float64(len(truth)) * math.Log(max(row[t], 1e-15)))
			}
		}
		if c.Joint {
			if len(truth) > 0 {
				of += s.Weight[i]
			}
		} else {
			for k, p := range row {
				if !positive[k] {
					p = 1 - p
				}
				sum -= float64(s.Weight[i] * math.Log(max(p, 1e-15)))
			}
			of += float64(s.Weight[i] * float64(s.Classes))
		}
		for _, t := range truth {
			positive[t] = false
		}
	}
	return sum / max(of, 1e-300)
}
