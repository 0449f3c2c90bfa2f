package main

import (
	"context"
	"fmt"

	"taxon/internal/dataset"
	"taxon/internal/tune"
	taxonv1 "taxon/proto/taxon/v1"
)

// foldData are the rows of a fold, shared by all trainings on it.
type foldData struct {
	fold  int
	set   *dataset.Set // the rows to train on
	held  []uint32     // the rows left out
	users int
}

// take gives the rows of a fold; release them when done. They are copied out of the
// ingested data once while anyone uses them.
func (s *search) take(fold int) *foldData {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.sets[fold]
	if d == nil {
		rows, held := tune.Split(s.folds, fold)
		d = &foldData{fold: fold, set: s.whole.Set.Subset(rows), held: held}
		s.sets[fold] = d
	}
	d.users++
	return d
}

func (s *search) release(fold int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.sets[fold]; d != nil {
		if d.users--; d.users == 0 {
			delete(s.sets, fold)
		}
	}
}

// dataOf gives the engine the rows of a fold.
func (s *search) dataOf(_ context.Context, d *taxonv1.Data) (*dataset.Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.sets {
		if f.set.Fingerprint == d.GetFingerprint() {
			return f.set, nil
		}
	}
	return nil, fmt.Errorf("no fold has the fingerprint %s", d.GetFingerprint())
}
