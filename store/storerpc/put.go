package storerpc

import (
	"context"
	"slices"

	"taxon/store"
)

// shortPatience is the share of the patience that a call has for a shard if other shards can do its
// work.
const shortPatience = 0.2

// Put implements store.Store. It sends all values at once, each to its shards; see Client.
func (c *Client) Put(ctx context.Context, values []store.Value) error {
	if err := c.limits.CheckPut(values); err != nil {
		return err
	}
	summed := make([]store.Checksummed, len(values))
	for i, v := range values {
		summed[i] = store.Sum(v)
	}
	return c.put(ctx, summed)
}

// putCall holds the state of one call of Put.
type putCall struct {
	*Client
	values []store.Checksummed
	// parts lists the positions of each shard's values.
	parts [][]int32
	// errs is the error of the last try of each shard. It is nil if the shard is done or was not
	// tried yet.
	errs []error
	// left lists the shards that are not done.
	left []int
	// done counts the written copies of each value. It is nil if one copy is wanted.
	done []uint8
}

// put writes values with checksums.
func (c *Client) put(ctx context.Context, values []store.Checksummed) error {
	call := &putCall{Client: c, values: values, parts: make([][]int32, len(c.shards)), errs: make([]error, len(c.shards))}
	if c.copies > 1 {
		call.done = make([]uint8, len(values))
	}
	for i := range values {
		ranks := c.place.rank(values[i].Key, c.copies)
		for _, s := range ranks[:c.copies] {
			call.parts[s] = append(call.parts[s], int32(i))
		}
	}
	for s, part := range call.parts {
		if len(part) > 0 {
			call.left = append(call.left, s)
		}
	}
	if len(call.left) == 0 {
		return ctx.Err()
	}
	return call.run(ctx)
}

// run tries until all copies are written, or those left out are on shards that are away and each of
// their values has another copy.
func (c *putCall) run(ctx context.Context) error {
	p := newPatience(c.patience)
	for {
		if err := c.try(ctx); err != nil {
			return err
		}
		if len(c.left) == 0 {
			return nil
		}
		if c.covered() && (c.allFailing() || p.spent(shortPatience)) {
			for _, s := range c.left {
				c.shards[s].failing.Store(true)
				c.missed(c.shards[s].name)
			}
			return nil
		}
		if p.spent(1) {
			return c.errs[c.left[0]]
		}
		if err := p.pause(ctx); err != nil {
			return err
		}
	}
}

// try sends to the shards that are left. An error ends the call.
func (c *putCall) try(ctx context.Context) error {
	err := c.each(ctx, c.left, func(ctx context.Context, s int) error {
		c.errs[s] = c.shards[s].put(ctx, c.values, c.parts[s])
		if !away(c.errs[s]) {
			return c.errs[s]
		}
		return nil
	})
	if err != nil {
		return err
	}
	left := c.left[:0]
	for _, s := range c.left {
		if c.errs[s] != nil {
			left = append(left, s)
			continue
		}
		c.shards[s].failing.Store(false)
		if c.done != nil {
			for _, i := range c.parts[s] {
				c.done[i]++
			}
		}
	}
	c.left = left
	return nil
}

// covered reports whether each value of the shards that are left has a copy.
func (c *putCall) covered() bool {
	if c.done == nil {
		return false
	}
	for _, s := range c.left {
		for _, i := range c.parts[s] {
			if c.done[i] == 0 {
				return false
			}
		}
	}
	return true
}

// allFailing reports whether none of the shards that are left is worth waiting for.
func (c *putCall) allFailing() bool {
	return !slices.ContainsFunc(c.left, func(s int) bool { return !c.shards[s].failing.Load() })
}
