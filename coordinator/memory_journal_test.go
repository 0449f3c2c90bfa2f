package coordinator_test

import (
	"slices"
	"sync"
)

// memoryJournal is a journal that dies with its process. The zero value is empty and ready.
type memoryJournal struct {
	mu       sync.Mutex
	snapshot []byte
	records  [][]byte
	appended uint64
	size     int64
}

func (j *memoryJournal) Append(record []byte) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = append(j.records, slices.Clone(record))
	j.size += int64(len(record))
	j.appended++
	return j.appended
}

func (j *memoryJournal) Sync(uint64) error { return nil }

func (j *memoryJournal) Compact(take func(cut func()) []byte) error {
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

func (j *memoryJournal) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

func (j *memoryJournal) Close() error { return nil }

// Contents returns what a machine is rebuilt from.
func (j *memoryJournal) Contents() (snapshot []byte, records [][]byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.snapshot), slices.Clone(j.records)
}
