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

// List merges the shards' keys into key order; see store.Store.
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
		stream, err := s.rpc.List(ctx, &taxonv1.ListRequest{Job: job})
		if err != nil {
			return fromStatus(s.name, "list", err)
		}
		h := &listHead{name: s.name, stream: stream}
		if err := h.next(); err != nil {
			return err
		}
		heads = append(heads, h)
	}
	for {
		h := least(heads)
		if h == nil {
			return nil
		}
		if err := yield(h.info); err != nil {
			return err
		}
		if err := h.next(); err != nil {
			return err
		}
	}
}

// listHead is the next key of one shard.
type listHead struct {
	name   string
	stream grpc.ServerStreamingClient[taxonv1.KeyInfos]
	queue  []*taxonv1.KeyInfo // received, after info
	info   store.Info
	ended  bool
}

func (h *listHead) next() error {
	for len(h.queue) == 0 {
		message, err := h.stream.Recv()
		if errors.Is(err, io.EOF) {
			h.ended = true
			return nil
		}
		if err != nil {
			return fromStatus(h.name, "list", err)
		}
		h.queue = message.Infos
	}
	in := h.queue[0]
	h.queue = h.queue[1:]
	h.info = store.Info{Key: keyFromProto(in.GetKey()), Bytes: in.GetBytes(), CRC32C: in.GetCrc32C()}
	return nil
}

// least is the head with the smallest key; nil: all have ended.
func least(heads []*listHead) *listHead {
	var best *listHead
	for _, h := range heads {
		if !h.ended && (best == nil || h.info.Key.Compare(best.info.Key) < 0) {
			best = h
		}
	}
	return best
}
