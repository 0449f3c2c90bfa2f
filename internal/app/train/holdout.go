package train

import (
	"context"
	"errors"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"taxon/coordinator/method/registry"
	"taxon/internal/app/engine"
	"taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/model/labelset"
	taxonv1 "taxon/proto/taxon/v1"
)

// holdOut trains on parts of the data, so that the remaining rows can be scored as new rows would
// be.
//
// These trainings start at zero, not at the model. The weights of its internal nodes, and of its
// rare classes, contain information from the held-out rows' labels, which a shortened training
// would not remove. Held-out rows would then score like training rows, and the cut-off would be too
// high.
type holdOut struct {
	*Training
	// trained is the number of sweeps that the whole training took.
	trained int
	// sweeps bounds the sweeps of a part's training.
	sweeps int
	// parts have their held-out rows scored. No row is held out twice.
	parts []part
}

// part lists the rows to train on (rest) and the rows to score (held).
type part struct{ rest, held []uint32 }

// The rows are dealt into crossParts folds if the time allows it, and each fold is scored by a
// training on the others. Otherwise minParts folds are used; otherwise one training on four fifths
// of the rows scores the last fifth; otherwise that training is shortened. The time is estimated
// from data, options and sweeps and not taken from a clock, so that equal trainings have equal
// held-out rows.
//
// A shortened training uses fewer rows. With internal nodes it also makes fewer sweeps, whose cost
// does not depend on the rows. On a fraction rho of the rows C is multiplied by 1/sqrt(rho): with
// the same C the scores of a class, and so the cut-off, would be lower, while 1/rho, which
// preserves the total weight of the losses, overshoots.
const (
	// crossParts is the number of folds if the time allows it.
	crossParts = 5
	// minParts is the number of folds if the time does not allow crossParts.
	minParts = 3
	// freeShare is the fraction of the training's time that FreeSeconds describes.
	freeShare = 0.2
	// maxScored bounds the number of rows that are scored.
	maxScored = 100000
	// minTrainRows is the number of rows that a class keeps when the training rows are sampled.
	minTrainRows = 4
	// treeShare, minTree and maxTree determine the sweeps of a shortened training. It makes one in
	// treeShare of the training's sweeps, but at least minTree and at most maxTree.
	treeShare = 4
	minTree   = 2
	maxTree   = 4
	// minScored is the number of rows that may always be scored after a shortened training.
	minScored = 1000
)

// FreeSeconds is the default bound on the time for cut-offs, in seconds of one core. If the
// fraction freeShare of the training's time is longer, it is the bound instead.
const FreeSeconds = 60

// seconds estimates the time of the parts' trainings on one core.
func (h *holdOut) seconds() (sum float64) {
	for _, s := range h.estimate().SecondsSweep {
		sum += s * float64(max(h.trained, 1))
	}
	return sum
}

// plan chooses the held-out rows. It returns false if there are too few rows to hold any out.
func (h *holdOut) plan() bool {
	rows, whole, allowed := h.begin()
	if rows < 2*MinHeld {
		return false
	}
	for _, parts := range []int{crossParts, minParts} {
		if rows <= maxScored && whole*float64(parts-1) <= allowed {
			fold := Folds(h.Set, parts, registry.Seed(h.o.Job))
			for f := range parts {
				rest, held := labelset.Split(fold, f)
				h.parts = append(h.parts, part{rest, held})
			}
			return true
		}
	}
	return h.one(allowed / whole)
}

// Folds assigns the documents of a set to k folds, and its terms to none, fold -1: they are always
// trained on.
func Folds(set *dataset.Set, k int, seed uint64) []int {
	folds := labelset.Folds(set.LabelBegin[:set.Documents()+1], set.LabelIndex, len(set.Labels), k, seed)
	return append(folds, slices.Repeat([]int{-1}, len(set.Terms))...)
}

// begin returns the number of documents, the seconds that the training took, and the seconds allowed for
// further trainings.
func (h *holdOut) begin() (rows int, whole, allowed float64) {
	whole, allowed = h.seconds(), h.o.CutoffTime
	if allowed == 0 {
		allowed = max(FreeSeconds, freeShare*whole)
	}
	h.sweeps = max(h.trained, 1)
	return h.Set.Documents(), whole, allowed
}

// one plans a single training that takes the fraction share of the whole training's time.
func (h *holdOut) one(share float64) bool {
	rows, count := h.Set.Documents(), h.Set.LabelSizes()
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
	held := labelset.HoldOut(rows, labels, count, heldShare, most, 1, registry.Seed(h.o.Job))
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
		for _, r := range labelset.HoldOut(rows, unused, count, 1-part, rows, minTrainRows, registry.Seed(h.o.Job)+1) {
			out[r] = true
		}
	}
	var rest []uint32
	for r, o := range out {
		if !o {
			rest = append(rest, uint32(r))
		}
	}
	for r := rows; r < h.Set.Matrix.Rows; r++ {
		rest = append(rest, uint32(r))
	}
	h.add(rest, held)
	return true
}

// add appends a part.
func (h *holdOut) add(rest, held []uint32) { h.parts = append(h.parts, part{rest, held}) }

// options returns the options for a training on a number of rows. Its stopping rules use no clock,
// so that it is reproducible.
func (h *holdOut) options(rows int) *taxonv1.Options {
	o := proto.Clone(h.o.Job).(*taxonv1.Options)
	o.Set("eval_every", "")
	o.Set("max_seconds", "")
	o.Set("max_sweeps", h.sweeps)
	if c := registry.Number(o, "C"); c > 0 {
		o.Set("C", c/math.Sqrt(float64(rows)/float64(h.Set.Matrix.Rows)))
	}
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
