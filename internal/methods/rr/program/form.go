package program

import (
	"slices"

	"taxon/internal/linalg/contribution"
	params "taxon/internal/methods/rr/plan"
	"taxon/mapper"
	"taxon/reducer"
	"taxon/worker/program"
)

// form is what differs between the losses in what a block keeps and sends. It is chosen once, when
// a job opens.
type form struct {
	encode func(*mapper.State) []byte
	decode func(j *job, b []byte, lanes int) (*mapper.State, error)
	// seeds makes the blocks' first states of a warm start.
	seeds func(*job, *reducer.Vectors, program.InitialWeights) func(block uint32) *mapper.State

	// priced blocks send G beside their vectors, and D is P less what G says
	gradients bool
	exact     bool // what priced blocks send travels as float64
	// internals' vectors are dense: they would fill the memory twice
	dense bool
}

// hinges is the form of the losses whose blocks keep duals.
var hinges = form{
	encode: encodeState,
	decode: func(j *job, b []byte, _ int) (*mapper.State, error) { return decodeState(b, j.set.Matrix.Rows) },
	seeds: func(j *job, full *reducer.Vectors, from program.InitialWeights) func(uint32) *mapper.State {
		return j.newDualSeeder(full, from).block
	},
	exact: true,
}

// smooth is the form of the logistic loss, whose blocks keep v.
var smooth = form{
	encode: encodeSmooth,
	decode: func(j *job, b []byte, lanes int) (*mapper.State, error) { return decodeSmooth(b, lanes, j.features) },
	seeds: func(j *job, full *reducer.Vectors, from program.InitialWeights) func(uint32) *mapper.State {
		return func(block uint32) *mapper.State { return j.seedBlock(block, full, from) }
	},
	gradients: true,
	dense:     true,
}

// formOf is that of a loss.
func formOf(loss mapper.Loss) *form {
	if loss == mapper.Logistic {
		return &smooth
	}
	return &hinges
}

// senders is the number of parents that contributions are numbered by: twice as many with
// gradients, the second half for G.
func (j *job) senders() int {
	if j.form.gradients {
		return 2 * j.parents()
	}
	return j.parents()
}

// sent addresses a block's contributions to its parents, and behind them, under the parents'
// second numbers, those of G that a priced block has. Both travel as float32: the certificate
// feels the rounding of G to second order only.
func (j *job) sent(r *mapper.Result, parents []int32) []contribution.Contribution {
	out := slices.Concat(r.Contributions, r.Gradients)
	for i := range out {
		out[i].Parent = parents[out[i].Parent]
		if i >= len(r.Contributions) {
			out[i].Parent += int32(j.parents())
		}
	}
	return out
}

// dense says whether blocks send dense contributions. Those of a graph's leaf groups are lists.
func (j *job) dense() bool { return j.form.dense && j.graph == nil }

// address is sent for dense contributions: slots of v, then those of G.
func (j *job) address(cs []contribution.Dense, slots int, parents []int32) {
	for i := range cs {
		cs[i].Parent = parents[cs[i].Parent]
		if i >= slots {
			cs[i].Parent += int32(j.parents())
		}
	}
}

// innerGap is what a block's lanes aim at, in the scale of their subproblems. Gradients add up
// coherently over a parent's terminals, where the hinge's inner gaps just add: each has to be as
// many times smaller.
func (j *job) innerGap(block uint32, m *params.Map) float64 {
	gap := m.InnerGap / j.pull(block)
	if j.form.gradients && len(j.forest.Parent) > 0 {
		gap /= float64(len(j.plan.BlockTerminals))
	}
	return gap
}
