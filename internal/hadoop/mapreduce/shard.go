package mapreduce

import (
	"context"
	"fmt"
	"slices"

	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// The folder as a store.Shard serves the driver: exports and evaluations read from it, a warm start
// writes to it, and the coordinator drops steps.

// Limits implements store.Shard.
func (b *Backend) Limits() store.Limits { return b.limits }

// Get implements store.Store.
func (b *Backend) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	if err := b.check(b.limits.CheckGet(keys)); err != nil {
		return nil, err
	}
	return b.values.Get(ctx, keys)
}

// Read implements store.Shard.
func (b *Backend) Read(ctx context.Context, keys []store.Key, yield func(i int, v store.Checksummed) error) error {
	data, err := b.Get(ctx, keys)
	if err != nil {
		return err
	}
	for i, d := range data {
		v := store.Checksummed{Key: keys[i], Data: d}
		if d != nil {
			v = store.Sum(store.Value{Key: keys[i], Data: d})
		}
		if err := yield(i, v); err != nil {
			return err
		}
	}
	return nil
}

// PutChecksummed implements store.Shard.
func (b *Backend) PutChecksummed(ctx context.Context, values []store.Checksummed) error {
	plain := make([]store.Value, len(values))
	for i := range values {
		if err := values[i].Verify("put"); err != nil {
			return err
		}
		plain[i] = store.Value{Key: values[i].Key, Data: values[i].Data}
	}
	return b.Put(ctx, plain)
}

// Put implements store.Store. A batch becomes one segment per step.
func (b *Backend) Put(ctx context.Context, values []store.Value) error {
	if err := b.check(b.limits.CheckPut(values)); err != nil {
		return err
	}
	bySteps := map[uint32][]store.Value{}
	var steps []uint32
	for _, v := range values {
		if bySteps[v.Key.Step] == nil {
			steps = append(steps, v.Key.Step)
		}
		bySteps[v.Key.Step] = append(bySteps[v.Key.Step], v)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range steps {
		if err := b.putStep(ctx, s, bySteps[s]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) putStep(ctx context.Context, step uint32, values []store.Value) error {
	if err := fs.MkdirAll(b.dir.step(step)); err != nil {
		return err
	}
	name := newID("put")
	s, err := newSegment(fs.Join(b.dir.step(step), name))
	if err != nil {
		return err
	}
	defer s.abort()
	tasks := make([]uint32, 0, len(values))
	for _, v := range values {
		tasks = append(tasks, v.Key.Task)
		if err := s.add(v); err != nil {
			return err
		}
	}
	if err := s.commit(); err != nil {
		return err
	}
	_, at, err := scanSegment(ctx, s.path)
	if err != nil {
		return err
	}
	defer b.values.forget(step)
	return b.dir.addSegments(ctx, step, []*taxonv1.StepSegment{stepSegment(name, at, tasks, nil)})
}

// stepSegment returns a segment's entry in its step's index.
func stepSegment(name string, at place, tasks, ranges []uint32) *taxonv1.StepSegment {
	slices.Sort(tasks)
	slices.Sort(ranges)
	return &taxonv1.StepSegment{File: name, TableOffset: at.offset, TableBytes: at.bytes, TableCrc32C: at.sum,
		Tasks: slices.Compact(tasks), Ranges: slices.Compact(ranges)}
}

// Commit implements store.Store. Values that were not committed are in no index, so nothing is
// deleted.
func (b *Backend) Commit(_ context.Context, job string, _ uint32, attempts []uint32) error {
	return b.check(store.CheckCommit(job, attempts))
}

// Drop implements store.Store. Steps to which the last checkpoint refers stay until the next one.
func (b *Backend) Drop(_ context.Context, what store.DropSpec) (uint64, error) {
	if err := b.check(what.Validate()); err != nil {
		return 0, err
	}
	b.mu.Lock()
	pinned := b.pinned
	b.mu.Unlock()
	return 0, b.remove(func(step uint32) bool {
		return what.Drops(step) && (what.All || !slices.Contains(pinned, step))
	})
}

// List implements store.Store.
func (b *Backend) List(ctx context.Context, job string, yield func(store.Info) error) error {
	if err := b.check(nil); err != nil {
		return err
	}
	steps, err := b.dir.stepNumbers()
	if err != nil {
		return err
	}
	for _, step := range steps {
		x, err := b.dir.readIndex(ctx, step)
		if err != nil {
			return err
		}
		var all []*taxonv1.SegmentValue
		for _, s := range x.GetSegments() {
			t, _, err := scanSegment(ctx, fs.Join(b.dir.step(step), s.GetFile()))
			if err != nil {
				return err
			}
			all = append(all, t.GetValues()...)
		}
		slices.SortStableFunc(all, compareValues)
		all = slices.CompactFunc(all, func(a, b *taxonv1.SegmentValue) bool { return compareValues(a, b) == 0 })
		for _, v := range all {
			key := store.Key{Job: job, Step: v.GetStep(), Task: v.GetTask(), Attempt: v.GetAttempt(), Name: v.GetName()}
			if err := yield(store.Info{Key: key, Bytes: v.GetBytes(), CRC32C: v.GetCrc32C()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// check returns an error after Close.
func (b *Backend) check(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && b.closed {
		return fmt.Errorf("%s: %w", b.config.Dir, store.ErrClosed)
	}
	return err
}
