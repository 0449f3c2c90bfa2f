package program

import (
	"slices"

	"taxon/internal/linalg/contribution"
	params "taxon/internal/methods/rr/plan"
	"taxon/mapper"
	"taxon/reducer"
	"taxon/worker/program"
)

// form describes how the values of blocks depend on the loss. It is chosen once, when a job opens.
type form struct {
	encode func(*mapper.State) []byte
	decode func(j *job, b []byte, lanes int) (*mapper.State, error)

	// seeds returns a function that computes the blocks' initial states for a warm start.
	seeds func(*job, *reducer.Vectors, program.InitialWeights) func(block uint32) *mapper.State

	// gradients says that a full pass also sends G, from which D is computed together with P.
	gradients bool

	// exact says that the contributions of a full pass are sent in float64.
	exact bool

	// dense says that the internals' vectors are dense. They are too large for the caches to keep
	// more than one group.
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

// smooth is the form of the logistic loss, whose blocks keep v in place of duals.
var smooth = form{
	encode: encodeSmooth,
	decode: func(j *job, b []byte, lanes int) (*mapper.State, error) { return decodeSmooth(b, lanes, j.features) },
	seeds: func(j *job, full *reducer.Vectors, from program.InitialWeights) func(uint32) *mapper.State {
		return func(block uint32) *mapper.State { return j.seedBlock(block, full, from) }
	},
	gradients: true,
	dense:     true,
}

// formOf returns the form of a loss.
func formOf(loss mapper.Loss) *form {
	if loss == mapper.Logistic {
		return &smooth
	}
	return &hinges
}

// senders returns the number of indices by which contributions address parents. With gradients it
// is doubled: the second half addresses G.
func (j *job) senders() int {
	if j.form.gradients {
		return 2 * j.parents()
	}
	return j.parents()
}

// sent addresses a block's contributions to its parents, followed, under the parents' second
// indices, by those of G after a full pass. Both are sent as float32: the rounding of G affects the
// certificate in second order only.
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

// dense reports whether blocks send dense contributions. Those of a graph's leaf groups are always
// lists.
func (j *job) dense() bool { return j.form.dense && j.graph == nil }

// address does what sent does, for dense contributions. The slots of v come first, followed by the
// slots of G.
func (j *job) address(cs []contribution.Dense, slots int, parents []int32) {
	for i := range cs {
		cs[i].Parent = parents[cs[i].Parent]
		if i >= slots {
			cs[i].Parent += int32(j.parents())
		}
	}
}

// innerGap returns the target for the gap of a block's lanes, in the scale of their subproblems.
// Gradients add up coherently over a parent's terminals, while the hinge's inner gaps simply add
// up. The target of a loss with gradients is therefore divided by the number of terminals.
func (j *job) innerGap(block uint32, m *params.Map) float64 {
	gap := m.InnerGap / j.pull(block)
	if j.form.gradients && len(j.forest.Parent) > 0 {
		gap /= float64(len(j.plan.BlockTerminals))
	}
	return gap
}
