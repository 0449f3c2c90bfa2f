package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"taxon/coordinator/machine"
	"taxon/internal/data/dataset"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/backup"
	"taxon/worker"
	"taxon/worker/program"
)

// Save writes a checkpoint of a finished job in dir with the values that a branch starts from, such
// as duals, but without metrics and weights. See Branch.
func (e *Engine) Save(ctx context.Context, job, dir string) error {
	state, steps, err := e.server.State(job)
	if err != nil {
		return err
	}
	saved, err := machine.ReadState(state)
	if err != nil {
		return err
	}
	from, err := carrier(saved.Spec)
	if err != nil {
		return err
	}
	return writeCheckpoint(ctx, dir, e.Store, backup.Spec{Job: job, Extra: []backup.Extra{{Name: stateFile, Data: state}},
		Keep: func(k store.Key) bool { return slices.Contains(steps, k.Step) && carries(from, k.Name) }})
}

// carrier returns the method of a specification, if its jobs can start where others ended.
func carrier(spec *taxonv1.JobSpec) (program.StateConverter, error) {
	m, err := program.Lookup(spec.GetOptions().GetMethod())
	if err != nil {
		return nil, err
	}
	c, ok := m.(program.StateConverter)
	if !ok {
		return nil, fmt.Errorf("method %s: a training can't begin where another one has ended", m.Name())
	}
	return c, nil
}

// CanBranch reports whether a method's trainings can start where others ended.
func CanBranch(method string) bool {
	_, err := carrier(&taxonv1.JobSpec{Options: &taxonv1.Options{Method: method}})
	return err == nil
}

// carries reports whether a value belongs to a variable that a branch starts from.
func carries(c program.StateConverter, name string) bool {
	family, _, _ := strings.Cut(name, "/")
	return slices.Contains(c.ConvertedFamilies(), family)
}

// Branch starts a job at the state in which the checkpoint's job ended. machine.Branch documents in
// which respects the two may differ. The method's ConvertValue converts the values.
func (e *Engine) Branch(ctx context.Context, c *Checkpoint, job string, spec *taxonv1.JobSpec) error {
	to, err := carrier(spec)
	if err != nil {
		return err
	}
	state, err := machine.Branch(c.State, job, spec, to.ConvertedFamilies())
	if err != nil {
		return err
	}
	saved, err := machine.ReadState(c.State)
	if err != nil {
		return err
	}
	err = c.back.Each(ctx, func(ctx context.Context, values []store.Value) error {
		var converted []store.Value
		for _, v := range values {
			if !carries(to, v.Key.Name) {
				continue
			}
			data, err := to.ConvertValue(v.Key.Name, v.Data, saved.Spec.GetOptions(), spec.GetOptions())
			if err != nil {
				return err
			}
			v.Key.Job = job
			converted = append(converted, store.Value{Key: v.Key, Data: data})
		}
		return e.Store.Put(ctx, converted)
	})
	if err != nil {
		return c.damage(err)
	}
	_, err = e.server.SubmitCheckpoint(state)
	return err
}

// Discard frees the memory of an ended job: its values, and the worker's caches.
func (e *Engine) Discard(ctx context.Context, job string) error {
	_, err := e.Jobs.Cancel(ctx, &taxonv1.CancelRequest{Job: job, Discard: true})
	e.trainer.Forget(job)
	return err
}

// Begin starts a job at given weights, which may come from other data, another C or another
// structure. The method decides which of them it uses (program.WarmStarter).
func (e *Engine) Begin(ctx context.Context, job string, spec *taxonv1.JobSpec, set *dataset.Set,
	from program.InitialWeights) error {
	_, plan, err := machine.WarmStart(job, spec, program.SeedStep, nil)
	if err != nil {
		return err
	}
	values, families, err := worker.WarmStart(ctx, job, &taxonv1.JobResult{Spec: spec, Plan: plan}, set, from)
	if err != nil {
		return err
	}
	state, _, err := machine.WarmStart(job, spec, program.SeedStep, families)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(values, 64) {
		if err := e.Store.Put(ctx, chunk); err != nil {
			return fmt.Errorf("begin job %s: %w", job, err)
		}
	}
	_, err = e.server.SubmitCheckpoint(state)
	return err
}
