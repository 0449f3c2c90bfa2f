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

// vectorCache keeps the assembled vectors of the groups used last, and lets concurrent tasks wait
// for one another's reading. What it has dropped is read again.
type vectorCache struct {
	mu     sync.Mutex
	most   int            // groups
	groups []*groupCached // used last comes last
}

// groupCached has a group's vectors: the current ones and those before.
type groupCached struct {
	group   int
	version [2]*cached
}

// cached is what is read, or being read, under a key.
type cached struct {
	key   string
	ready chan struct{}
	v     *reducer.Internals
	err   error
}

// get returns a group's vectors under key, made by load at most once at a time: the current ones,
// or with back 1 those before. What was current becomes what was before.
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
		if it.err != nil { // the loader's context may have ended, ours did not
			return load()
		}
		return it.v, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// find returns what is kept under a key. If nothing is, it makes a place, which the caller fills.
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

// drop forgets a group's vectors before the current ones.
func (c *vectorCache) drop(group int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		if g.group == group {
			g.version[1] = nil
		}
	}
}

// forget drops what could not be read.
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
	parts [][]contribution.Contribution // by feature range
}

// keep remembers what was written for a block, if there is room, in place of what was before.
func (s *blocks) keep(block uint32, b solvedBlock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[uint32]solvedBlock{}
	}
	if delete(s.of, block); room() {
		s.of[block] = b
	}
}

// room says whether a quarter of the memory that the process is limited to is left for garbage.
func room() bool {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() <= s[1].Value.Uint64()/4*3
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
	return &scratch{}
}

func (s *scratchPool) put(c *scratch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, c)
}
