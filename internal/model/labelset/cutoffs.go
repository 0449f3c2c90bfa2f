package labelset

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// Cutoffs is the result of Fit. Labels are chosen among the Depth best classes of an instance.
type Cutoffs struct {
	// Goal is the measure that the cut-offs maximise.
	Goal Goal `json:"goal"`
	// Rule is the better of RuleInstance and RuleScut. If it is empty, it is RuleInstance.
	Rule Rule `json:"rule,omitempty"`
	// Depth is the number of scores in a profile.
	Depth int `json:"depth"`
	// Global is one threshold for all instances and classes.
	Global float64 `json:"global"`

	// Intercept and Weight define the instance rule: the threshold of an instance with sorted
	// scores s is Intercept + sum_k Weight[k] s[k]. Weight has Depth entries.
	Intercept float64   `json:"intercept"`
	Weight    []float64 `json:"weight"`

	// Class holds the threshold of each class, for scut.
	Class []float64 `json:"class"`
	// Rank is the number of labels per instance, 1..Depth, for rcut.
	Rank int `json:"rank"`

	HeldOut HeldOut `json:"held_out"`
}

// Rule is a way to convert an instance's scores into labels.
type Rule string

// These are the rules among which a model's cut-offs choose.
const (
	RuleInstance Rule = "instance"
	RuleScut     Rule = "scut"
)

// HeldOut describes the instances on which the cut-offs were fitted, and the performance there.
// Each rule is measured on the instances on which it was fitted; only the regression and the
// classes' thresholds are cross-fitted.
type HeldOut struct {
	Instances int     `json:"instances"`
	Zero      Quality `json:"zero"`
	Global    Quality `json:"global"`
	Instance  Quality `json:"instance"`
	Scut      Quality `json:"scut"`
	Rcut      Quality `json:"rcut"`
}

// Threshold returns the cut-off of an instance with these Depth scores, in decreasing order. Its
// labels are the classes with higher scores.
func (c *Cutoffs) Threshold(scores []float64) float64 {
	t := c.Intercept
	for k, s := range scores[:len(c.Weight)] {
		t += float64(c.Weight[k] * s)
	}
	return t
}

// Above counts the scores above a threshold. It always counts the first. Scores are in decreasing
// order.
func Above(scores []float64, threshold float64) int {
	n := min(1, len(scores))
	for n < len(scores) && scores[n] > threshold {
		n++
	}
	return n
}

// PerClass appends to dst the indices of the classes whose score is above the class's threshold, or
// the first if there is none.
func (c *Cutoffs) PerClass(dst []int, scores []float64, classes []int32) []int {
	n := len(dst)
	for k, class := range classes {
		if scores[k] > c.Class[class] {
			dst = append(dst, k)
		}
	}
	if len(dst) == n && len(classes) > 0 {
		dst = append(dst, 0)
	}
	return dst
}

// Places appends to dst the indices of the classes that a rule gives an instance with these Depth
// scores, in decreasing order.
func (c *Cutoffs) Places(dst []int, rule Rule, scores []float64, classes []int32) []int {
	if rule == RuleScut {
		return c.PerClass(dst, scores, classes)
	}
	return leading(dst, Above(scores, c.Threshold(scores)))
}

// Check returns an error if c cannot be used for a model with a number of classes, of which
// terminals are scored.
func (c *Cutoffs) Check(classes, terminals int) error {
	switch {
	case c.Depth < 1 || c.Depth > terminals:
		return fmt.Errorf("cut-offs: depth %d for %d scored classes", c.Depth, terminals)
	case len(c.Weight) != c.Depth:
		return fmt.Errorf("cut-offs: %d weights for depth %d", len(c.Weight), c.Depth)
	case len(c.Class) != classes:
		return fmt.Errorf("cut-offs: %d class thresholds for %d classes", len(c.Class), classes)
	case c.Rule != "" && c.Rule != RuleInstance && c.Rule != RuleScut:
		return fmt.Errorf("cut-offs: rule %q: not known: they were written by a newer version of taxon", c.Rule)
	case c.Rank < 1 || c.Rank > c.Depth:
		return fmt.Errorf("cut-offs: rank %d: must be from 1 to %d", c.Rank, c.Depth)
	}
	for _, list := range [][]float64{{c.Global, c.Intercept}, c.Weight, c.Class} {
		for _, v := range list {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return errors.New("cut-offs: a threshold or weight is not finite")
			}
		}
	}
	return nil
}

// HoldOut chooses the rows to hold out of a training, in a random order given by the seed: at most
// the share of all and at most `most` rows, such that each class keeps at least `least` rows, or all it
// has. labels returns the classes of a row; count holds the number of rows of each class. The
// result is ascending.
func HoldOut(rows int, labels func(row int) []uint32, count []int, share float64, most, least int,
	seed uint64) []uint32 {
	want := min(int(share*float64(rows)), most)
	left := append([]int(nil), count...)
	held := make([]bool, rows)
	for _, row := range rand.New(rand.NewPCG(seed, 0x6c6162656c)).Perm(rows) {
		if want == 0 {
			break
		}
		if free(labels(row), left, least) {
			for _, l := range labels(row) {
				left[l]--
			}
			held[row] = true
			want--
		}
	}
	var out []uint32
	for row, h := range held {
		if h {
			out = append(out, uint32(row))
		}
	}
	return out
}

// free reports whether every class of a row keeps enough rows without this row.
func free(labels []uint32, left []int, least int) bool {
	for _, l := range labels {
		if left[l] <= least {
			return false
		}
	}
	return true
}
