// Package memory is a store shard in memory: bounded, volatile, fast.
//
// Values are kept as the slices that were put, without a copy, and are handed out
// the same way. Their checksums are verified at each read all the same. That finds
// callers that change a value, and failing memory.
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

// overheadBytes is what a value costs beside its data: map entry, key, slice
// header. Counted so that many tiny values cannot outgrow the budget.
const overheadBytes = 192

// defaultMaxBytes is the budget when Options leaves it out.
const defaultMaxBytes = 2 << 30

// Options of a shard; the zero value means the defaults.
type Options struct {
	MaxBytes uint64 // budget for all values with their overhead; default 2 GiB
	Limits   store.Limits
}

// Store is a store.Shard in memory. Make it with New.
type Store struct {
	maxBytes uint64
	limits   store.Limits

	mu    sync.RWMutex
	jobs  map[string]map[uint32]step // nil: closed
	bytes uint64                     // data and overhead of all values
}

var _ store.Shard = (*Store)(nil)

type item struct {
	task, attempt uint32
	name          string
}

type entry struct {
	data   []byte // never nil
	crc32c uint32
}

type step map[item]entry

// New makes an empty shard.
func New(o Options) *Store {
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	return &Store{maxBytes: o.MaxBytes, limits: o.Limits.WithDefaults(), jobs: map[string]map[uint32]step{}}
}

// Limits are those that the shard enforces.
func (s *Store) Limits() store.Limits { return s.limits }

// Bytes is what counts against the budget at the moment.
func (s *Store) Bytes() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.bytes
}

// Room is what of the budget is left, in bytes; with less than reserve no write is taken.
// Zeros: there is no budget.
func (s *Store) Room() (free, reserve uint64, err error) {
	if s.maxBytes == 0 {
		return 0, 0, nil
	}
	return s.maxBytes - min(s.Bytes(), s.maxBytes), 1, nil
}

// Put stores the values' slices themselves; see store.Store.
func (s *Store) Put(ctx context.Context, values []store.Value) error {
	summed, err := s.limits.SumPut(values)
	if err != nil {
		return err
	}
	return s.insert(ctx, summed)
}

// PutChecksummed is Put of values that bring their checksums.
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
		return &store.KeyError{Op: "put", Key: v.Key, Err: fmt.Errorf("%w: %d bytes more than the %d left of %d: raise the memory budget or drop old steps",
			store.ErrFull, cost-(s.maxBytes-s.bytes), s.maxBytes-s.bytes, s.maxBytes)}
	}
	st[it] = entry{data, v.CRC32C}
	s.bytes += cost
	return nil
}

// step finds or makes the map of a step; the caller holds the lock.
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

// prune forgets a step that stayed empty; the caller holds the lock.
func (s *Store) prune(job string, n uint32) {
	if len(s.jobs[job][n]) == 0 {
		delete(s.jobs[job], n)
	}
	if len(s.jobs[job]) == 0 {
		delete(s.jobs, job)
	}
}

// sameBytes refuses another value than the one that is there, going by what was
// stored under the key: its size and checksum, and the bytes if they are whole.
func sameBytes(old entry, v *store.Checksummed) error {
	if old.crc32c == v.CRC32C && len(old.data) == len(v.Data) &&
		(bytes.Equal(old.data, v.Data) || store.Checksum(old.data) != old.crc32c) {
		return nil
	}
	return &store.KeyError{Op: "put", Key: v.Key, Err: fmt.Errorf("%w: %d bytes with CRC32C %08x there, %d bytes with %08x sent",
		store.ErrConflict, len(old.data), old.crc32c, len(v.Data), v.CRC32C)}
}

// whole tells whether the entry has the value's very bytes.
func (e entry) whole(v *store.Checksummed) bool { return bytes.Equal(e.data, v.Data) }

// Get returns the kept slices themselves; see store.Store.
func (s *Store) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	return store.Collect(ctx, s, keys)
}

// Read yields the kept slices themselves, as they were at the call; see
// store.Shard.
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

// Commit deletes the step's attempts that do not count; see store.Store.
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

// Drop deletes whole steps; see store.Store.
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

// List yields the values' descriptions in key order; see store.Store.
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

// place is a step of a job.
type place struct {
	job  string
	step uint32
}

// steps lists the steps of a job, or of all, in order.
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

// infos describes the values of a step at this instant, in order: a list's memory is
// that of one step.
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

// Close forgets all values; see store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs, s.bytes = nil, 0
	return nil
}
