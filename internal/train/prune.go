package train

import (
	"context"
	"os"

	"taxon/internal/engine"
	"taxon/internal/exit"
	"taxon/internal/model"
	taxonv1 "taxon/proto/taxon/v1"
)

// publish writes the model that is kept, whole, or pruned with --threshold: to its place, or to
// the working folder while it lacks its cut-offs.
func (t *Training) publish(ctx context.Context, e *engine.Engine, st *taxonv1.JobStatus, trace []model.TraceRow) (*model.Report, error) {
	to := t.o.Out
	if t.wantsCutoffs() {
		to = t.work.finished()
	}
	if t.o.Threshold == 0 {
		return t.WriteModel(ctx, to, e, st, trace)
	}
	whole := t.work.Join("whole")
	defer os.RemoveAll(whole)
	report, err := t.WriteModel(ctx, whole, e, st, trace)
	if err != nil {
		return nil, err
	}
	m, err := model.Open(whole)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if _, err := m.WritePruned(ctx, to, model.PruneOptions{Threshold: t.o.Threshold}, t.o.slots()); err != nil {
		return nil, err
	}
	return report, nil
}

// prunedAlike refuses a finished model that was pruned in another way than is asked for now.
func (t *Training) prunedAlike(m *model.Manifest) error {
	have := 0.0
	if m.Pruned != nil {
		have = m.Pruned.Threshold
	}
	if have != t.o.Threshold {
		return exit.Usagef("%s: holds a model of threshold %g, not %g: choose another --out, or use --force to replace it", t.o.Out, have, t.o.Threshold)
	}
	return nil
}
