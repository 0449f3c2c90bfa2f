package badger

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"taxon/store"
	"taxon/store/segment"
)

// item identifies a value within a step.
type item struct {
	task, attempt uint32
	name          string
}

// itemOf returns the item of a key.
func itemOf(k store.Key) item { return item{k.Task, k.Attempt, k.Name} }

// place is where a value is in a segment.
type place struct {
	file *segment.File
	// offset is where the data begin.
	offset int64
	bytes  uint64
	crc32c uint32
}

// end returns the offset after the value.
func (p place) end() int64 { return p.offset + int64(p.bytes) }

// step holds what a shard knows about a step that has segments.
type step struct {
	job    string
	number uint32

	// mu guards the fields below.
	mu sync.Mutex
	// files are the segments by number. Only the last one may be writable.
	files []*segment.File
	// heads are the places of values whose heads are not in Badger.
	heads map[item]place
	// stored says that Badger may have heads of the step as well. A head in the map takes
	// precedence.
	stored bool
}

// key returns the key of a value of the step.
func (s *step) key(it item) store.Key {
	return store.Key{Job: s.job, Step: s.number, Task: it.task, Attempt: it.attempt, Name: it.name}
}

// keys lists the values in heads, in order. The caller holds mu.
func (s *step) keys() []store.Key {
	out := make([]store.Key, 0, len(s.heads))
	for it := range s.heads {
		out = append(out, s.key(it))
	}
	slices.SortFunc(out, store.Key.Compare)
	return out
}

// table holds the steps that have segments.
type table struct {
	// mu guards the fields up to next.
	mu    sync.Mutex
	steps map[string]map[uint32]*step
	files map[uint64]*segment.File
	// next is the number of the next segment.
	next uint64

	// waiting is the number of heads that are not in Badger, and bytes the size of their values.
	waiting atomic.Int64
	bytes   atomic.Int64
}

// newTable returns an empty table.
func newTable() *table {
	return &table{steps: map[string]map[uint32]*step{}, files: map[uint64]*segment.File{}, next: 1}
}

// find returns a step, or nil if it has no segment.
func (t *table) find(job string, number uint32) *step {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.steps[job][number]
}

// findOrMake returns a step, and makes it if needed.
func (t *table) findOrMake(job string, number uint32) *step {
	t.mu.Lock()
	defer t.mu.Unlock()
	steps := t.steps[job]
	if steps == nil {
		steps = map[uint32]*step{}
		t.steps[job] = steps
	}
	st := steps[number]
	if st == nil {
		st = &step{job: job, number: number, heads: map[item]place{}}
		steps[number] = st
	}
	return st
}

// file returns an open segment, or nil if there is none with that number.
func (t *table) file(number uint64) *segment.File {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files[number]
}

// add adds a segment.
func (t *table) add(f *segment.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files[f.Number] = f
	t.next = max(t.next, f.Number+1)
}

// number returns the number of a new segment.
func (t *table) number() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	return t.next - 1
}

// of lists the steps of a job in order. If job is empty, it lists the steps of all jobs.
func (t *table) of(job string) []*step {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*step
	for name, steps := range t.steps {
		if job != "" && name != job {
			continue
		}
		for _, st := range steps {
			out = append(out, st)
		}
	}
	slices.SortFunc(out, func(a, b *step) int {
		return cmp.Or(cmp.Compare(a.job, b.job),
			cmp.Compare(a.number, b.number))
	})
	return out
}

// any reports whether some step has a value.
func (t *table) any() bool {
	for _, st := range t.of("") {
		st.mu.Lock()
		n := len(st.heads)
		st.mu.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

// remove removes a step and its segments. Nobody else may use them.
func (t *table) remove(st *step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range st.files {
		delete(t.files, f.Number)
	}
	for it := range st.heads {
		t.drop(st, it)
	}
	delete(t.steps[st.job], st.number)
	if len(t.steps[st.job]) == 0 {
		delete(t.steps, st.job)
	}
}

// close closes the segments.
func (t *table) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	for _, f := range t.files { // in any order
		err = errors.Join(err, f.Close())
	}
	return err
}

// set records where a value of a step is. The caller holds the step's mu.
func (t *table) set(st *step, it item, p place) {
	t.drop(st, it)
	st.heads[it] = p
	t.waiting.Add(1)
	t.bytes.Add(int64(p.bytes))
}

// drop removes a value of a step. The caller holds the step's mu.
func (t *table) drop(st *step, it item) {
	if p, ok := st.heads[it]; ok {
		delete(st.heads, it)
		t.waiting.Add(-1)
		t.bytes.Add(-int64(p.bytes))
	}
}
