package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"golang.org/x/sync/errgroup"

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
	for _, path := range race.paths {
		n.points += len(path)
	}
	s.line.Done()
	s.line = s.a.ui.Start("tune: training from nothing, to compare", int64(n.points*s.o.folds))
	s.done = 0
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallelPaths)
	for f := range s.o.folds {
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
	points int
	sum    float64 // guarded by search.mu
}

func (n *naive) path(ctx context.Context, path []*racer, f int) error {
	d := n.take(f)
	defer n.release(f)
	for _, p := range path {
		seconds, err := n.cold(ctx, d, p)
		if err != nil {
			return err
		}
		n.mu.Lock()
		n.sum += seconds
		n.mu.Unlock()
		n.advance(1)
	}
	return nil
}

// cold is what a point costs from nothing on a fold.
func (n *naive) cold(ctx context.Context, d *foldData, p *racer) (float64, error) {
	if d.fold < len(p.results) && p.results[d.fold].From == nil {
		return p.results[d.fold].CPUSeconds, nil
	}
	path := n.file(p.point, d.fold, ".cold.json")
	c := &coldResult{}
	data, err := os.ReadFile(path)
	switch {
	case err == nil && json.Unmarshal(data, c) == nil && c.Point == p.point:
		return c.CPUSeconds, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return 0, fs.Explain(path, err)
	}
	t, err := n.foldTraining(p.point, d)
	if err != nil {
		return 0, err
	}
	job, st, err := n.train(ctx, t, nil)
	if err != nil {
		return 0, err
	}
	if err := n.engine.Discard(ctx, job); err != nil {
		return 0, plainStatus(err)
	}
	*c = coldResult{p.point, d.fold, st.GetCpuSeconds(), st.GetStoppedBy()}
	return c.CPUSeconds, writeJSON(path, c)
}
