package coordinator

import (
	"slices"
	"sync"
)

// MemoryJournal is a Journal that dies with its process: for tests, and for jobs whose
// durability is a checkpoint. The zero value is empty and ready.
type MemoryJournal struct {
	mu       sync.Mutex
	snapshot []byte
	records  [][]byte
	appended uint64
	size     int64
}

// Append implements Journal.
func (j *MemoryJournal) Append(record []byte) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = append(j.records, slices.Clone(record))
	j.size += int64(len(record))
	j.appended++
	return j.appended
}

// Sync implements Journal.
func (j *MemoryJournal) Sync(uint64) error { return nil }

// Compact implements Journal.
func (j *MemoryJournal) Compact(take func(cut func()) []byte) error {
	snapshot := take(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.records, j.size = nil, 0
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.snapshot = slices.Clone(snapshot)
	return nil
}

// Size implements Journal.
func (j *MemoryJournal) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

// Close implements Journal.
func (j *MemoryJournal) Close() error { return nil }

// Contents returns what a machine is rebuilt from.
func (j *MemoryJournal) Contents() (snapshot []byte, records [][]byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.snapshot), slices.Clone(j.records)
}
