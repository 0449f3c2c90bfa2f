package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
	"taxon/worker"
	"taxon/worker/program"
)

// toyStore holds one number per (job, step, task, attempt): the hash of everything that
// the attempt read. A result that depends on who ran what, or that reads a value too
// early, too late or of the wrong attempt, ends in other final numbers.
type toyStore struct {
	mu        sync.Mutex
	values    map[toyKey]uint64
	committed map[string][]uint32 // job/step -> attempts
	commits   int
	drops     int
	failures  int // so many of the next calls fail
}

type toyKey struct {
	job                 string
	step, task, attempt uint32
}

func newToyStore() *toyStore {
	return &toyStore{values: map[toyKey]uint64{}, committed: map[string][]uint32{}}
}

var errToyStore = errors.New("toy store is away")

func (s *toyStore) away() bool {
	if s.failures > 0 {
		s.failures--
		return true
	}
	return false
}

func (s *toyStore) Commit(_ context.Context, job string, step uint32, attempts []uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away() {
		return errToyStore
	}
	s.commits++
	s.committed[fmt.Sprintf("%s/%d", job, step)] = attempts
	for k := range s.values {
		if k.job == job && k.step == step && (int(k.task) >= len(attempts) || attempts[k.task] != k.attempt) {
			delete(s.values, k)
		}
	}
	return nil
}

func (s *toyStore) Drop(_ context.Context, job string, keep []uint32, before uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away() {
		return errToyStore
	}
	s.drops++
	for k := range s.values {
		if k.job == job && k.step < before && !slices.Contains(keep, k.step) {
			delete(s.values, k)
		}
	}
	return nil
}

func (s *toyStore) read(job string, p taxonv1.Place) (uint64, error) {
	if p.Step == 0 {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[toyKey{job, p.Step, p.Task, p.Attempt}]
	if !ok {
		return 0, program.Deterministic(fmt.Errorf("job %s: no value at %+v", job, p))
	}
	return v, nil
}

func (s *toyStore) write(l *taxonv1.Lease, v uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[toyKey{l.Job, l.Step, l.Task, l.Attempt}] = v
}

// steps lists the steps of a job that the store still holds.
func (s *toyStore) steps(job string) []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []uint32
	for k := range s.values {
		if k.job == job {
			out = append(out, k.step)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// copySteps takes what a checkpoint keeps.
func (s *toyStore) copySteps(job string, keep []uint32) *toyStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := newToyStore()
	for k, v := range s.values {
		if k.job == job && slices.Contains(keep, k.step) {
			out.values[k] = v
		}
	}
	return out
}

// weights are the final numbers of a job.
func (s *toyStore) weights(st *taxonv1.JobStatus) ([]uint64, error) {
	var out []uint64
	for task, attempt := range st.FinalAttempts {
		v, err := s.read(st.Job, taxonv1.Place{Step: st.FinalStep, Task: uint32(task), Attempt: attempt})
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// run is the toy's mapper and reducer: it hashes what the task names and reads.
func (s *toyStore) run(l *taxonv1.Lease) (*taxonv1.Sums, error) {
	h := fnv.New64a()
	say := func(v ...any) { fmt.Fprintln(h, v...) }
	var err error
	read := func(places ...taxonv1.Place) {
		for _, p := range places {
			v, e := s.read(l.Job, p)
			err = errors.Join(err, e)
			say(v)
		}
	}
	say(l.Op, l.Items, l.Item, l.Sweep, l.Seed, string(l.Params))
	for _, in := range l.Inputs {
		say(in.Value, in.Back)
		read(in.Refs.Expand()...)
	}
	if err != nil {
		return nil, err
	}
	s.write(l, h.Sum64())
	return &taxonv1.Sums{Values: machinetest.Sums(l)}, nil
}

// Run makes a toyStore a worker.Executor.
func (s *toyStore) Run(ctx context.Context, _ *taxonv1.JobResult,
	l *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	if err := ctx.Err(); err != nil {
		return nil, worker.Stats{}, err
	}
	sums, err := s.run(l)
	return sums, worker.Stats{CPUSeconds: 0.001}, err
}
