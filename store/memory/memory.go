// Package memory provides a store shard in memory, which is bounded, volatile and fast. New is its
// entry point.
//
// Values are kept as the slices that were put, without a copy, and are returned the same way. Their
// checksums are verified at each read nevertheless, which finds callers that change a value, and
// failing memory.
package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"taxon/store"
)

// overheadBytes is what a value costs besides its data: map entry, key, slice header. It is counted
// so that many tiny values can't outgrow the budget.
const overheadBytes = 192

// defaultMaxBytes is the default of Options.MaxBytes.
const defaultMaxBytes = 2 << 30

// Options configure a shard. The zero value means the defaults.
type Options struct {
	// MaxBytes is the budget for all values and their overhead, in bytes. Zero stands for 2 GiB.
	MaxBytes uint64

	// Limits bound single requests.
	Limits store.Limits
}

// Store is a store.Shard in memory. New makes one.
type Store struct {
	maxBytes uint64
	limits   store.Limits

	mu sync.RWMutex
	// jobs holds the steps of each job. It is nil once the store is closed.
	jobs map[string]map[uint32]step
	// bytes is the data and overhead of all values.
	bytes uint64
}

var _ store.Shard = (*Store)(nil)

// item is a key within a step.
type item struct {
	task, attempt uint32
	name          string
}

// entry is a stored value. data is never nil.
type entry struct {
	data   []byte
	crc32c uint32
}

// step holds the values of a step.
type step map[item]entry

// New returns an empty shard.
func New(o Options) *Store {
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	return &Store{maxBytes: o.MaxBytes, limits: o.Limits.WithDefaults(), jobs: map[string]map[uint32]step{}}
}

// Limits implements store.Shard.
func (s *Store) Limits() store.Limits { return s.limits }

// Bytes returns what counts against the budget at the moment.
func (s *Store) Bytes() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.bytes
}

// Room returns what is left of the budget, in bytes. Writes are refused while less than reserve is
// free. It returns zeros if there is no budget.
func (s *Store) Room() (free, reserve uint64, err error) {
	if s.maxBytes == 0 {
		return 0, 0, nil
	}
	return s.maxBytes - min(s.Bytes(), s.maxBytes), 1, nil
}

// Put implements store.Store. It keeps the values' slices themselves.
func (s *Store) Put(ctx context.Context, values []store.Value) error {
	summed, err := s.limits.SumPut(values)
	if err != nil {
		return err
	}
	return s.insert(ctx, summed)
}

// PutChecksummed implements store.Shard.
func (s *Store) PutChecksummed(ctx context.Context, values []store.Checksummed) error {
	if err := s.limits.VerifyPut(values); err != nil {
		return err
	}
	return s.insert(ctx, values)
}

// insert adds a batch under one lock. The checksums are known to be right.
func (s *Store) insert(ctx context.Context, values []store.Checksummed) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		return store.ErrClosed
	}
	var st step // of the value before, as batches mostly stay within one
	for i := range values {
		v := &values[i]
		if k := &v.Key; st == nil || k.Step != values[i-1].Key.Step || k.Job != values[i-1].Key.Job {
			st = s.step(k.Job, k.Step)
		}
		if err := s.insertOne(st, v); err != nil {
			s.prune(v.Key.Job, v.Key.Step)
			return err
		}
	}
	return nil
}

// insertOne adds a value, or replaces a damaged one. The caller holds the lock.
func (s *Store) insertOne(st step, v *store.Checksummed) error {
	data := v.Data
	if data == nil {
		data = []byte{}
	}
	it := item{v.Key.Task, v.Key.Attempt, v.Key.Name}
	cost := uint64(len(data)) + overheadBytes
	if old, ok := st[it]; ok {
		if err := sameBytes(old, v); err != nil || old.whole(v) {
			return err
		}
		cost = 0 // in place of a damaged one of the same size
	}
	if cost > s.maxBytes-s.bytes {
		return &store.KeyError{Op: "put", Key: v.Key, Err: fmt.Errorf("%w: %d bytes more than the %d left of %d: raise the "+
			"memory budget or drop old steps",
			store.ErrFull, cost-(s.maxBytes-s.bytes), s.maxBytes-s.bytes, s.maxBytes)}
	}
	st[it] = entry{data, v.CRC32C}
	s.bytes += cost
	return nil
}

// step returns the map of a step, and makes it if needed. The caller holds the lock.
func (s *Store) step(job string, n uint32) step {
	steps := s.jobs[job]
	if steps == nil {
		steps = map[uint32]step{}
		s.jobs[job] = steps
	}
	st := steps[n]
	if st == nil {
		st = step{}
		steps[n] = st
	}
	return st
}

// prune removes a step that has stayed empty. The caller holds the lock.
func (s *Store) prune(job string, n uint32) {
	if len(s.jobs[job][n]) == 0 {
		delete(s.jobs[job], n)
	}
	if len(s.jobs[job]) == 0 {
		delete(s.jobs, job)
	}
}

