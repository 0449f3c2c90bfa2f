package plan

import (
	"fmt"
	"math"

	"taxon/coordinator/method"
)

// joint is the scalar part of Newton's method over all leaves of a soft-max, within a round
// (internal/methods/hblr/solver/joint.go). Steps with a task for each block alternate with steps
// that have a single task, for the whole.
type joint struct {
	Joint             // parameters of the current step
	Steps     int     // Newton steps in this round
	Turns     int     // conjugate gradient iterations in this Newton step
	First     float64 // gamma at the start of the Newton step
	Before    float64 // First of the previous Newton step
	Gamma     float64
	Delta     float64
	Error     float64 // relative error of the leaves
	Objective float64 // objective at w
	Tried     float64 // objective at the trial point of the line search
	Down      float64 // slope at w along the step

	// Steepest is set after conjugate gradients have failed: the next step follows the gradient.
	Steepest bool `json:",omitempty"`

	// Short is set if the round has ended before the leaves reached their maximum.
	Short bool `json:",omitempty"`
}

func newJoint(plain bool) *joint { return &joint{Joint: Joint{Mode: JointStart, Plain: plain}} }

const (
	// jointShare is the ratio of the bound on the leaves' error to their tolerance that is good
	// enough (internal/methods/hblr/solver.Scratch.differentiate).
	jointShare = 10
	jointNoise = 1e-10 // an error of this size is rounding

	// mostSteps bounds the Newton steps of a round. The next round continues from their result.
	mostSteps = 50
	mostTurns = 500 // bound on the conjugate gradient iterations per step

	// loosestTurns is the largest relative residual at which conjugate gradients stop. The residual
	// at which they stop decreases with the error.
	loosestTurns = 0.1

	// finestTurns is the smallest such residual. It is also never below half of the residual that
	// ends the round.
	finestTurns = 1e-3
	armijo      = 1e-4
	halvings    = 40

	// unseen is the relative decrease of the objective that rounding hides. A step with a smaller
	// decrease is accepted.
	unseen = 1e-11
)

// phase returns the name of the current step in progress reports.
func (n *joint) phase() string {
	if n.Mode == JointSearch {
		return fmt.Sprintf("Newton step %d, search", n.Steps+1)
	}
	return fmt.Sprintf("Newton step %d, turn %d,", n.Steps+1, n.Turns)
}

// jointLeaves adds the reads and writes of a step of the blocks.
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

// exchange returns the task of the whole that follows a step of the blocks.
func (d *driver) exchange(whole method.Tasks) method.Tasks {
	mode := d.Jointly.Mode
	whole.Op, whole.Params = OpPartition, method.Encode(Partition{Joint: mode})
	whole.Reads, whole.Writes = []method.Read{{Value: Share, All: true}}, []string{Offset}
	if mode == JointNewton || mode == JointTurn {
		whole.Writes = []string{Couple}
	}
	return whole
}

// endJoint processes the result of a step of the blocks.
func (d *driver) endJoint(total method.Sums, worst float64) {
	n := d.Jointly
	d.Stage = stagePartition
	switch n.Mode {
	case JointNewton:
		n.Objective += total[SumObjective] // added to the sum of z
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
		case n.Steepest || n.First <= unseen*n.Objective: // the remaining error is rounding
			n.Short = n.Steepest && n.First > unseen*n.Objective
			d.Objective, d.Stage = n.Objective, stageContribute
		default:
			n.Joint, n.Steepest, d.Stage = Joint{Mode: JointStart, Plain: n.Plain}, true, stageLeaves
		}
	}
}

// enough returns the error at which the leaves are accurate enough.
func (n *joint) enough(tolerance float64) float64 { return max(jointShare*tolerance, jointNoise) }

// ends reports whether the leaves are at their joint maximum.
func (n *joint) ends(tolerance float64) bool {
	if n.Error <= n.enough(tolerance) || n.First == 0 {
		return true
	}
	// a decrease of at most unseen is rounding
	return n.Steps > 0 && !n.Steepest && n.First > n.Before/4 && -n.Down <= unseen*n.Objective
}

// search begins a trial of the line search.
func (n *joint) search(length float64) {
	n.Joint = Joint{Mode: JointSearch, Length: length, Slope: length == 1, Plain: n.Plain}
}

// endExchange processes the result of a step of the whole.
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
		if !(n.Alpha > 0) || math.IsInf(n.Alpha, 0) { // due to rounding
			n.search(1)
		}
	case JointSearch:
		change := n.Tried + total[SumObjective] - n.Objective
		if !(change <= armijo*n.Length*n.Down) && !(-n.Down <= unseen*n.Objective) && n.Length > math.Ldexp(1, -halvings) {
			n.search(n.Length / 2)
			return
		}
		// softening rows keeps steps short enough where plain ones are shortened by the line
		// search, but makes them too short near the optimum
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
