package recursive

import (
	"context"
	"slices"
	"sync"

	"taxon/internal/coupling"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
	"taxon/store"
)

// vectorCache keeps the last few assembled vectors by what they were read from, and
// lets concurrent tasks wait for one another's reading.
type vectorCache struct {
	mu    sync.Mutex
	size  int
	order []string
	items map[string]*cached
}

type cached struct {
	ready chan struct{}
	v     *reducer.Internals
	err   error
}

func newVectorCache(size int) *vectorCache {
	return &vectorCache{size: size, items: map[string]*cached{}}
}

// get returns the vectors under key, made by load at most once at a time.
func (c *vectorCache) get(ctx context.Context, key string, load func() (*reducer.Internals, error)) (*reducer.Internals, error) {
	c.mu.Lock()
	it, ok := c.items[key]
	if !ok {
		it = &cached{ready: make(chan struct{})}
		c.items[key] = it
		c.order = append(c.order, key)
		if len(c.order) > c.size {
			delete(c.items, c.order[0])
			c.order = c.order[1:]
		}
	}
	c.mu.Unlock()
	if !ok {
		it.v, it.err = load()
		if it.err != nil {
			c.forget(key, it)
		}
		close(it.ready)
		return it.v, it.err
	}
	select {
	case <-it.ready:
		if it.err != nil { // the loader's context may have ended, ours did not
			return load()
		}
		return it.v, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *vectorCache) forget(key string, it *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items[key] == it {
		delete(c.items, key)
		c.order = slices.DeleteFunc(c.order, func(k string) bool { return k == key })
	}
}

// recentSteps is how far back values are kept: the vectors of the update before last may
// still be read when a safeguard step redoes an update.
const recentSteps = 5

// recent keeps what this worker wrote lately in decoded form, so that its next tasks need
// not fetch and decode it again. It holds nothing that the store would not give: a value
// that is not here, or was written elsewhere, is read from there.
type recent struct {
	mu    sync.Mutex
	steps map[uint32]map[store.Key]any
}

// keep remembers a value that has been written, and forgets the old ones.
func (r *recent) keep(k store.Key, v any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.steps == nil {
		r.steps = map[uint32]map[store.Key]any{}
	}
	at := r.steps[k.Step]
	if at == nil {
		at = map[store.Key]any{}
		r.steps[k.Step] = at
		for step := range r.steps {
			if step+recentSteps < k.Step {
				delete(r.steps, step)
			}
		}
	}
	at[k] = v
}

// get returns the value kept under k; nil: none is.
func (r *recent) get(k store.Key) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps[k.Step][k]
}

// blocks keeps what this worker last wrote for each block: the block's next task, which
// mostly comes back here, reads the state, and the reducers read the contributions until
// the block is solved again.
type blocks struct {
	mu sync.Mutex
	of map[uint32]solvedBlock
}

// solvedBlock is what a MAP task wrote, as decoding gives it.
type solvedBlock struct {
	at    taxonv1.Place
	state *mapper.State
	parts [][]coupling.Contribution // by feature range
}

func (s *blocks) keep(block uint32, b solvedBlock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[uint32]solvedBlock{}
	}
	s.of[block] = b
}

// get returns what the task at a place wrote for a block, if that is kept; what was written
// before it is forgotten.
func (s *blocks) get(block uint32, at taxonv1.Place) (solvedBlock, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.of[block]
	if ok && b.at.Step < at.Step { // another worker has solved the block since
		delete(s.of, block)
	}
	return b, ok && b.at == at
}

// scratchPool keeps the scratch of tasks that have ended for the next ones: as many as ran at a
// time. A sync.Pool would not do: it is emptied by garbage collections, and a scratch is
// megabytes of pages and a walk down the tree.
type scratchPool struct {
	make func() *scratch
	mu   sync.Mutex
	free []*scratch
}

func (s *scratchPool) take() *scratch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		last := s.free[n-1]
		s.free = s.free[:n-1]
		return last
	}
	return s.make()
}

func (s *scratchPool) put(c *scratch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, c)
}
