package journal

import (
	"slices"
	"sync"
)

// Memory is a Journal that dies with its process: for tests, and for jobs whose
// durability is a checkpoint. The zero value is empty and ready.
type Memory struct {
	mu       sync.Mutex
	snapshot []byte
	records  [][]byte
	appended uint64
	size     int64
}

// Append implements Journal.
func (j *Memory) Append(record []byte) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = append(j.records, slices.Clone(record))
	j.size += int64(len(record))
	j.appended++
	return j.appended
}

// Sync implements Journal.
func (j *Memory) Sync(uint64) error { return nil }

// Compact implements Journal.
func (j *Memory) Compact(take func(cut func()) []byte) error {
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
func (j *Memory) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

// Close implements Journal.
func (j *Memory) Close() error { return nil }

// Contents returns what a machine is rebuilt from.
func (j *Memory) Contents() (snapshot []byte, records [][]byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.snapshot), slices.Clone(j.records)
}
