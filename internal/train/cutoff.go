package train

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"taxon/internal/dataset"
	"taxon/internal/exit"
	"taxon/internal/labelset"
	"taxon/internal/model"
)

// Held-out rows: enough for a regression of a dozen coefficients and for the thresholds of
// frequent classes, few enough to be scored in a small part of that time.
const (
	heldShare = 0.2
	mostHeld  = 2000
	LeastHeld = 20
)

// Bounds of the profiles: twice as many scores as an instance has labels at most.
const (
	leastDepth = 16
	mostDepth  = 256
)

// wantsCutoffs says whether the model is to have cut-offs of its own.
func (t *Training) wantsCutoffs() bool {
	switch t.o.Cutoff {
	case "fit":
		return true
	case "none":
		return false
	}
	return t.Meta().Data.MultiLabel()
}

// complete gives a model that lies in the working folder its cut-offs, and publishes both in
// one step. What comes to nothing here is done again by the same command, without training.
func (t *Training) complete(ctx context.Context, report *model.Report) (*model.Report, error) {
	whole := t.work.finished()
	report, err := t.fitCutoffs(ctx, whole, report)
	if err != nil {
		return nil, err
	}
	return report, model.Publish(whole, t.o.Out)
}

// fitCutoffs fits the cut-offs of the model in dir on a hold-out of its training data, and
// adds them to it. Its weights do not depend on them.
func (t *Training) fitCutoffs(ctx context.Context, dir string, report *model.Report) (*model.Report, error) {
	if !t.wantsCutoffs() {
		return report, nil
	}
	began, cpu := time.Now(), cpuSeconds()
	h := &holdOut{Training: t, sweeps: report.Sweeps}
	if !h.split() {
		t.ui.Warn("too few instances to fit a cut-off on: each instance gets all classes with a score above 0")
		return report, nil
	}
	c, err := h.fit(ctx)
	if ctx.Err() != nil {
		return nil, exit.Interruptedf("interrupted while the label sets' cut-off was fitted: the training is done and kept; to fit it: %s", t.o.Again)
	}
	if err != nil {
		return nil, fmt.Errorf("fit the label sets' cut-off: %w", err)
	}
	return model.AddCutoffs(dir, c, time.Since(began).Seconds(), cpuSeconds()-cpu)
}

// fit trains on the rest, scores the held-out rows and fits.
func (h *holdOut) fit(ctx context.Context) (*labelset.Cutoffs, error) {
	dir := filepath.Join(h.scratch, "holdout")
	defer os.RemoveAll(dir)
	if err := h.train(ctx, dir); err != nil {
		return nil, err
	}
	p, err := h.profiles(ctx, dir)
	if err != nil {
		return nil, err
	}
	return labelset.Fit(p)
}

// ProfileDepth is how many scores of an instance its cut-off is fitted on.
func ProfileDepth(m *model.Model, set *dataset.Set) int {
	return min(m.Terminals(), max(leastDepth, min(mostDepth, 2*int(set.Stats.MaxLabels))))
}

// profiles scores the held-out rows with the model of the rest.
func (h *holdOut) profiles(ctx context.Context, dir string) (*labelset.Profiles, error) {
	m, err := model.Open(dir)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	depth := ProfileDepth(m, h.Set)
	p, err := labelset.NewProfiles(depth, len(m.Labels))
	if err != nil {
		return nil, err
	}
	predictor, err := m.NewPredictor(model.PredictOptions{Rule: model.TopK, Top: depth})
	if err != nil {
		return nil, err
	}
	next := 0
	fill := func(b *model.Batch) error {
		for ; !b.Full(); next++ {
			if next == len(h.held) {
				return io.EOF
			}
			b.Add(h.Set.Matrix.Row(int(h.held[next])))
		}
		return nil
	}
	line := h.ui.Start("score the held-out instances", int64(len(h.held)))
	defer line.Done()
	scores, classes := make([]float64, depth), make([]int32, depth)
	var truth []int32
	return p, predictor.Stream(ctx, h.o.slots(), fill, func(b *model.Batch, r *model.Result) error {
		for i := range b.Rows() {
			for k, s := range r.Best(i) {
				scores[k], classes[k] = s.Score, m.Tree.Label[s.Node]
			}
			truth = truth[:0]
			for _, l := range h.labelsOf(int(h.held[int(b.First)+i])) {
				truth = append(truth, int32(l))
			}
			if err := p.Add(scores, classes, truth); err != nil {
				return err
			}
		}
		line.Set(b.First + int64(b.Rows()))
		return nil
	})
}
