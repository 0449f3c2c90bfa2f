package plan

import (
	"fmt"
	"math"

	"taxon/coordinator/method"
)

// joint is Newton's method over all leaves of a soft-max, within a round
// (internal/methods/hblr/solver/joint.go): its scalar part. A step of the blocks and one of the
// whole take turns.
type joint struct {
	Joint             // of the step under way
	Steps     int     // Newton steps of this round
	Turns     int     // iterations of conjugate gradients in this step
	First     float64 // gamma at the start of the step
	Before    float64 // the same of the step before
	Gamma     float64
	Delta     float64
	Error     float64 // of the leaves, relative
	Objective float64 // at w
	Tried     float64 // where the search is
	Down      float64 // slope at w along the step
	// conjugate gradients have failed: a step down the gradient comes next
	Steepest bool `json:",omitempty"`
	// the round has ended before the leaves were at their maximum
	Short bool `json:",omitempty"`
}

func newJoint(plain bool) *joint { return &joint{Joint: Joint{Mode: JointStart, Plain: plain}} }

const (
	// the leaves' error, by its bound, may be this many times their tolerance
	// (internal/methods/hblr/solver.Scratch.differentiate),
	jointShare = 10
	jointNoise = 1e-10 // or this: rounding
	// Newton steps of a round; the next round goes on where they ended
	mostSteps = 50
	mostTurns = 500 // iterations of conjugate gradients in a step
	// they leave this share of the residual at most, or one that falls with the error,
	loosestTurns = 0.1
	// but no less than this one, and than half of what ends the round
	finestTurns = 1e-3
	armijo      = 1e-4
	halvings    = 40
	// unseen: a decrease below this share of the objective is lost in rounding. The step is taken then.
	unseen = 1e-11
)

// phase is the step under way as users see it.
func (n *joint) phase() string {
	if n.Mode == JointSearch {
		return fmt.Sprintf("Newton step %d, search", n.Steps+1)
	}
	return fmt.Sprintf("Newton step %d, turn %d,", n.Steps+1, n.Turns)
}

// jointLeaves adds what a step of the blocks reads and writes.
func (d *driver) jointLeaves(blocks *method.Tasks) {
	p := d.Jointly.Joint
	blocks.Params = method.Encode(Leaves{Joint: &p})
	blocks.Writes = []string{Share}
	if p.Mode != JointStart {
		blocks.Reads = append(blocks.Reads, method.Read{Value: JointState})
	}
	if p.NeedsOffset() {
		blocks.Reads = append(blocks.Reads, method.Read{Value: Offset, All: true})
	}
	switch p.Mode {
	case JointNewton:
		blocks.Writes = append(blocks.Writes, Leaf, JointState)
	case JointTurn:
		blocks.Reads = append(blocks.Reads, method.Read{Value: Couple, All: true})
		blocks.Writes = append(blocks.Writes, JointState)
	}
}

// exchange is the task of the whole that follows.
func (d *driver) exchange(whole method.Tasks) method.Tasks {
	mode := d.Jointly.Mode
	whole.Op, whole.Params = OpPartition, method.Encode(Partition{Joint: mode})
	whole.Reads, whole.Writes = []method.Read{{Value: Share, All: true}}, []string{Offset}
	if mode == JointNewton || mode == JointTurn {
		whole.Writes = []string{Couple}
	}
	return whole
}

// endJoint ends a step of the blocks.
func (d *driver) endJoint(total method.Sums, worst float64) {
	n := d.Jointly
	d.Stage = stagePartition
	switch n.Mode {
	case JointNewton:
		n.Objective += total[SumObjective] // to the sum of z
		n.Before, n.First, n.Gamma, n.Delta, n.Error = n.First, total[SumGamma], total[SumGamma], total[SumDelta], worst
		if n.ends(d.leafTolerance()) || n.Steps >= mostSteps || d.state.TimeUp {
			n.Short = !n.ends(d.leafTolerance())
			d.Objective, d.Stage = n.Objective, stageContribute
		}
	case JointTurn:
		n.Turns++
		last := n.Gamma
		n.Gamma, n.Delta = total[SumGamma], total[SumDelta]
		share := max(min(loosestTurns, n.Error), finestTurns, n.enough(d.leafTolerance())/(2*n.Error))
		if !(n.Gamma > share*share*n.First) || n.Turns >= mostTurns || n.Steepest || d.state.TimeUp {
			n.search(1)
			d.Stage = stageLeaves
			return
		}
		n.Beta = n.Gamma / last
	case JointSearch:
		n.Tried = total[SumObjective]
		if n.Slope {
			n.Down = total[SumSlope]
		}
		switch {
		case n.Down < 0:
		case n.Steepest || n.First <= unseen*n.Objective: // what is left is rounding
			n.Short = n.Steepest && n.First > unseen*n.Objective
			d.Objective, d.Stage = n.Objective, stageContribute
		default:
			n.Joint, n.Steepest, d.Stage = Joint{Mode: JointStart, Plain: n.Plain}, true, stageLeaves
		}
	}
}

// enough is the error that the leaves may have.
func (n *joint) enough(tolerance float64) float64 { return max(jointShare*tolerance, jointNoise) }

// ends says whether the leaves are at their joint maximum.
func (n *joint) ends(tolerance float64) bool {
	if n.Error <= n.enough(tolerance) || n.First == 0 {
		return true
	}
	return n.Steps > 0 && !n.Steepest && n.First > n.Before/4 && -n.Down <= unseen*n.Objective // the rest is rounding
}

// search goes to a try of the line search.
func (n *joint) search(length float64) {
	n.Joint = Joint{Mode: JointSearch, Length: length, Slope: length == 1, Plain: n.Plain}
}

// endExchange ends a step of the whole.
func (d *driver) endExchange(total method.Sums) {
	n := d.Jointly
	d.Stage = stageLeaves
	switch n.Mode {
	case JointStart:
		n.Objective = total[SumObjective]
		n.Joint = Joint{Mode: JointNewton, Plain: n.Plain}
	case JointNewton, JointTurn:
		delta, alpha, beta := n.Delta+total[SumDelta], n.Alpha, 0.0
		if n.Mode == JointTurn {
			beta = n.Beta
			delta -= beta * n.Gamma / alpha
		} else {
			n.Turns = 0
		}
		n.Joint = Joint{Mode: JointTurn, Alpha: n.Gamma / delta, Beta: beta, Plain: n.Plain}
		if n.Steepest {
			n.Alpha, n.Beta = 1, 0
		}
		if !(n.Alpha > 0) || math.IsInf(n.Alpha, 0) { // rounding
			n.search(1)
		}
	case JointSearch:
		change := n.Tried + total[SumObjective] - n.Objective
		if !(change <= armijo*n.Length*n.Down) && !(-n.Down <= unseen*n.Objective) && n.Length > math.Ldexp(1, -halvings) {
			n.search(n.Length / 2)
			return
		}
		// Softened rows keep steps short enough where plain ones are cut, and make them too short near the end.
		if n.Length < 1 {
			n.Plain = false
		} else if n.Steps > 0 && !n.Steepest && n.First > n.Before/4 {
			n.Plain = true
		}
		n.Steps++
		n.Steepest = false
		n.Objective = total[SumObjective]
		n.Joint = Joint{Mode: JointNewton, Length: n.Length, Plain: n.Plain}
	}
}
