package storerpc

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// List implements store.Store. It merges the shards' keys into key order.
func (c *Client) List(ctx context.Context, job string, yield func(store.Info) error) error {
	if job != "" {
		if err := store.ValidateJob(job); err != nil {
			return fmt.Errorf("list: %w", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heads := make([]*listHead, 0, len(c.shards))
	for _, s := range c.shards {
		heads = append(heads, &listHead{client: c, shard: s, job: job})
	}
	return c.merge(ctx, heads, c.copies-1, yield)
}

// merge yields the entries of all heads in key order, each key once. It works without up to `spare`
// shards that stay away.
func (c *Client) merge(ctx context.Context, heads []*listHead, spare int, yield func(store.Info) error) error {
	next := func(h *listHead) error {
		err := h.next(ctx)
		if away(err) && spare > 0 {
			spare--
			h.ended = true
			return nil
		}
		return err
	}
	for _, h := range heads {
		if err := next(h); err != nil {
			return err
		}
	}
	for {
		h := least(heads)
		if h == nil {
			return ctx.Err()
		}
		info := h.info
		if err := yield(info); err != nil {
			return err
		}
		for _, h := range heads {
			for !h.ended && h.info.Key == info.Key {
				if err := next(h); err != nil {
					return err
				}
			}
		}
	}
}

// listHead is the position in the list of one shard.
type listHead struct {
	client *Client
	shard  *shard
	job    string
	// stream is nil until it is opened, and after an error.
	stream grpc.ServerStreamingClient[taxonv1.KeyInfos]
	// queue holds what was received after info.
	queue []*taxonv1.KeyInfo
	// info is the present entry, if begun is set.
	info  store.Info
	begun bool
	ended bool
}

// next moves to the next entry. After the shard was away it moves to the first entry after the
// present one.
func (h *listHead) next(ctx context.Context) error {
	for {
		for len(h.queue) > 0 {
			in := h.queue[0]
			h.queue = h.queue[1:]
			info := store.Info{Key: keyFromProto(in.GetKey()), Bytes: in.GetBytes(), CRC32C: in.GetCrc32C()}
			if err := info.Key.Validate(); err != nil {
				return fmt.Errorf("store shard %s: list: %w", h.shard.name, err)
			}
			if h.begun && h.info.Key.Compare(info.Key) >= 0 {
				continue // known from before the shard was away
			}
			h.info, h.begun = info, true
			return nil
		}
		message, err := h.receive(ctx)
		if errors.Is(err, io.EOF) {
			h.ended = true
			return nil
		}
		if err != nil {
			return err
		}
		h.queue = message.Infos
	}
}

// receive receives the next message. It opens the stream if needed, and again while patience lasts.
func (h *listHead) receive(ctx context.Context) (message *taxonv1.KeyInfos, err error) {
	err = h.client.insist(ctx, func() error {
		if h.stream == nil {
			stream, err := h.shard.rpc.List(ctx, &taxonv1.ListRequest{Job: h.job})
			if err != nil {
				return fromStatus(h.shard.name, "list", err)
			}
			h.stream = stream
		}
		message, err = h.stream.Recv()
		if err == nil || errors.Is(err, io.EOF) {
			return err
		}
		h.stream = nil // it has ended
		return fromStatus(h.shard.name, "list", err)
	})
	return message, err
}

// least returns the head with the smallest key, or nil if all have ended.
func least(heads []*listHead) *listHead {
	var best *listHead
	for _, h := range heads {
		if !h.ended && (best == nil || h.info.Key.Compare(best.info.Key) < 0) {
			best = h
		}
	}
	return best
}
