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
	"taxon/internal/cluster/jobs"
	"taxon/internal/fs"
	"taxon/internal/hadoop/mapreduce"
	"taxon/internal/model"
	"taxon/internal/model/parallel"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// Training runs a training's tasks as MapReduce jobs: a train.Elsewhere.
type Training struct {
	Options mapreduce.Options
	Threads int // for a runner on this machine; 0: all cores
	// gets the progress; without a folder, if nobody submitted the training, its Job is train
	Driver Driver
	UI     progress.Reporter

	state   string
	backend *mapreduce.Backend
	moved   func(text string) // of train.Elsewhere's Follow; nil: nobody follows
	done    func()            // removes the copy of the data; nil: there is none
}

// State is the state folder.
func (m *Training) State(keep string) (_ string, err error) {
	m.state, err = m.Options.StateDir(keep)
	return m.state, AboutOptions("train", err)
}

// Configure prepares the engine's backend: a state folder and a runner.
func (m *Training) Configure(ctx context.Context, t *train.Training, from *engine.Checkpoint,
	c *engine.Config) (job string, err error) {
	o := &m.Options
	if m.Driver.Dir == "" {
		m.Driver.Job = "train"
	}
	data, err := m.data(ctx, t.Dir)
	if err != nil {
		return "", err
	}
	runner, err := o.NewRunner(ctx, t.Spec, data, m.state, parallel.Threads(m.Threads))
	if err != nil {
		return "", AboutOptions("train", err)
	}
	m.backend, err = mapreduce.New(ctx, mapreduce.Config{Dir: m.state, Runner: runner, Maps: o.Maps, Reduces: o.Reduces,
		Note: m.UI.Warn, Accepted: m.Driver.Accepted,
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
	return m.Driver.Job, nil
}

// Follow implements train.Elsewhere.
func (m *Training) Follow(moved func(text string)) { m.moved = moved }

func (m *Training) Refused() error                 { return m.backend.Refused() }
func (m *Training) Started(e *engine.Engine) error { return m.Driver.Listen(e.RegisterJobs) }
func (m *Training) Resumed(job string)             { m.Driver.Rename(job) }
func (m *Training) Saw(st *taxonv1.JobStatus)      { m.Driver.Saw(st) }

// Ended removes the copy of the data, and reports the outcome to the submitter.
func (m *Training) Ended(report *model.Report, err error) {
	if m.done != nil {
		m.done()
	}
	m.Driver.End(EndedDocument(report, err))
}

// data is the folder of the data as the tasks see it: its absolute path, or a copy on this
// machine.
func (m *Training) data(ctx context.Context, dir string) (_ string, err error) {
	if fs.Shared(dir) && m.Options.Runner == mapreduce.RunnerYARN {
		return dir, nil
	}
	if dir, m.done, err = fs.Fetch(ctx, dir); err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// slotsFor is the number of slots: as many as a step can have tasks, as all are handed out at
// once.
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

// EndedDocument makes the document about an ended job for a driver's folder.
func EndedDocument(report *model.Report, err error) func(string, *taxonv1.JobStatus) any {
	return func(job string, last *taxonv1.JobStatus) any {
		doc := jobs.StatusOf(last)
		doc.Job, doc.State, doc.Error, doc.Report = job, jobs.StateName(taxonv1.JobState_JOB_STATE_DONE), "", report
		if err != nil {
			doc.State, doc.Error = jobs.StateName(taxonv1.JobState_JOB_STATE_FAILED), format.OneLine(err.Error())
		}
		if jobs.IsCancelled(err) || errors.Is(err, jobs.ErrInterrupted) {
			doc.State, doc.Error = jobs.StateName(taxonv1.JobState_JOB_STATE_CANCELLED), ""
		}
		return doc
	}
}
