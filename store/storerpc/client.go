package storerpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	shards []shard
	place  placement
	limits store.Limits
}

var _ store.Store = (*Client)(nil)

type shard struct {
	name string
	rpc  taxonv1.StoreClient
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
		c.shards = append(c.shards, shard{e.Name, taxonv1.NewStoreClient(e.Conn)})
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

func (s shard) put(ctx context.Context, values []store.Value) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.rpc.Put(ctx)
	if err != nil {
		return fromStatus(s.name, "put", err)
	}
	for _, v := range values {
		sum := store.Checksum(v.Data)
		key := keyToProto(v.Key)
		err := eachChunk(v.Data, func(part []byte, first, last bool) error {
			chunk := &taxonv1.PutChunk{Data: part, Last: last}
			if first {
				chunk.Key, chunk.Size = key, uint64(len(v.Data))
			}
			if last {
				chunk.Crc32C = sum
			}
			return stream.Send(chunk)
		})
		if errors.Is(err, io.EOF) {
			break // refused: CloseAndRecv has the reason
		}
		if err != nil {
			return fromStatus(s.name, "put", err)
		}
	}
	_, err = stream.CloseAndRecv()
	return fromStatus(s.name, "put", err)
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
		return c.shards[i].get(ctx, c.limits, keys, parts[i], out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// get fetches keys[p] into out[p] for the positions p.
func (s shard) get(ctx context.Context, limits store.Limits, keys []store.Key, positions []int, out [][]byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := &taxonv1.GetRequest{Keys: make([]*taxonv1.Key, len(positions))}
	for i, p := range positions {
		req.Keys[i] = keyToProto(keys[p])
	}
	stream, err := s.rpc.Get(ctx, req)
	if err != nil {
		return fromStatus(s.name, "get", err)
	}
	var size uint64
	for i, p := range positions {
		data, err := s.receive(stream, uint32(i), limits, keys[p], &size)
		if err != nil {
			return err
		}
		out[p] = data
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		if err == nil {
			return fmt.Errorf("store shard %s: get: %w: more values than asked for", s.name, store.ErrCorrupt)
		}
		return fromStatus(s.name, "get", err)
	}
	return nil
}

// receive reads and verifies one value; nil: missing.
func (s shard) receive(stream grpc.ServerStreamingClient[taxonv1.GetChunk], index uint32, limits store.Limits, key store.Key, size *uint64) ([]byte, error) {
	var value assembler
	for {
		c, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: answer ends early", store.ErrCorrupt)
			return nil, s.keyError(key, err)
		}
		if err != nil {
			return nil, fromStatus(s.name, "get", err)
		}
		if c.Index != index {
			return nil, s.keyError(key, fmt.Errorf("%w: answer %d where %d was due", store.ErrCorrupt, c.Index, index))
		}
		if c.Missing {
			return nil, nil
		}
		if !value.begun {
			*size += c.Size
			if err := limits.CheckValue("get", key, c.Size); err != nil {
				return nil, err
			}
			if err := limits.CheckBatch("get", 0, *size); err != nil {
				return nil, err
			}
		}
		if err := value.add(c.Data, c.Size); err != nil {
			return nil, s.keyError(key, fmt.Errorf("%w: %v", store.ErrCorrupt, err))
		}
		if !c.Last {
			continue
		}
		data, err := value.finish()
		if err != nil {
			return nil, s.keyError(key, fmt.Errorf("%w: %v", store.ErrCorrupt, err))
		}
		if err := (store.Summed{Key: key, Data: data, CRC32C: c.Crc32C}).Verify("get"); err != nil {
			return nil, err
		}
		return data, nil
	}
}

func (s shard) keyError(key store.Key, err error) error {
	return fmt.Errorf("store shard %s: %w", s.name, &store.KeyError{Op: "get", Key: key, Err: err})
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
