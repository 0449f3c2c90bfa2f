package train

import (
	"context"
	"errors"
	"math"

	"google.golang.org/protobuf/proto"

	"taxon/coordinator/method/registry"
	"taxon/internal/app/engine"
	"taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/model/labelset"
	taxonv1 "taxon/proto/taxon/v1"
)

// holdOut trains on parts of the data, so that the other rows can be scored as new rows would be.
//
// These trainings start from zero, not from the model. Its internal nodes, and its classes with
// few instances, carry what the held-out rows' labels put there, and a shortened training would
// not forget it. Held-out rows would then score like trained ones, and the cut-off would come out
// too high.
type holdOut struct {
	*Training
	trained int    // sweeps that the training took
	sweeps  int    // most sweeps of a part's training
	parts   []part // their held rows are scored; no row is held twice
}

// part lists the rows to train on, and the rows to score.
type part struct{ rest, held []uint32 }

// If the time allows it, the rows are dealt out to crossParts folds, and each fold is scored by a
// training on the others. Else minParts folds are used. Else one training on four fifths of the
// rows scores the last fifth. Else that training is shortened. The time is estimated from data,
// options and sweeps, not taken from a clock, so equal trainings have equal hold-outs.
//
// A shortened training takes fewer rows. With internal nodes it also makes fewer sweeps, as these
// cost the same whatever the rows. On a share rho of the rows C is multiplied by 1/sqrt(rho).
// With fewer losses a class's scores would be lower, and so would the cut-off. (1/rho, which
// keeps the total weight of the losses, overshoots.)
const (
	crossParts   = 5      // folds, if the time allows
	minParts     = 3      // folds, if it does not allow five
	freeShare    = 0.2    // see FreeSeconds
	maxScored    = 100000 // most rows that are scored
	minTrainRows = 4      // rows that a class keeps when the training rows are cut
	// a shortened training makes this share of the training's sweeps (one in so many),
	treeShare = 4
	minTree   = 2 // at least so many
	maxTree   = 4 // and at most so many
	// after a shortened training at least so many rows may be scored
	minScored = 1000
)

// FreeSeconds is the default of --x cutoff-time, in seconds of one core, or freeShare of the training's
// time, if that is more.
const FreeSeconds = 60

// seconds estimates how long the parts' trainings take on one core.
func (h *holdOut) seconds() (sum float64) {
	for _, s := range h.estimate().SecondsSweep {
		sum += s * float64(max(h.trained, 1))
	}
	return sum
}

// plan chooses the rows. It returns false if there are too few to hold any out.
func (h *holdOut) plan() bool {
	rows, whole, allowed := h.begin()
	if rows < 2*MinHeld {
		return false
	}
	for _, parts := range []int{crossParts, minParts} {
		if rows <= maxScored && whole*float64(parts-1) <= allowed {
			fold := labelset.Folds(h.Set.LabelBegin, h.Set.LabelIndex, len(h.Set.Labels), parts, h.o.Job.Seed)
			for f := range parts {
				rest, held := labelset.Split(fold, f)
				h.parts = append(h.parts, part{rest, held})
			}
			return true
		}
	}
	return h.one(allowed / whole)
}

// begin says how many rows there are, and how many seconds the training took and another may take.
func (h *holdOut) begin() (rows int, whole, allowed float64) {
	whole, allowed = h.seconds(), h.o.CutoffTime
	if allowed == 0 {
		allowed = max(FreeSeconds, freeShare*whole)
	}
	h.sweeps = max(h.trained, 1)
	return h.Set.Matrix.Rows, whole, allowed
}

// one plans a single training of so many times the whole one's time.
func (h *holdOut) one(share float64) bool {
	rows := h.Set.Matrix.Rows
	count := make([]int, len(h.Set.Labels))
	for l, n := range h.Spec.GetData().GetLabelInstances() {
		count[l] = int(n)
	}
	most, part := maxScored, 1.0
	if share < 1-heldShare {
		h.sweeps = 1
		if !registry.Separate(h.o.Job.Method) {
			h.sweeps = min(max(h.trained/treeShare, minTree), maxTree, max(h.trained, 1))
		}
		part = min(share*float64(max(h.trained, 1))/float64(h.sweeps), 1)
		most = max(minScored, int(part*float64(rows)/4))
	}
	labels := func(row int) []uint32 { return h.Set.LabelsOf(uint32(row)) }
	held := labelset.HoldOut(rows, labels, count, heldShare, most, 1, h.o.Job.Seed)
	if len(held) < MinHeld {
		return false
	}
	out := make([]bool, rows)
	for _, r := range held {
		out[r] = true
		for _, l := range h.Set.LabelsOf(r) {
			count[l]--
		}
	}
	unused := func(row int) []uint32 {
		if out[row] {
			return nil
		}
		return labels(row)
	}
	if part < 1 {
		for _, r := range labelset.HoldOut(rows, unused, count, 1-part, rows, minTrainRows, h.o.Job.Seed+1) {
			out[r] = true
		}
	}
	var rest []uint32
	for r, o := range out {
		if !o {
			rest = append(rest, uint32(r))
		}
	}
	h.add(rest, held)
	return true
}

func (h *holdOut) add(rest, held []uint32) { h.parts = append(h.parts, part{rest, held}) }

// options returns those of the training, for some of its rows, with caps that involve no clock.
func (h *holdOut) options(rows int) *taxonv1.Options {
	o := proto.Clone(h.o.Job).(*taxonv1.Options)
	o.EvalEvery, o.MaxSeconds, o.MaxSweeps = 0, 0, uint32(h.sweeps)
	o.C /= math.Sqrt(float64(rows) / float64(h.Set.Matrix.Rows))
	return o
}

// train runs the job on an engine of its own and writes the model to dir.
func (h *holdOut) train(ctx context.Context, rows []uint32, dir string) (err error) {
	rest := h.Set.Subset(rows)
	on, err := h.On(h.ui, h.options(len(rows)), rest, false)
	if err != nil {
		return err
	}
	c := h.engineConfig()
	e, err := engine.Start(engine.Config{
		Slots: c.Slots, Shards: 1, ShardBytes: c.ShardBytes, BadgerDir: c.BadgerDir, NoCache: c.NoCache, Scratch: c.Scratch,
		Open: func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return rest, nil },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	st, err := h.watch(ctx, e, on.Spec)
	if err != nil {
		return err
	}
	_, err = on.WriteModel(ctx, dir, e, st, nil)
	return err
}

// watch submits the job and follows it until it ends.
func (h *holdOut) watch(ctx context.Context, e *engine.Engine, spec *taxonv1.JobSpec) (*taxonv1.JobStatus, error) {
	const job = "hold-out"
	p := h.ui.Start("train without the held-out instances: sweep", 0)
	defer p.Done()
	if _, err := e.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Spec: spec, Job: job}); err != nil {
		return nil, engine.StripStatus(err)
	}
	st, err := jobs.Watch(ctx, e.Jobs, job, 0, func(st *taxonv1.JobStatus) error {
		h.show(p, st, "")
		return nil
	})
	if err == nil && st.GetState() != taxonv1.JobState_JOB_STATE_DONE {
		err = Failed(st)
	}
	return st, engine.StripStatus(err)
}
