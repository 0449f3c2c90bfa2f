package export

import (
	"context"
	"strings"

	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/evaluate"
	"taxon/internal/model/parallel"
	"taxon/internal/model/pruning"
	"taxon/internal/ui/progress"
)

// PruneReport describes the pruning.
type PruneReport struct {
	Threshold float64 `json:"threshold"`
	Values    string  `json:"values"`
	Entries   int64   `json:"entries"`
	// Whole is the number of entries before pruning.
	Whole int64 `json:"-"`
	// MicroF1 and MicroF1Pruned are the micro-F1 on the data before and after, if the threshold was
	// searched.
	MicroF1       *float64 `json:"micro_f1,omitempty"`
	MicroF1Pruned *float64 `json:"micro_f1_pruned,omitempty"`
}

// ModelDir returns the model's folder. It must be empty or missing or, with Force, may hold a
// model.
func (o *Options) ModelDir() (string, error) {
	dir := strings.TrimRight(o.Out, "/")
	if dir == "" {
		dir = o.Out
	}
	if err := model.Replaceable(dir); err != nil {
		return "", err
	}
	if names, _ := fs.ReadDirNames(dir); len(names) > 0 && !o.Force { // Replaceable could list it
		return "", fs.Inputf(dir, 0, "exists already: choose another ‹out›, or use ‹force› to replace it")
	}
	return dir, nil
}

// writePruned writes a pruned model.
func (o *Options) writePruned(ctx context.Context, m *model.Model, r *Report, ui progress.Reporter) error {
	dir, err := o.ModelDir()
	if err != nil {
		return err
	}
	p := pruning.Options{Threshold: o.Threshold, Values: o.Values}
	r.PruneReport = &PruneReport{Values: o.Values, Whole: int64(m.Manifest.Counts.Overrides)}
	if o.Auto {
		s := pruneSearch{ui: ui, m: m, o: o, p: p, trial: dir + ".trial"}
		if err := s.run(ctx); err != nil {
			return err
		}
		p = s.p
		r.MicroF1, r.MicroF1Pruned = &s.cost.MicroF1, &s.cost.Pruned
	}
	man, err := pruning.Write(ctx, m, dir, p, parallel.Threads(o.Threads))
	if err != nil {
		return err
	}
	r.Threshold, r.Entries = p.Threshold, man.Pruned.Entries
	r.Bytes = fs.FolderBytes(dir)
	return nil
}

// pruneSearch finds the largest threshold with which the micro-F1 on the data decreases by at most
// the allowed number of points.
type pruneSearch struct {
	ui progress.Reporter
	m  *model.Model
	o  *Options
	p  pruning.Options
	// trial is the folder for candidate models.
	trial string

	// cost is that of the last candidate.
	cost model.PruneCost
}

// run sets the threshold in p, and its cost.
func (s *pruneSearch) run(ctx context.Context) (err error) {
	if s.cost.MicroF1, err = s.microF1(ctx, s.ui, s.m.Dir); err != nil {
		return err
	}
	line := s.ui.Start("prune: thresholds tried", 0)
	defer line.Done()
	tried := int64(0)
	s.p.Threshold, err = pruning.LargestThreshold(s.m, func(t float64) (float64, error) {
		s.cost.Pruned, err = s.try(ctx, t)
		tried++
		line.Set(tried)
		return 100*(s.cost.MicroF1-s.cost.Pruned) - s.o.Loss, err
	})
	s.p.Cost = &s.cost
	return err
}

// try writes a model pruned at t and measures it.
func (s *pruneSearch) try(ctx context.Context, t float64) (float64, error) {
	if fs.Exists(s.trial) {
		return 0, fs.Inputf(s.trial, 0, "exists, and models are tried there: remove it, or choose another ‹out›")
	}
	defer func() { _ = fs.RemoveAll(s.trial) }()
	p := s.p
	p.Threshold = t
	if _, err := pruning.Write(ctx, s.m, s.trial, p, parallel.Threads(s.o.Threads)); err != nil {
		return 0, err
	}
	return s.microF1(ctx, progress.Discard{}, s.trial)
}

func (s *pruneSearch) microF1(ctx context.Context, ui progress.Reporter, dir string) (float64, error) {
	r, err := evaluate.Run(ctx, evaluate.Options{Model: dir, Data: s.o.Data}, ui)
	if err != nil {
		return 0, err
	}
	if r.MicroF1 == 0 && dir == s.m.Dir {
		return 0, fs.Inputf(fs.Clean(s.o.Data.Path), 0, "the model gets no label right: nothing to measure pruning by; "+
			"give labelled instances of its classes")
	}
	s.cost.Instances = r.Instances
	return r.MicroF1, nil
}
