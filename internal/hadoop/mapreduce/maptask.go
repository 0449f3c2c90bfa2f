package mapreduce

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Map runs a map task, which consists of the coordinator's tasks in its lines. Values for the
// following reducers go through the shuffle. All others go into a segment.
func (t Task) Map(ctx context.Context) error {
	out := &mapStore{out: newShuffleWriter(t.Stdout)}
	return t.try(ctx, out, func(ctx context.Context, a *attempt) error {
		out.a = a
		return a.mapLines(ctx, out)
	})
}

// mapLines runs the tasks of all lines, Cores at a time.
func (a *attempt) mapLines(ctx context.Context, out *mapStore) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(a.Cores)
	in := bufio.NewReaderSize(a.Stdin, 1<<20)
	for ctx.Err() == nil {
		line, err := in.ReadString('\n')
		if err != nil && err != io.EOF {
			return fmt.Errorf("read the task's input: %w", err)
		}
		leases, bad := parseLine(strings.TrimRight(line, "\r\n"))
		if bad != nil {
			return bad
		}
		for _, l := range leases {
			group.Go(func() error { return a.mapOne(ctx, out, l) })
		}
		if err == io.EOF {
			break
		}
	}
	return group.Wait()
}

func (a *attempt) mapOne(ctx context.Context, out *mapStore, l *taxonv1.Lease) error {
	r, err := a.perform(ctx, l)
	if err != nil {
		return err
	}
	s, err := out.segmentOf(l.GetStep())
	if err == nil {
		s.result(r)
	}
	return err
}

// mapStore is the store of a map task's trainer.
type mapStore struct {
	a   *attempt
	out *shuffleWriter

	mu sync.Mutex
	// segments is by step. The tasks of a line belong to one step.
	segments map[uint32]*segment
}

// Get implements worker.Store.
func (m *mapStore) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	return m.a.values.Get(ctx, keys)
}

// Put implements worker.Store.
func (m *mapStore) Put(_ context.Context, values []store.Value) error {
	for _, v := range values {
		if family, r, ok := partOf(v.Key.Name); ok && family == m.a.family && int(r) < len(m.a.run.GetKeys()) {
			if err := m.out.write(m.a.run.GetKeys()[r], v); err != nil {
				return err
			}
			continue
		}
		s, err := m.segmentOf(v.Key.Step)
		if err == nil {
			err = s.add(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// segmentOf returns the segment of a step, and starts it if necessary.
func (m *mapStore) segmentOf(step uint32) (*segment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.segments[step]; s != nil {
		return s, nil
	}
	s, err := newSegment(m.a.file(step, "m"))
	if err != nil {
		return nil, err
	}
	if m.segments == nil {
		m.segments = map[uint32]*segment{}
	}
	m.segments[step] = s
	return s, nil
}

// commit publishes the segments, after the last byte of the shuffle.
func (m *mapStore) commit() error {
	if err := m.out.flush(); err != nil {
		return err
	}
	for _, s := range m.segments { // one per step, in any order
		if err := s.commit(); err != nil {
			return err
		}
	}
	return nil
}

func (m *mapStore) abort() {
	for _, s := range m.segments {
		s.abort()
	}
}