// sameBytes returns an error if a value differs from the stored one. It compares sizes and
// checksums, and also the bytes if the stored ones are intact.
func sameBytes(old entry, v *store.Checksummed) error {
	if old.crc32c == v.CRC32C && len(old.data) == len(v.Data) &&
		(bytes.Equal(old.data, v.Data) || store.Checksum(old.data) != old.crc32c) {
		return nil
	}
	return &store.KeyError{Op: "put", Key: v.Key, Err: fmt.Errorf("%w: %d bytes with CRC32C %08x there, %d "+
		"bytes with %08x sent",
		store.ErrConflict, len(old.data), old.crc32c, len(v.Data), v.CRC32C)}
}

// whole reports whether the entry holds exactly the bytes of the value.
func (e entry) whole(v *store.Checksummed) bool { return bytes.Equal(e.data, v.Data) }

// Get implements store.Store. It returns the kept slices themselves.
func (s *Store) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	return store.Collect(ctx, s, keys)
}

// Read implements store.Shard. It yields the kept slices themselves, as they were at the call.
func (s *Store) Read(ctx context.Context, keys []store.Key, yield func(i int, v store.Checksummed) error) error {
	if err := s.limits.CheckGet(keys); err != nil {
		return err
	}
	found, err := s.lookUp(keys)
	if err != nil {
		return err
	}
	var size uint64
	for i, e := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		v := store.Checksummed{Key: keys[i], Data: e.data, CRC32C: e.crc32c}
		if e.data != nil {
			if err := v.Verify("get"); err != nil {
				return err
			}
			v.Verified = true
		}
		size += uint64(len(v.Data))
		if err := s.limits.CheckBatch("get", len(keys), size); err != nil {
			return err
		}
		if err := yield(i, v); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// lookUp returns the entries of keys. The entry of a key without a value is zero.
func (s *Store) lookUp(keys []store.Key) ([]entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.jobs == nil {
		return nil, store.ErrClosed
	}
	out := make([]entry, len(keys))
	for i, k := range keys {
		out[i] = s.jobs[k.Job][k.Step][item{k.Task, k.Attempt, k.Name}]
	}
	return out, nil
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, job string, n uint32, attempts []uint32) error {
	if err := store.CheckCommit(job, attempts); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		return store.ErrClosed
	}
	st := s.jobs[job][n]
	for it, e := range st {
		if !store.IsCommitted(attempts, it.task, it.attempt) {
			s.bytes -= uint64(len(e.data)) + overheadBytes
			delete(st, it)
		}
	}
	return nil
}

// Drop implements store.Store.
func (s *Store) Drop(ctx context.Context, what store.DropSpec) (uint64, error) {
	if err := what.Validate(); err != nil {
		return 0, fmt.Errorf("drop: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		return 0, store.ErrClosed
	}
	var values uint64
	for n, st := range s.jobs[what.Job] {
		if !what.Drops(n) {
			continue
		}
		for _, e := range st {
			s.bytes -= uint64(len(e.data)) + overheadBytes
		}
		values += uint64(len(st))
		delete(s.jobs[what.Job], n)
	}
	if len(s.jobs[what.Job]) == 0 {
		delete(s.jobs, what.Job)
	}
	return values, nil
}

// List implements store.Store. It takes the memory of one step's descriptions.
func (s *Store) List(ctx context.Context, job string, yield func(store.Info) error) error {
	if job != "" {
		if err := store.ValidateJob(job); err != nil {
			return fmt.Errorf("list: %w", err)
		}
	}
	steps, err := s.steps(job)
	if err != nil {
		return err
	}
	for _, at := range steps {
		infos, err := s.infos(at)
		if err != nil {
			return err
		}
		for _, in := range infos {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := yield(in); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// place identifies a step of a job.
type place struct {
	job  string
	step uint32
}

// steps lists the steps of a job, or of all jobs, in order.
func (s *Store) steps(job string) ([]place, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.jobs == nil {
		return nil, store.ErrClosed
	}
	var out []place
	for j, steps := range s.jobs {
		if job != "" && j != job {
			continue
		}
		for n := range steps {
			out = append(out, place{j, n})
		}
	}
	slices.SortFunc(out, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.step, b.step))
	})
	return out, nil
}

// infos describes the values of a step as they are now, in order.
func (s *Store) infos(at place) ([]store.Info, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.jobs == nil {
		return nil, store.ErrClosed
	}
	st := s.jobs[at.job][at.step]
	out := make([]store.Info, 0, len(st))
	for it, e := range st {
		k := store.Key{Job: at.job, Step: at.step, Task: it.task, Attempt: it.attempt, Name: it.name}
		out = append(out, store.Info{Key: k, Bytes: uint64(len(e.data)), CRC32C: e.crc32c})
	}
	slices.SortFunc(out, func(a, b store.Info) int { return a.Key.Compare(b.Key) })
	return out, nil
}

// Close implements store.Store. It drops all values.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs, s.bytes = nil, 0
	return nil
}
