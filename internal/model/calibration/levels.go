package calibration

import (
	"errors"
	"math"
)

// Way is a hierarchy along which probabilities are adjusted from the top down. Children follow
// their parents in the numbering.
type Way struct {
	// parent maps a node to its parent, or to -1 at the top.
	parent []int32
	// level maps a node to its level; the top is 0.
	level []int32
	leaf  []bool
	// depth is the number of levels at which there is a choice.
	depth int

	// mass, power, own and sum are working memory by node. sum[n+1] is that of n's children, and
	// sum[0] that of the top.
	mass, power, own, sum []float64
}

// NewWay prepares a hierarchy given by the parents of its nodes.
func NewWay(parent []int32) *Way {
	n := len(parent)
	w := &Way{parent: parent, level: make([]int32, n), leaf: make([]bool, n),
		mass: make([]float64, n), power: make([]float64, n), own: make([]float64, n), sum: make([]float64, n+1)}
	for k, p := range parent {
		w.leaf[k] = true
		if p >= 0 {
			w.level[k], w.leaf[p] = w.level[p]+1, false
		}
	}
	for k := range parent {
		w.depth = max(w.depth, int(w.level[k])+1)
	}
	return w
}

// Depth returns the number of levels.
func (w *Way) Depth() int { return w.depth }

// gather sums the probabilities p of classes (by node, 0 where there is none) at and below each
// node.
func (w *Way) gather(p []float64) {
	copy(w.mass, p)
	for n := len(p) - 1; n >= 0; n-- {
		if up := w.parent[n]; up >= 0 {
			w.mass[up] += w.mass[n]
		}
	}
}

// Down adjusts the probabilities of the classes. At each node, the probabilities of its children,
// and of the node's own class if it has one, are raised to the power of their level and normalised.
// A class's new probability is the product along its path.
func (w *Way) Down(powers, p []float64) {
	w.gather(p)
	clear(w.sum)
	for n, m := range w.mass {
		w.power[n] = math.Pow(m, powers[w.level[n]])
		w.sum[w.parent[n]+1] += w.power[n]
		if !w.leaf[n] {
			w.own[n] = math.Pow(p[n], powers[w.level[n]+1])
			w.sum[n+1] += w.own[n]
		}
	}
	share := func(x float64, of int32) float64 {
		if w.sum[of+1] == 0 { // no probability reaches these nodes
			return 0
		}
		return x / w.sum[of+1]
	}
	for n := range p {
		reach := share(w.power[n], w.parent[n])
		if up := w.parent[n]; up >= 0 {
			reach *= w.mass[up] // the probability that reaches the node
		}
		w.mass[n], p[n] = reach, reach
		if !w.leaf[n] {
			p[n] = reach * share(w.own[n], int32(n))
		}
	}
}

// choice is the choice of one row at one level. It holds the logarithms of the probabilities, with
// the right one first.
type choice struct {
	x      []float64
	weight float64
}

// choices lists the choices of the rows at all levels, by the probabilities of a temperature.
func (s *Sample) choices(c *Calibration, w *Way, nodes []int32) [][]choice {
	children := make([][]int32, len(w.parent)+1)
	for n, p := range w.parent {
		children[p+1] = append(children[p+1], int32(n))
	}
	class := make([]float64, len(w.parent))
	row := make([]float64, s.Classes)
	out := make([][]choice, w.depth)
	log := func(p float64) float64 { return math.Log(max(p, 1e-300)) }
	for i, truth := range s.Truth {
		if len(truth) != 1 {
			continue
		}
		copy(row, s.row(i))
		c.Row(row)
		for k, n := range nodes {
			class[n] = row[k]
		}
		w.gather(class)
		add := func(right, of int32) { // right is among the children of a node, or the node itself
			level := 0
			if of >= 0 {
				level = int(w.level[of]) + 1
			}
			k := choice{x: make([]float64, 1, 1+len(children[of+1])), weight: s.Weight[i]}
			if right == of {
				k.x[0] = log(class[of])
			} else {
				k.x[0] = log(w.mass[right])
				if of >= 0 && class[of] > 0 {
					k.x = append(k.x, log(class[of]))
				}
			}
			for _, n := range children[of+1] {
				if n != right {
					k.x = append(k.x, log(w.mass[n]))
				}
			}
			if len(k.x) > 1 {
				out[level] = append(out[level], k)
			}
		}
		n := nodes[truth[0]]
		if !w.leaf[n] {
			add(n, n)
		}
		for ; n >= 0; n = w.parent[n] {
			add(n, w.parent[n])
		}
	}
	return out
}

// choiceLoss returns the sum of the log-losses of choices raised to a power, and its derivative
// with respect to the power.
func choiceLoss(list []choice, power float64) (loss, rise float64) {
	for _, k := range list {
		norm := logSum(power, k.x)
		mean := 0.0
		for _, x := range k.x {
			mean += float64(math.Exp(float64(power*x)-norm) * x)
		}
		loss += float64(k.weight * (norm - float64(power*k.x[0])))
		rise += float64(k.weight * (mean - k.x[0]))
	}
	return loss, rise
}

// powers returns the levels' powers. A power is fitted only if it is better than 1 on rows on which
// it was not fitted: each half of the rows tests the other's.
func (s *Sample) powers(c *Calibration, w *Way, nodes []int32) ([]float64, error) {
	if w.depth < 2 {
		return nil, errors.New("by levels: the hierarchy has only one")
	}
	out := make([]float64, w.depth)
	fit := func(list []choice) float64 {
		return bisect(func(a float64) float64 { _, rise := choiceLoss(list, a); return rise })
	}
	for level, list := range s.choices(c, w, nodes) {
		out[level] = 1
		var halves [2][]choice
		for i, k := range list {
			halves[i%2] = append(halves[i%2], k)
		}
		gain := 0.0
		for h := range halves {
			if len(halves[h]) == 0 || len(halves[1-h]) == 0 {
				continue
			}
			fitted, _ := choiceLoss(halves[1-h], fit(halves[h]))
			plain, _ := choiceLoss(halves[1-h], 1)
			gain += plain - fitted
		}
		if gain > 0 {
			out[level] = fit(list)
		}
	}
	return out, nil
}
