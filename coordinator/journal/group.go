package journal

import (
	"errors"
	"fmt"
	"sync"
)

// Group is the part of a Journal that does not depend on the medium. One caller writes what
// several callers have appended. Journals embed it.
type Group struct {
	medium Medium

	mu       sync.Mutex // guards what follows
	buffer   []byte     // appended, not yet written
	appended uint64
	size     int64
	err      error // the first failure: nothing is acknowledged after it

	flush  sync.Mutex // held by the one that writes
	synced uint64     // guarded by flush
}

// Medium is the storage of a Group. One of its functions runs at a time.
type Medium struct {
	Write   func(entries []byte) error  // adds what was appended, durably
	Replace func(snapshot []byte) error // leaves nothing but a snapshot, durably
	Close   func() error
	Lead    []byte // what the entries of each Write begin with
	Cost    int64  // what each Write counts for in Size
}

// NewGroup returns a journal that has grown by size bytes since its last compaction.
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

// fail remembers a failure. After it, nobody knows what was written.
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

// Close writes what was appended, and closes the medium.
func (j *Group) Close() error {
	j.mu.Lock()
	upto := j.appended
	j.mu.Unlock()
	err := j.Sync(upto)
	j.flush.Lock()
	defer j.flush.Unlock()
	return errors.Join(err, j.medium.Close())
}
