package recursive

import (
	"context"
	"slices"
	"sync"

	"taxon/reducer"
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
