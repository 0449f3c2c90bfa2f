package program

import (
	"context"
	"runtime/metrics"
	"slices"
	"sync"

	"taxon/internal/linalg/contribution"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
	"taxon/store"
)

// vectorCache keeps the assembled vectors of the groups used last. If several tasks need the same
// vectors, one of them reads them and the others wait. Vectors that were dropped are read again.
type vectorCache struct {
	mu     sync.Mutex
	most   int            // number of groups kept at most
	groups []*groupCached // least recently used first
}

// groupCached holds the current and the previous vectors of a group.
type groupCached struct {
	group   int
	version [2]*cached
}

// cached is the entry of a key. The vectors are there once ready is closed.
type cached struct {
	key   string
	ready chan struct{}
	v     *reducer.Internals
	err   error
}

// get returns the vectors of a group under key. These are the current ones or, if back is 1, the
// previous ones. If they are not cached, one caller at a time calls load. When current vectors
// arrive, the old current ones become the previous ones.
func (c *vectorCache) get(ctx context.Context, group int, back uint32, key string, load func() (*reducer.Internals,
	error)) (*reducer.Internals, error) {
	it, ok := c.find(group, back, key)
	if !ok {
		it.v, it.err = load()
		if it.err != nil {
			c.forget(it)
		}
		close(it.ready)
		return it.v, it.err
	}
	select {
	case <-it.ready:
		if it.err != nil { // the loader's context may have ended, but not ours
			return load()
		}
		return it.v, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// find returns the entry of a key. If there is none, it creates one, which the caller must fill,
// and returns false.
func (c *vectorCache) find(group int, back uint32, key string) (it *cached, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.groups, func(g *groupCached) bool { return g.group == group })
	g := &groupCached{group: group}
	if at >= 0 {
		g = c.groups[at]
		c.groups = slices.Delete(c.groups, at, at+1)
	} else if len(c.groups) == c.most {
		c.groups = slices.Delete(c.groups, 0, 1)
	}
	c.groups = append(c.groups, g)
	for _, it := range g.version {
		if it != nil && it.key == key {
			return it, true
		}
	}
	it = &cached{key: key, ready: make(chan struct{})}
	if back == 0 {
		g.version[1] = g.version[0]
	}
	g.version[back] = it
	return it, false
}

// drop removes a group's previous vectors.
func (c *vectorCache) drop(group int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		if g.group == group {
			g.version[1] = nil
		}
	}
}

// forget removes an entry that could not be read.
func (c *vectorCache) forget(it *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		for i := range g.version {
			if g.version[i] == it {
				g.version[i] = nil
			}
		}
	}
}

// recentSteps is the number of steps for which values are kept. The vectors of the update before
// last may still be read when a safeguard step repeats an update.
const recentSteps = 5

// recent keeps the values that this worker wrote lately in decoded form, so that its next tasks
// need not fetch and decode them. It is only a cache: a value that is missing, or was written by
// another worker, is read from the store.
type recent struct {
	mu    sync.Mutex
	steps map[uint32]map[store.Key]any
}

// retain adds a value that has been written, and removes old ones.
func (r *recent) retain(k store.Key, v any) {
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

// get returns the value kept under k, or nil if there is none.
func (r *recent) get(k store.Key) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps[k.Step][k]
}

// blocks keeps the last output of this worker for each block. The block's next task, which is
// usually scheduled on the same worker, reads the state, and the reducers read the contributions
// until the block is solved again.
type blocks struct {
	mu sync.Mutex
	of map[uint32]solvedBlock
}

// solvedBlock is the output of a MAP task in decoded form.
type solvedBlock struct {
	at    taxonv1.Place
	state *mapper.State
	parts [][]contribution.Contribution // contributions by feature range
}

// retain replaces the output of a block, if there is room.
func (s *blocks) retain(block uint32, b solvedBlock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[uint32]solvedBlock{}
	}
	if delete(s.of, block); room() {
		s.of[block] = b
	}
}

// room reports whether at least a quarter of the process's memory limit is left for garbage.
func room() bool {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() <= s[1].Value.Uint64()/4*3
}

// get returns the output for a block of the task at a place, if it is kept. It removes older
// output.
func (s *blocks) get(block uint32, at taxonv1.Place) (solvedBlock, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.of[block]
	if ok && b.at.Step < at.Step { // another worker has solved the block in the meantime
		delete(s.of, block)
	}
	return b, ok && b.at == at
}

// scratchPool keeps the scratch memory of finished tasks for later ones, as many as ran
// concurrently. A sync.Pool is emptied by garbage collections, and a scratch is costly to rebuild:
// megabytes of pages and a walk over the tree.
type scratchPool struct {
	mu   sync.Mutex
	free []*scratch
}

func (s *scratchPool) acquire() *scratch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		last := s.free[n-1]
		s.free = s.free[:n-1]
		return last
	}
	return &scratch{}
}

func (s *scratchPool) release(c *scratch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, c)
}
