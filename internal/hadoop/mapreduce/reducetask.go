package mapreduce

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"taxon/store"
)

// Reduce runs a reduce task. For each item whose parts arrive, it runs the coordinator's task of
// that item.
func (t Task) Reduce(ctx context.Context) error {
	out := &reduceStore{}
	return t.try(ctx, out, func(ctx context.Context, a *attempt) error {
		out.a = a
		return a.reduceItems(ctx, out)
	})
}

// reduceItems reads the shuffle, one key's values at a time.
func (a *attempt) reduceItems(ctx context.Context, out *reduceStore) error {
	in := bufio.NewReaderSize(a.Stdin, 1<<20)
	var last []byte
	for {
		key, value, err := readRecord(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the shuffle: %w", err)
		}
		if last != nil && (err != nil || !bytes.Equal(key, last)) {
			if err := a.reduceOne(ctx, out, last); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
		last = key
		if err := out.receive(key, value); err != nil {
			return err
		}
	}
}

// reduceOne runs the task of an item after all its parts have arrived.
func (a *attempt) reduceOne(ctx context.Context, out *reduceStore, key []byte) error {
	r, err := a.itemOfKey(key)
	if err != nil {
		return err
	}
	l := a.run.GetReduces()[r]
	result, err := a.perform(ctx, l)
	if err != nil {
		return err
	}
	if err := out.begin(l.GetStep()); err != nil {
		return err
	}
	out.written.result(result)
	return out.keep()
}

// itemOfKey returns the item in a shuffle key.
func (a *attempt) itemOfKey(key []byte) (int, error) {
	r := slices.IndexFunc(a.run.GetKeys(), func(k []byte) bool { return bytes.Equal(k, key) })
	if r < 0 || r >= len(a.run.GetReduces()) {
		return 0, fmt.Errorf("shuffle: no task has the key %.40q", key)
	}
	return r, nil
}

// reduceStore is the store of a reduce task's trainer. Values from the shuffle are read from it.
type reduceStore struct {
	a        *attempt
	received map[store.Key][]byte
	// written holds the values that the tasks wrote.
	written *segment
	// kept holds received values, for the step that wrote them.
	kept *segment
}

// receive stores a record of the shuffle.
func (s *reduceStore) receive(key, value []byte) error {
	r, err := s.a.itemOfKey(key)
	if err != nil {
		return err
	}
	at, data, err := parsePart(value)
	if err != nil {
		return err
	}
	if s.received == nil {
		s.received = map[store.Key][]byte{}
	}
	k := store.Key{Job: s.a.run.GetJob(), Step: at.Step, Task: at.Task, Attempt: at.Attempt, Name: fmt.Sprintf("%s/%d",
		s.a.family, r)}
	s.received[k] = data
	return nil
}

// Get implements worker.Store.
func (s *reduceStore) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	out := make([][]byte, len(keys))
	var others []store.Key
	var where []int
	for i, k := range keys {
		if d, ok := s.received[k]; ok {
			out[i] = d
			continue
		}
		others, where = append(others, k), append(where, i)
	}
	if len(others) == 0 {
		return out, nil
	}
	found, err := s.a.values.Get(ctx, others)
	if err != nil {
		return nil, err
	}
	for n, i := range where {
		out[i] = found[n]
	}
	return out, nil
}

// Put implements worker.Store.
func (s *reduceStore) Put(_ context.Context, values []store.Value) error {
	for _, v := range values {
		if err := s.begin(v.Key.Step); err != nil {
			return err
		}
		if err := s.written.add(v); err != nil {
			return err
		}
	}
	return nil
}

// begin starts the segment of the tasks' values.
func (s *reduceStore) begin(step uint32) (err error) {
	if s.written == nil {
		s.written, err = newSegment(s.a.file(step, "r"))
	}
	return err
}

// keep writes the received values, if they are wanted, and forgets them.
func (s *reduceStore) keep() error {
	defer clear(s.received)
	if !s.a.run.GetKeep() {
		return nil
	}
	keys := make([]store.Key, 0, len(s.received))
	for k := range s.received {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b store.Key) int { return cmp.Compare(a.Task, b.Task) })
	for _, k := range keys {
		if s.kept == nil {
			var err error
			if s.kept, err = newSegment(s.a.file(k.Step, "v")); err != nil {
				return err
			}
		}
		if err := s.kept.add(store.Value{Key: k, Data: s.received[k]}); err != nil {
			return err
		}
	}
	return nil
}

func (s *reduceStore) commit() error {
	for _, g := range []*segment{s.kept, s.written} {
		if g == nil {
			continue
		}
		if err := g.commit(); err != nil {
			return err
		}
	}
	return nil
}

func (s *reduceStore) abort() {
	for _, g := range []*segment{s.kept, s.written} {
		if g != nil {
			g.abort()
		}
	}
}
