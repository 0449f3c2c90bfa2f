package journal

import (
	"errors"
	"fmt"
	"sync"
)

// Group is the part of a Journal that does not depend on the medium. One caller writes what several
// callers have appended. Journals embed it.
type Group struct {
	medium Medium

	// mu guards the fields up to err.
	mu sync.Mutex
	// buffer holds what was appended and not written yet.
	buffer   []byte
	appended uint64
	size     int64
	// err is the first failure. Nothing is acknowledged after it.
	err error

	// flush is held by the caller that writes. It guards synced.
	flush  sync.Mutex
	synced uint64
}

// Medium is the storage of a Group. At most one of its functions runs at a time.
type Medium struct {
	// Write appends entries, and returns when they are durable.
	Write func(entries []byte) error
	// Replace replaces everything by a snapshot, and returns when that is durable.
	Replace func(snapshot []byte) error
	// Close releases the medium.
	Close func() error
	// Lead holds bytes that are written before the entries of each Write.
	Lead []byte
	// Cost is the number of bytes that each Write adds to Size besides the bytes that it writes.
	Cost int64
}

// NewGroup returns a Group for a journal that has grown by size bytes since its last compaction.
func NewGroup(m Medium, size int64) *Group {
	return &Group{medium: m, size: size}
}

// Append implements Journal.
func (j *Group) Append(record []byte) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := len(j.buffer)
	if before == 0 {
		j.buffer = append(j.buffer, j.medium.Lead...)
		j.size += j.medium.Cost
	}
	j.buffer = appendEntry(j.buffer, kindRecord, record)
	j.size += int64(len(j.buffer) - before)
	j.appended++
	return j.appended
}

// Sync implements Journal.
func (j *Group) Sync(number uint64) error {
	j.flush.Lock()
	defer j.flush.Unlock()
	if number <= j.synced {
		return nil
	}
	j.mu.Lock()
	out, upto, err := j.buffer, j.appended, j.err
	j.buffer = nil
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if err := j.medium.Write(out); err != nil {
		return j.fail(err)
	}
	j.synced = upto
	return nil
}

// fail remembers a failure, after which nobody knows what was written.
func (j *Group) fail(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = fmt.Errorf("journal: %w", err)
	return j.err
}

// Compact implements Journal.
func (j *Group) Compact(take func(cut func()) []byte) error {
	j.flush.Lock()
	defer j.flush.Unlock()
	j.mu.Lock()
	err := j.err
	j.mu.Unlock()
	if err != nil {
		return err
	}
	var upto uint64
	snapshot := take(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.buffer, j.size, upto = nil, 0, j.appended // the snapshot holds what was in the buffer
	})
	if err := j.medium.Replace(snapshot); err != nil {
		return j.fail(err)
	}
	j.synced = upto
	return nil
}

// Size implements Journal.
func (j *Group) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

// Close implements Journal. It writes what was appended and closes the medium.
func (j *Group) Close() error {
	j.mu.Lock()
	upto := j.appended
	j.mu.Unlock()
	err := j.Sync(upto)
	j.flush.Lock()
	defer j.flush.Unlock()
	return errors.Join(err, j.medium.Close())
}
