package train

import (
	"context"
	"errors"
	"math"

	"google.golang.org/protobuf/proto"

	"taxon/coordinator/method/registry"
	"taxon/internal/dataset"
	"taxon/internal/engine"
	"taxon/internal/jobs"
	"taxon/internal/labelset"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker/program"
)

// holdOut is a training on a part of the data, so that the other rows can be scored as new
// ones would be.
//
// It begins at nothing, not at the model's weights or duals: those of the internal nodes and
// of classes with few instances still carry what the held-out rows' labels put there, and a
// training cut short would not have lost it, so the rows would score like the rows trained
// on and the cut-off would come out too high.
type holdOut struct {
	*Training
	sweeps int      // of the training
	held   []uint32 // rows to score
	rest   *dataset.Set
}

// A large hold-out is to take at most a fifth of the training's time, by what is known of
// both from data and options, not by a clock: equal trainings have equal hold-outs. The
// fewer sweeps the training made, the less is left for it. Where there are internal nodes,
// a sweep costs R for them, whatever the rows, and V for all rows (proteins_go's graph: R is
// 0.7 V): `sweeps` of the training's S sweeps on a part rho of the rows are
//
//	sweeps/S (R + rho V) / (R + V)
//
// of its time, 0.16 with S = 12; writing weights and scoring rows comes to that. On a part rho
// of the rows C is multiplied by 1/sqrt(rho): fewer losses pull at a class, so its scores are
// lower, and so would the cut-off be. (1/rho, which keeps the losses' whole weight,
// overshoots. Measured on proteins_go, flat, hinge, C = 1, micro / macro F1: all rows
// 60.3 / 46.6; a fifth with C as it is 54.4 / 46.5, with C/sqrt(rho) 60.4 / 44.6.)
const (
	smallWork     = 5e7 // nonzeros x classes: a second or so
	workShare     = 0.1 // rows x sweeps of a flat hold-out, of the training's
	restShare     = 0.45
	restLeast     = 4 // rows that a class keeps
	flatSweeps    = 1
	treeShare     = 4 // one of so many of the training's sweeps
	leastTree     = 2
	mostTree      = 4
	mostHeldLarge = 1000
)

func (h *holdOut) large() bool {
	return float64(h.Set.Matrix.NNZ)*float64(len(h.Set.Labels)) > smallWork
}

// caps are the sweeps and the part of the rows of a large hold-out behind a training of so
// many sweeps.
func caps(flat bool, trained int) (sweeps int, rows float64) {
	trained = max(trained, 1)
	sweeps = flatSweeps
	if !flat {
		sweeps = min(max(trained/treeShare, leastTree), mostTree, trained)
	}
	return sweeps, min(workShare*float64(trained)/float64(sweeps), restShare)
}

// split chooses the rows; false if there are too few to hold any out.
func (h *holdOut) split() bool {
	rows := h.Set.Matrix.Rows
	count := make([]int, len(h.Set.Labels))
	for l, n := range h.Spec.GetData().GetLabelInstances() {
		count[l] = int(n)
	}
	most := mostHeld
	if h.large() {
		most = mostHeldLarge
	}
	h.held = labelset.HoldOut(rows, func(row int) []uint32 { return h.Set.LabelsOf(uint32(row)) }, count, heldShare, most, 1, h.o.Job.Seed)
	if len(h.held) < LeastHeld {
		return false
	}
	out := make([]bool, rows)
	for _, r := range h.held {
		out[r] = true
		for _, l := range h.Set.LabelsOf(r) {
			count[l]--
		}
	}
	if h.large() {
		_, part := caps(registry.Separate(h.o.Job.Method), h.sweeps)
		for _, r := range labelset.HoldOut(rows, func(row int) []uint32 {
			if out[row] {
				return nil
			}
			return h.Set.LabelsOf(uint32(row))
		}, count, 1-part, rows, restLeast, h.o.Job.Seed+1) {
			out[r] = true
		}
	}
	var rest []uint32
	for r, o := range out {
		if !o {
			rest = append(rest, uint32(r))
		}
	}
	h.rest = h.Set.Subset(rest)
	return true
}

// options are the training's, with caps that no clock has a part in.
func (h *holdOut) options() *taxonv1.Options {
	o := proto.Clone(h.o.Job).(*taxonv1.Options)
	o.EvalEvery, o.MaxSeconds = 0, 0
	if !h.large() { // over at once: as many sweeps as the training made
		o.MaxSweeps = uint32(max(h.sweeps, 1))
		return o
	}
	sweeps, _ := caps(registry.Separate(h.o.Job.Method), h.sweeps)
	o.MaxSweeps = uint32(sweeps)
	o.C /= math.Sqrt(float64(h.rest.Matrix.Rows) / float64(h.Set.Matrix.Rows))
	return o
}

// train runs the job on an embedded cluster of its own and writes its model to dir.
func (h *holdOut) train(ctx context.Context, dir string) (err error) {
	spec := &taxonv1.JobSpec{Options: h.options(), Data: program.DescribeData(h.rest), Structure: h.Spec.GetStructure()}
	tree, _, err := registry.Tree(spec)
	if err != nil {
		return err
	}
	e, err := engine.Start(engine.Config{
		Slots: h.o.slots(), Shards: 1, ShardBytes: h.engineConfig().ShardBytes,
		Open: func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return h.rest, nil },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	st, err := h.watch(ctx, e, spec)
	if err != nil {
		return err
	}
	on := *h.Training
	on.Tree = tree
	_, err = on.WriteModel(ctx, dir, e, st, nil)
	return err
}

// watch submits the job and follows it to its end.
func (h *holdOut) watch(ctx context.Context, e *engine.Engine, spec *taxonv1.JobSpec) (*taxonv1.JobStatus, error) {
	const job = "hold-out"
	p := h.ui.Start("train without the held-out instances: sweep", 0)
	defer p.Done()
	if _, err := e.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Spec: spec, Job: job}); err != nil {
		return nil, engine.Plain(err)
	}
	st, err := jobs.Watch(ctx, e.Jobs, job, 0, func(st *taxonv1.JobStatus) error {
		h.show(p, st)
		return nil
	})
	if err == nil && st.GetState() != taxonv1.JobState_JOB_STATE_DONE {
		err = Failed(st)
	}
	return st, engine.Plain(err)
}
