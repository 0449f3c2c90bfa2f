// Package driver runs a training's tasks as MapReduce jobs: it prepares a state folder and a runner
// for the training's engine.
package driver

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"

	"taxon/coordinator/machine"
	"taxon/internal/app/engine"
	"taxon/internal/app/train"
	"taxon/internal/fs"
	"taxon/internal/hadoop/mapreduce"
	"taxon/internal/model/parallel"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// Training runs a training's tasks as MapReduce jobs. It is a train.RemoteRunner.
type Training struct {
	Options mapreduce.Options
	Threads int // of a runner on this machine; 0 stands for all cores
	UI      progress.Reporter

	state   string
	backend *mapreduce.Backend
	moved   func(text string) // of Follow; nil: nobody follows
	done    func()            // removes the copy of the data; nil: there is none
}

// State is the state folder.
func (m *Training) State(keep string) (_ string, err error) {
	m.state, err = m.Options.StateDir(keep)
	return m.state, AboutOptions("train", err)
}

// Configure prepares the engine's backend, which consists of a state folder and a runner.
func (m *Training) Configure(ctx context.Context, t *train.Training, from *engine.Checkpoint,
	c *engine.Config) (job string, err error) {
	o := &m.Options
	data, err := m.data(ctx, t.Dir)
	if err != nil {
		return "", err
	}
	runner, err := o.NewRunner(ctx, t.Spec, data, m.state, parallel.Threads(m.Threads))
	if err != nil {
		return "", AboutOptions("train", err)
	}
	m.backend, err = mapreduce.New(ctx, mapreduce.Config{Dir: m.state, Runner: runner, Maps: o.Maps, Reduces: o.Reduces,
		Note:  m.UI.Warn,
		Began: func(name, id string) { m.UI.Note("%s: Hadoop's %s", name, id) },
		Moved: func(id, text string) {
			if m.moved != nil {
				m.moved(strings.TrimSpace(id + " " + text))
			}
		}})
	if err != nil {
		return "", err
	}
	if from == nil { // left by a run that never reached a checkpoint
		if err := m.backend.Resumed(nil); err != nil {
			return "", err
		}
	}
	plan, err := machine.NewPlan(t.Spec)
	if err != nil {
		return "", err
	}
	c.Backend, c.Slots = m.backend, slotsFor(plan)
	c.Failed = func(err error) { // except what was reported for a whole job
		if !mapreduce.WasReported(err) {
			m.UI.Warn("%v", err)
		}
	}
	return "train", nil
}

// Follow implements train.RemoteRunner.
func (m *Training) Follow(moved func(text string)) { m.moved = moved }

// Refused implements train.RemoteRunner.
func (m *Training) Refused() error { return m.backend.Refused() }

// Ended removes the copy of the data.
func (m *Training) Ended() {
	if m.done != nil {
		m.done()
	}
}

// data returns the folder of the data as the tasks see it. It is the absolute path of the data, or
// of a copy on this machine.
func (m *Training) data(ctx context.Context, dir string) (_ string, err error) {
	if fs.Shared(dir) && m.Options.Runner == mapreduce.RunnerYARN {
		return dir, nil
	}
	if dir, m.done, err = fs.Fetch(ctx, dir); err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// slotsFor returns the number of slots. It is the largest number of tasks that a step can have,
// because all of them are handed out at once.
func slotsFor(plan *taxonv1.Plan) int {
	n := uint64(0)
	for _, list := range plan.GetItems() {
		n += uint64(list.GetCount())
	}
	return int(min(n, math.MaxInt32))
}

// AboutOptions adds the verb to an error about options, which names no path.
func AboutOptions(verb string, err error) error {
	var in *fs.InputError
	if errors.As(err, &in) && in.Path == "" {
		return option.Errorf("%s: %w", verb, err)
	}
	return err
}
