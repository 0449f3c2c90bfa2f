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

func itemOf(k store.Key) item { return item{k.Task, k.Attempt, k.Name} }

// place is where a value is in a segment.
type place struct {
	file   *segment.File
	offset int64 // of the data
	bytes  uint64
	crc32c uint32
}

// end is the least size of the file.
func (p place) end() int64 { return p.offset + int64(p.bytes) }

// step is what a shard knows about a step that has segments.
type step struct {
	job    string
	number uint32

	mu    sync.Mutex      // guards what follows
	files []*segment.File // by number; only the last one may be writable
	heads map[item]place  // of values whose heads are not in Badger
	// stored: Badger may have heads of the step, too. A head in the map takes precedence.
	stored bool
}

func (s *step) key(it item) store.Key {
	return store.Key{Job: s.job, Step: s.number, Task: it.task, Attempt: it.attempt, Name: it.name}
}

// keys lists the values in heads; the caller holds mu.
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
	mu    sync.Mutex // guards what follows
	steps map[string]map[uint32]*step
	files map[uint64]*segment.File
	next  uint64 // number of the next segment

	waiting atomic.Int64 // heads that are not in Badger
	bytes   atomic.Int64 // of their values
}

func newTable() *table {
	return &table{steps: map[string]map[uint32]*step{}, files: map[uint64]*segment.File{}, next: 1}
}

// find returns a step; nil: it has no segment.
func (t *table) find(job string, number uint32) *step {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.steps[job][number]
}

// findOrMake returns a step, or makes it.
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

// file returns an open segment; nil: there is none with that number.
func (t *table) file(number uint64) *segment.File {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files[number]
}

// add notes a segment.
func (t *table) add(f *segment.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files[f.Number] = f
	t.next = max(t.next, f.Number+1)
}

// number takes the number of a new segment.
func (t *table) number() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	return t.next - 1
}

// of lists a job's steps in order; job "": all jobs' steps.
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
	slices.SortFunc(out, func(a, b *step) int { return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.number, b.number)) })
	return out
}

// any says whether a step has a value.
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

// remove forgets a step and its segments. Nobody else may use them.
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

// set records where a value of a step is; the caller holds the step's mu.
func (t *table) set(st *step, it item, p place) {
	t.drop(st, it)
	st.heads[it] = p
	t.waiting.Add(1)
	t.bytes.Add(int64(p.bytes))
}

// drop forgets it; the caller holds the step's mu.
func (t *table) drop(st *step, it item) {
	if p, ok := st.heads[it]; ok {
		delete(st.heads, it)
		t.waiting.Add(-1)
		t.bytes.Add(-int64(p.bytes))
	}
}
