package labelset

import (
	"math"
	"slices"
)

// The regression of the instance-based cut-off ([TKDD] 5.2; Gopal and Yang 2010):
//
//	min_theta  sum_rows s dist(theta.phi(row), [low, high])^2 + ridge n ||theta||^2
//
// s is the row's weight and n the sum of all s. phi is the row's standardised profile: its first
// `profile` scores, and the mean of the others. [low, high] are the thresholds that give the row
// its best F1: an interval between two neighbouring scores. All of them are equally good, so a
// single target within the interval would only add noise. The problem is solved by alternating
// projections: least squares on the points of the intervals nearest to the last predictions. Each
// round lowers the sum.
const (
	profile = 12
	rounds  = 15
	ridge   = 1e-3
)

// interval holds the thresholds that are optimal for a row. low may be -Inf, high +Inf.
type interval struct{ low, high float64 }

// nearest returns the point of the interval nearest to x.
func (r interval) nearest(x float64) float64 { return min(max(x, r.low), r.high) }

// intervals finds the best cut of each row by its F1, and of equally good cuts the one with the
// fewest labels. Rows without a true class among the Depth best are omitted, because no threshold
// helps them.
func intervals(p *Profiles) (of []interval, rows []int) {
	for row := range p.Rows() {
		right, best, at := 0, 0.0, -1
		for k, hit := range p.hits(row) {
			if hit {
				right++
			}
			if f := ratio(float64(2*right), float64(k+1+p.labels(row))); f > best {
				best, at = f, k
			}
		}
		if at < 0 {
			continue
		}
		scores := p.scores(row)
		r := interval{math.Inf(-1), scores[at]}
		if at == 0 {
			r.high = math.Inf(1) // the first class is kept whatever the threshold
		}
		if at+1 < len(scores) {
			r.low = scores[at+1]
		}
		of, rows = append(of, r), append(rows, row)
	}
	return of, rows
}

// features returns the entries of phi before standardisation.
func features(dst, scores []float64) []float64 {
	head := min(profile, len(scores))
	dst = append(dst[:0], scores[:head]...)
	if rest := scores[head:]; len(rest) > 0 {
		sum := 0.0
		for _, s := range rest {
			sum += s
		}
		dst = append(dst, sum/float64(len(rest)))
	}
	return dst
}

// line is a threshold as a linear function of a profile's scores.
type line struct {
	intercept float64
	// weight has depth entries.
	weight []float64
}

func (l line) at(scores []float64) float64 {
	t := l.intercept
	for k, w := range l.weight {
		t += float64(w * scores[k])
	}
	return t
}

// regress fits the line on the rows that use selects, starting at a constant threshold. Without
// rows the line is that constant.
func regress(p *Profiles, start float64, use func(row int) bool) line {
	l := line{start, make([]float64, p.depth)}
	of, rows := intervals(p)
	var x [][]float64
	var weight []float64
	n, total := 0, 0.0
	for i, row := range rows {
		if use(row) {
			x, weight = append(x, features(nil, p.scores(row))), append(weight, p.weight[row])
			total += p.weight[row]
			of[n] = of[i]
			n++
		}
	}
	if n == 0 {
		return l
	}
	center, scale := standardise(x, weight, total)
	normal := newNormal(x, weight, ridge*total)
	prediction, target := make([]float64, n), make([]float64, n)
	for i := range prediction {
		prediction[i] = start
	}
	mean, theta := start, make([]float64, len(center))
	for range rounds {
		mean = 0
		for i := range target {
			target[i] = of[i].nearest(prediction[i])
			mean += float64(weight[i] * target[i])
		}
		mean /= total
		theta = normal.solve(x, weight, target, mean)
		for i := range prediction {
			prediction[i] = mean + dot(theta, x[i])
		}
	}
	// Convert from standardised features back to scores.
	l.intercept = mean
	for f, t := range theta {
		w := t / scale[f]
		l.intercept -= float64(w * center[f])
		if f < profile && f < p.depth {
			l.weight[f] = w
			continue
		}
		for k := profile; k < p.depth; k++ {
			l.weight[k] = w / float64(p.depth-profile)
		}
	}
	return l
}

// standardise gives every column of x mean 0 and variance 1, with weighted rows. n is the sum of
// the weights. A column that hardly varies becomes 0.
func standardise(x [][]float64, weight []float64, n float64) (center, scale []float64) {
	center, scale = make([]float64, len(x[0])), make([]float64, len(x[0]))
	for f := range center {
		largest := 0.0
		for i, row := range x {
			center[f] += float64(weight[i]*row[f]) / n
			largest = max(largest, math.Abs(row[f]))
		}
		for i, row := range x {
			d := row[f] - center[f]
			scale[f] += float64(weight[i]*float64(d*d)) / n
		}
		scale[f] = math.Sqrt(scale[f])
		flat := scale[f] <= 1e-9*largest
		if flat {
			scale[f] = 1
		}
		for _, row := range x {
			row[f] = (row[f] - center[f]) / scale[f]
			if flat {
				row[f] = 0
			}
		}
	}
	return center, scale
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += float64(v * b[i])
	}
	return sum
}

// normal is the Cholesky factor of X'SX + ridge I, where S holds the rows' weights.
type normal struct{ l [][]float64 }

// newNormal computes the factor.
func newNormal(x [][]float64, weight []float64, ridge float64) *normal {
	d := len(x[0])
	a := make([][]float64, d)
	for i := range a {
		a[i] = make([]float64, d)
		for j := range i + 1 {
			for k, row := range x {
				a[i][j] += float64(weight[k] * float64(row[i]*row[j]))
			}
		}
		a[i][i] += ridge
	}
	for i := range a {
		for j := range i + 1 {
			s := a[i][j] - dot(a[i][:j], a[j][:j])
			if i == j {
				a[i][i] = math.Sqrt(max(s, 1e-12)) // positive but for rounding: the ridge bounds it from below
			} else {
				a[i][j] = s / a[j][j]
			}
		}
	}
	return &normal{a}
}

// solve returns theta of the least squares fit of target - mean.
func (m *normal) solve(x [][]float64, weight, target []float64, mean float64) []float64 {
	d := len(m.l)
	theta := make([]float64, d)
	for i, row := range x {
		for f, v := range row {
			theta[f] += float64(weight[i] * float64(v*(target[i]-mean)))
		}
	}
	for i := range theta { // L z = b
		theta[i] = (theta[i] - dot(m.l[i][:i], theta)) / m.l[i][i]
	}
	for i := range slices.Backward(theta) { // L' theta = z
		for j := i + 1; j < d; j++ {
			theta[i] -= float64(m.l[j][i] * theta[j])
		}
		theta[i] /= m.l[i][i]
	}
	return theta
}
