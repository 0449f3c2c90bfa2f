package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"golang.org/x/sync/errgroup"

	"taxon/internal/engine"
	"taxon/internal/fs"
	"taxon/internal/tune"
)

// The naive sum is what the grid costs without a search: the CPU seconds of training every
// one of its points on every fold, each alone and from nothing, to the same gap. What it
// is compared with, tuned.CPU, is all that the search trained. Ingest, predictions and
// measures are in neither.

// coldResult is the training of a point on a fold from nothing, kept in pointsDir.
type coldResult struct {
	tune.Point
	Fold       int     `json:"fold"`
	CPUSeconds float64 `json:"cpu_seconds"`
	StoppedBy  string  `json:"stopped_by"`
}

// naive trains what the search has not trained from nothing, and adds everything up.
func (s *search) naive(ctx context.Context, race *race, r *tuned) error {
	n := &naive{search: s}
	s.line.Done()
	s.done, s.old, s.total = 0, 0, race.trainings()*s.o.tries()
	s.line = s.a.ui.Start("tune: training from nothing, to compare", int64(s.total))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallelPaths)
	for f := range s.o.tries() {
		for _, path := range race.paths {
			group.Go(func() error { return n.path(within, path, f) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.Cold = &n.sum
	return nil
}

type naive struct {
	*search
	sum float64 // guarded by search.mu
}

func (n *naive) path(ctx context.Context, path []*rung, f int) error {
	d := n.take(f)
	defer n.release(f)
	for _, g := range path {
		seconds, old, err := n.cold(ctx, d, g)
		if err != nil {
			return err
		}
		n.mu.Lock()
		n.sum += seconds
		n.mu.Unlock()
		n.advance(1, old)
	}
	return nil
}

// cold is what a rung costs from nothing on a fold; old: it was known.
func (n *naive) cold(ctx context.Context, d *foldData, g *rung) (seconds float64, old bool, err error) {
	for _, p := range g.racers {
		if d.fold < len(p.results) && p.results[d.fold] != nil && p.results[d.fold].From == nil && p.results[d.fold].CPUSeconds > 0 {
			return p.results[d.fold].CPUSeconds, true, nil
		}
	}
	path := n.file(g.base, d.fold, ".cold.json")
	c := &coldResult{}
	data, err := fs.ReadFile(ctx, path)
	switch {
	case err == nil && json.Unmarshal(data, c) == nil && c.Point == g.base:
		return c.CPUSeconds, true, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return 0, false, fs.Explain(path, err)
	}
	t, err := n.foldTraining(g.base, d)
	if err != nil {
		return 0, false, err
	}
	job, st, err := n.train(ctx, t, path, "")
	if err != nil {
		return 0, false, err
	}
	if err := n.engine.Discard(ctx, job); err != nil {
		return 0, false, engine.Plain(err)
	}
	*c = coldResult{g.base, d.fold, st.GetCpuSeconds(), st.GetStoppedBy()}
	err = writeJSON(path, c)
	_ = fs.RemoveAll(n.checkpoint(job))
	return c.CPUSeconds, false, err
}
