package storerpc

import (
	"context"
	"errors"
	"sync/atomic"

	"taxon/store"
)

// Get implements store.Store. It asks all shards at once, each for its part of the keys; see
// Client.
func (c *Client) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	if err := c.limits.CheckGet(keys); err != nil {
		return nil, err
	}
	call := c.newGet(keys)
	if err := call.run(ctx); err != nil {
		return nil, err
	}
	if err := call.lost(); err != nil {
		return nil, err
	}
	call.readRepair(ctx)
	return call.out, ctx.Err()
}

// getCall holds the state of one call of Get.
type getCall struct {
	*Client
	keys []store.Key
	out  [][]byte
	// ranks are the shards of each key. It is nil if there is one copy.
	ranks []replicas
	// left lists the positions that are neither found nor known to be bad in all copies.
	left []int32
	// bad has a bit for each copy of a key that is missing or damaged. The lowest bit is that of
	// the first copy.
	bad []uint8
	// damaged has the reason for each key with a damaged copy.
	damaged map[int32]error
	// size is the number of bytes announced so far.
	size atomic.Uint64
	// away is the last error of a shard that was away.
	away error
}

// newGet returns the state of a Get of keys.
func (c *Client) newGet(keys []store.Key) *getCall {
	call := &getCall{Client: c, keys: keys, out: make([][]byte, len(keys)), left: make([]int32, len(keys)),
		bad: make([]uint8, len(keys))}
	for i := range keys {
		call.left[i] = int32(i)
	}
	if c.copies > 1 {
		call.ranks = make([]replicas, len(keys))
		for i, k := range keys {
			call.ranks[i] = c.place.rank(k, c.copies)
		}
	}
	return call
}

// shardOf returns the shard of a copy of a key.
func (c *getCall) shardOf(p int32, copy int) int {
	if c.ranks == nil {
		return c.place.of(c.keys[p])
	}
	return int(c.ranks[p][copy])
}

// run asks for copy after copy until each key is found, or is bad in all of them.
func (c *getCall) run(ctx context.Context) error {
	p := newPatience(c.patience)
	for first := true; ; first = false {
		for copy := 0; copy < c.copies && len(c.left) > 0; copy++ {
			if err := c.round(ctx, copy, first && c.copies > 1); err != nil {
				return err
			}
		}
		if len(c.left) == 0 {
			return nil
		}
		if p.spent(1) && c.away != nil {
			return c.away
		}
		if err := p.pause(ctx); err != nil {
			return err
		}
	}
}

// round asks for one copy of each key that is left. If up is set, it asks only shards that are
// believed to be up.
func (c *getCall) round(ctx context.Context, copy int, up bool) error {
	parts := make([][]int32, len(c.shards))
	var shards []int
	for _, p := range c.left {
		if c.bad[p]&(1<<copy) != 0 {
			continue
		}
		s := c.shardOf(p, copy)
		if up && c.shards[s].down() {
			continue
		}
		if parts[s] == nil {
			shards = append(shards, s)
			parts[s] = make([]int32, 0, len(c.left)/len(c.shards)+1)
		}
		parts[s] = append(parts[s], p)
	}
	if len(shards) == 0 {
		return ctx.Err()
	}
	results := make([]getResult, len(c.shards))
	err := c.each(ctx, shards, func(ctx context.Context, s int) error {
		results[s] = c.shards[s].get(ctx, c.keys, parts[s], c.out, &c.size)
		if err := results[s].err; !away(err) && !errors.Is(err, store.ErrCorrupt) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range shards {
		c.note(results[s], parts[s], copy)
	}
	left := c.left[:0]
	all := uint8(1<<c.copies - 1)
	for _, p := range c.left {
		if c.out[p] == nil && c.bad[p] != all {
			left = append(left, p)
		}
	}
	c.left = left
	return nil
}

// note evaluates a shard's answer. An answer that breaks the protocol counts as damage of every key
// that it left open.
func (c *getCall) note(res getResult, part []int32, copy int) {
	for _, b := range res.bad {
		c.markBad(b.position, copy, b.err)
	}
	switch {
	case res.err == nil:
	case away(res.err):
		c.away = res.err
	default:
		var ke *store.KeyError
		if errors.As(res.err, &ke) {
			res.err = ke.Err
		}
		for _, p := range part {
			if c.out[p] == nil && c.bad[p]&(1<<copy) == 0 {
				c.markBad(p, copy, res.err)
			}
		}
	}
}

// markBad records that a copy is missing or damaged.
func (c *getCall) markBad(p int32, copy int, err error) {
	c.bad[p] |= 1 << copy
	if errors.Is(err, store.ErrCorrupt) {
		if c.damaged == nil {
			c.damaged = map[int32]error{}
		}
		c.damaged[p] = err
	}
}

// lost returns an error with the keys of which all copies are bad and at least one existed.
func (c *getCall) lost() error {
	if len(c.damaged) == 0 {
		return nil
	}
	var lost store.LostError
	for i, k := range c.keys {
		if err := c.damaged[int32(i)]; err != nil && c.out[i] == nil {
			if lost.Keys = append(lost.Keys, k); lost.Err == nil {
				lost.Err = err
			}
		}
	}
	if lost.Keys == nil {
		return nil
	}
	return &lost
}

// readRepair writes values to where a copy was missing or damaged. It ignores errors, because the
// reader has the values.
func (c *getCall) readRepair(ctx context.Context) {
	if c.copies == 1 {
		return
	}
	parts := make([][]int32, len(c.shards))
	var values []store.Checksummed
	for i, bad := range c.bad {
		if bad == 0 || c.out[i] == nil {
			continue
		}
		values = append(values, store.Sum(store.Value{Key: c.keys[i], Data: c.out[i]}))
		for copy := range c.copies {
			if s := c.ranks[i][copy]; bad&(1<<copy) != 0 {
				parts[s] = append(parts[s], int32(len(values)-1))
			}
		}
	}
	for s, part := range parts {
		if len(part) > 0 && c.shards[s].put(ctx, values, part) != nil {
			c.missed(c.shards[s].name)
		}
	}
}
