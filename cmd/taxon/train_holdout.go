package main

import (
	"context"
	"errors"

	"taxon/coordinator"
	"taxon/internal/dataset"
	"taxon/internal/engine"
	"taxon/internal/jobspec"
	"taxon/internal/labelset"
	"taxon/internal/model"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker"
)

// holdOut is a training on a part of the data, so that the other rows can be scored as new
// ones would be.
type holdOut struct {
	*training
	seconds float64  // that it may take, if it is large
	sweeps  int      // of the training
	held    []uint32 // rows to score
	rest    *dataset.Set
}

// A large hold-out is trained on a part of the rest, to fit the time: restShare of all
// rows, and a few sweeps, which bring most of the F1. Fewer positives and sweeps both leave
// scores lower than the training's, so the cut-off comes out somewhat low. What is large is
// told from the data, not from a clock, so that equal trainings have equal hold-outs; nearly,
// as the cap on the time cuts where it must.
const (
	smallWork     = 5e7 // nonzeros x classes: a second or so
	restShare     = 0.45
	restLeast     = 4 // rows that a class keeps
	flatSweeps    = 1
	treeSweeps    = 2
	trainingShare = 0.6 // of the time; then it is priced, its weights written, rows scored
)

func (h *holdOut) large() bool {
	return float64(h.set.Matrix.NNZ)*float64(len(h.set.Labels)) > smallWork
}

func (h *holdOut) labelsOf(row int) []uint32 {
	return h.set.LabelIndex[h.set.LabelBegin[row]:h.set.LabelBegin[row+1]]
}

// split chooses the rows; false if there are too few to hold any out.
func (h *holdOut) split() bool {
	rows := h.set.Matrix.Rows
	count := make([]int, len(h.set.Labels))
	for l, n := range h.spec.GetData().GetLabelInstances() {
		count[l] = int(n)
	}
	h.held = labelset.HoldOut(rows, h.labelsOf, count, heldShare, mostHeld, 1, h.o.seed)
	if len(h.held) < leastHeld {
		return false
	}
	out := make([]bool, rows)
	for _, r := range h.held {
		out[r] = true
		for _, l := range h.labelsOf(int(r)) {
			count[l]--
		}
	}
	if h.large() {
		for _, r := range labelset.HoldOut(rows, func(row int) []uint32 {
			if out[row] {
				return nil
			}
			return h.labelsOf(row)
		}, count, 1-restShare, rows, restLeast, h.o.seed+1) {
			out[r] = true
		}
	}
	var rest []uint32
	for r, o := range out {
		if !o {
			rest = append(rest, uint32(r))
		}
	}
	h.rest = h.set.Subset(rest)
	return true
}

// options are the training's, with caps.
func (h *holdOut) options() *taxonv1.Options {
	o := h.o.proto()
	o.EvalEvery = 0
	if !h.large() { // over at once: as many sweeps as the training made, by no clock
		o.MaxSeconds, o.MaxSweeps = 0, uint32(max(h.sweeps, 1))
		return o
	}
	sweeps := treeSweeps
	if h.o.flat() {
		sweeps = flatSweeps
	}
	o.MaxSeconds, o.MaxSweeps = h.seconds*trainingShare, uint32(min(sweeps, max(h.sweeps, 1)))
	return o
}

// train runs the job on an embedded cluster of its own and writes its model to dir.
func (h *holdOut) train(ctx context.Context, dir string) (err error) {
	spec := &taxonv1.JobSpec{Options: h.options(), Data: describeData(h.rest), Structure: h.spec.GetStructure()}
	tree, _, err := jobspec.Tree(spec)
	if err != nil {
		return err
	}
	e, err := engine.Start(engine.Config{
		Slots: workers(h.o.threads), Shards: 1, ShardBytes: h.engineConfig().ShardBytes,
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
	meta := h.meta()
	meta.Tree = tree
	w, err := model.NewWriter(dir, meta)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := worker.Weights(ctx, e.Store, tree, coordinator.NewPlan(tree, spec), st, h.shifted(w.WriteNode)); err != nil {
		return err
	}
	_, err = w.Close(h.report(st), nil)
	return err
}

// watch submits the job and follows it to its end.
func (h *holdOut) watch(ctx context.Context, e *engine.Engine, spec *taxonv1.JobSpec) (*taxonv1.JobStatus, error) {
	const job = "hold-out"
	p := h.a.ui.Start("train without the held-out instances: sweep", 0)
	defer p.Done()
	if _, err := e.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Spec: spec, Job: job}); err != nil {
		return nil, plainStatus(err)
	}
	stream, err := e.Jobs.Watch(ctx, &taxonv1.StatusRequest{Job: job})
	if err != nil {
		return nil, plainStatus(err)
	}
	for {
		st, err := stream.Recv()
		if err != nil {
			return nil, plainStatus(err)
		}
		h.show(p, st)
		switch st.GetState() {
		case taxonv1.JobState_JOB_STATE_DONE:
			return st, nil
		case taxonv1.JobState_JOB_STATE_FAILED:
			return nil, h.failure(st)
		}
	}
}
