package storerpc

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Endpoint is one shard as the client sees it.
type Endpoint struct {
	Name string // decides placement: must stay the same wherever the shard runs
	Conn grpc.ClientConnInterface
}

// Client is a store.Store over one or more shards. It owns no connection: whoever
// made them closes them.
type Client struct {
	shards []*shard
	place  placement
	limits store.Limits
}

var _ store.Store = (*Client)(nil)

// shard is one endpoint with what a call to it needs.
type shard struct {
	name       string
	rpc        taxonv1.StoreClient
	limits     store.Limits
	chunkBytes int
}

// NewClient makes a client; limits bound its requests before they are sent
// (the shards enforce their own). The order of shards does not matter.
func NewClient(endpoints []Endpoint, limits store.Limits) (*Client, error) {
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("store client: %w: no shard", store.ErrInvalid)
	}
	sorted := slices.Clone(endpoints)
	slices.SortFunc(sorted, func(a, b Endpoint) int { return cmp.Compare(a.Name, b.Name) })
	c := &Client{limits: limits.WithDefaults()}
	names := make([]string, len(sorted))
	for i, e := range sorted {
		if i > 0 && names[i-1] == e.Name {
			return nil, fmt.Errorf("store client: %w: two shards named %q", store.ErrInvalid, e.Name)
		}
		if err := store.ValidateJob(e.Name); err != nil { // same rule for shard names
			return nil, fmt.Errorf("store client: shard name: %w", err)
		}
		names[i] = e.Name
		c.shards = append(c.shards, &shard{e.Name, taxonv1.NewStoreClient(e.Conn), c.limits, messageBytes})
	}
	c.place = newPlacement(names)
	return c, nil
}

// Put sends each value to its shard, all shards at once; see store.Store.
func (c *Client) Put(ctx context.Context, values []store.Value) error {
	if err := c.limits.CheckPut(values); err != nil {
		return err
	}
	parts := make([][]store.Value, len(c.shards))
	for _, v := range values {
		i := c.place.of(v.Key)
		parts[i] = append(parts[i], v)
	}
	return c.each(ctx, func(ctx context.Context, i int) error {
		if len(parts[i]) == 0 {
			return nil
		}
		return c.shards[i].put(ctx, parts[i])
	})
}

// each runs f for every shard at once and gives the first error.
func (c *Client) each(ctx context.Context, f func(ctx context.Context, i int) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(c.shards) == 1 {
		return f(ctx, 0)
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range c.shards {
		g.Go(func() error { return f(ctx, i) })
	}
	return g.Wait()
}

// Get asks each shard for its part of the keys, all at once; see store.Store.
func (c *Client) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	if err := c.limits.CheckGet(keys); err != nil {
		return nil, err
	}
	parts := make([][]int, len(c.shards)) // positions in keys
	for i, k := range keys {
		s := c.place.of(k)
		parts[s] = append(parts[s], i)
	}
	out := make([][]byte, len(keys))
	err := c.each(ctx, func(ctx context.Context, i int) error {
		if len(parts[i]) == 0 {
			return nil
		}
		return c.shards[i].get(ctx, keys, parts[i], out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Commit goes to every shard; see store.Store.
func (c *Client) Commit(ctx context.Context, job string, step uint32, attempts []uint32) error {
	if err := store.ValidateJob(job); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	req := &taxonv1.CommitRequest{Job: job, Step: step, Attempts: attempts}
	return c.each(ctx, func(ctx context.Context, i int) error {
		_, err := c.shards[i].rpc.Commit(ctx, req)
		return fromStatus(c.shards[i].name, "commit", err)
	})
}

// Drop goes to every shard; see store.Store.
func (c *Client) Drop(ctx context.Context, what store.DropSpec) (uint64, error) {
	if err := what.Validate(); err != nil {
		return 0, fmt.Errorf("drop: %w", err)
	}
	req := &taxonv1.DropRequest{Job: what.Job, Before: what.Before, KeepSteps: what.Keep, All: what.All}
	counts := make([]uint64, len(c.shards))
	err := c.each(ctx, func(ctx context.Context, i int) error {
		res, err := c.shards[i].rpc.Drop(ctx, req)
		counts[i] = res.GetValues()
		return fromStatus(c.shards[i].name, "drop", err)
	})
	var values uint64
	for _, n := range counts {
		values += n
	}
	return values, err
}

// Close does nothing: connections belong to whoever made them.
func (c *Client) Close() error { return nil }
