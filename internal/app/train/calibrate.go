package train

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"taxon/internal/cluster/jobs"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/calibration"
	"taxon/internal/model/scoring"
)

// Calibrations lists the values of Options.Calibrate.
var Calibrations = append([]string{"none"}, calibration.Kinds...)

// wantsMore reports whether something is fitted or measured on held-out rows after the training.
func (t *Training) wantsMore() bool {
	return t.wantsCutoffs() || t.wantsCalibration() || t.o.ModelSize > 0
}

// wantsCalibration reports whether the options ask for a calibration.
func (t *Training) wantsCalibration() bool { return slices.Contains(calibration.Kinds, t.o.Calibrate) }

// lacksCalibration reports whether a finished model lacks the calibration that the options ask for.
func (t *Training) lacksCalibration(have *calibration.Calibration) bool {
	return t.wantsCalibration() && (have == nil || have.Kind != t.o.Calibrate)
}

// fitRest fits the cut-offs and the calibration that the model in dir still lacks.
func (t *Training) fitRest(ctx context.Context, dir string, report *model.Report,
	have model.Meta) (_ *model.Report, err error) {
	if t.lacksCutoffs(have.Cutoffs) {
		if report, err = t.fitCutoffs(ctx, dir, report); err != nil {
			return nil, err
		}
	}
	if t.lacksCalibration(have.Calibration) {
		return t.calibrate(ctx, dir, report)
	}
	return report, nil
}

// calibrate fits a calibration for the model in dir and adds it to the model. As for cut-offs, the
// rows on which it is fitted were held out of trainings.
func (t *Training) calibrate(ctx context.Context, dir string, report *model.Report) (*model.Report, error) {
	began, cpu := time.Now(), cpuSeconds()
	h := &holdOut{Training: t, trained: report.Sweeps}
	if !h.plan() {
		t.ui.Warn("too few instances to calibrate on: scores stay as they are")
		return report, nil
	}
	c, err := h.calibration(ctx)
	if ctx.Err() != nil {
		return nil, jobs.Interruptedf("interrupted during the calibration: the training is done and kept; to calibrate: %s",
			t.o.Again)
	}
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	return model.AddCalibration(dir, c, time.Since(began).Seconds(), cpuSeconds()-cpu)
}

// calibration trains on the rest of each part, scores the part's held-out rows for all classes, and
// fits. If there are more scores than calibration.MostScores, each part skips rows evenly.
func (h *holdOut) calibration(ctx context.Context) (*calibration.Calibration, error) {
	dir := filepath.Join(h.scratch, "holdout")
	defer fs.RemoveAll(dir)
	held := 0
	for _, part := range h.parts {
		held += len(part.held)
	}
	s := &calibration.Sample{}
	for _, part := range h.parts {
		if err := h.train(ctx, part.rest, dir); err != nil {
			return nil, err
		}
		if err := h.sample(ctx, dir, part.held, held, s); err != nil {
			return nil, err
		}
	}
	return calibration.Fit(s, h.o.Calibrate, h.joint(), calibration.NewWay(h.Tree.Parent), h.Tree.Terminals())
}

// joint reports whether the probabilities of an instance's classes sum to 1.
func (t *Training) joint() bool {
	m := t.Meta()
	return !m.Data.MultiLabel() && !m.Form.Sets()
}

// sample adds to s the scores that the model in dir gives to rows. all is the number of held-out
// rows of all parts.
func (h *holdOut) sample(ctx context.Context, dir string, rows []uint32, all int, s *calibration.Sample) error {
	m, err := model.Open(dir)
	if err != nil {
		return err
	}
	defer m.Close()
	terminals := h.Tree.Terminals()
	s.Classes = len(terminals)
	if every := (all*s.Classes + calibration.MostScores - 1) / calibration.MostScores; every > 1 {
		var some []uint32
		for i := 0; i < len(rows); i += every {
			some = append(some, rows[i])
		}
		rows = some
	}
	place, ofLabel := map[string]int32{}, map[uint32]int32{} // a model trained on a part may lack classes
	for k, n := range terminals {
		place[h.Tree.Name[n]] = int32(k)
		if l := h.Tree.Label[n]; l >= 0 {
			ofLabel[uint32(l)] = int32(k)
		}
	}
	line := h.ui.Start("score the held-out instances", int64(len(rows)))
	defer line.Done()
	scores := make([]float64, s.Classes)
	return Rank(ctx, m, h.Set, rows, m.Terminals(), h.o.slots(), func(i int, best, _ []scoring.Scored) error {
		line.Set(int64(i) + 1)
		for k := range scores {
			scores[k] = best[len(best)-1].Score // a class that it lacks gets the lowest score
		}
		for _, c := range best {
			scores[place[m.Tree.Name[c.Node]]] = c.Score
		}
		var truth []int32
		for _, l := range h.Set.LabelsOf(rows[i]) {
			if k, ok := ofLabel[l]; ok {
				truth = append(truth, k)
			}
		}
		weight := 1.0
		if h.Set.Weight != nil {
			weight = h.Set.Weight[rows[i]]
		}
		s.Add(scores, truth, weight)
		return nil
	})
}
