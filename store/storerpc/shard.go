package storerpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/grpc"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// put streams values to one shard and waits for its acknowledgement.
func (s *shard) put(ctx context.Context, values []store.Value) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.rpc.Put(ctx)
	if err != nil {
		return fromStatus(s.name, "put", err)
	}
	// io.EOF: the shard refused; CloseAndRecv has the reason.
	if err := s.sendValues(stream, values); err != nil && !errors.Is(err, io.EOF) {
		return fromStatus(s.name, "put", err)
	}
	_, err = stream.CloseAndRecv()
	return fromStatus(s.name, "put", err)
}

func (s *shard) sendValues(stream grpc.ClientStreamingClient[taxonv1.PutChunks, taxonv1.PutResult], values []store.Value) error {
	out := packer[*taxonv1.PutChunk]{
		chunkBytes: s.chunkBytes,
		send: func(chunks []*taxonv1.PutChunk) error {
			return stream.Send(&taxonv1.PutChunks{Chunks: chunks})
		},
	}
	for _, v := range values {
		sum := store.Checksum(v.Data)
		err := out.value(v.Data, func(part []byte, first, last bool) *taxonv1.PutChunk {
			c := &taxonv1.PutChunk{Data: part, Last: last}
			if first {
				c.Key, c.Size = keyToProto(v.Key), uint64(len(v.Data))
			}
			if last {
				c.Crc32C = sum
			}
			return c
		})
		if err != nil {
			return err
		}
	}
	return out.flush()
}

// requestKeys is how many keys one Get names: less than 2 MiB at the longest.
const requestKeys = 8192

// get fetches keys[p] into out[p] for the positions p.
func (s *shard) get(ctx context.Context, keys []store.Key, positions []int, out [][]byte) error {
	var size uint64
	for part := range slices.Chunk(positions, requestKeys) {
		if err := s.request(ctx, keys, part, out, &size); err != nil {
			return err
		}
	}
	return nil
}

// request is one call of get; size sums the bytes over all of them.
func (s *shard) request(ctx context.Context, keys []store.Key, positions []int, out [][]byte, size *uint64) error {
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
	in := getStream{shard: s, keys: keys, positions: positions, out: out, size: size}
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return in.end()
		}
		if err != nil {
			return fromStatus(s.name, "get", err)
		}
		for _, c := range message.Chunks {
			if err := in.add(c); err != nil {
				return err
			}
		}
	}
}

// getStream is the state of one answer.
type getStream struct {
	shard     *shard
	keys      []store.Key
	positions []int
	out       [][]byte
	next      int     // positions answered
	size      *uint64 // bytes announced so far
	value     assembler
}

// add takes the next chunk; a value that ends is verified.
func (g *getStream) add(c *taxonv1.GetChunk) error {
	if g.next == len(g.positions) {
		return fmt.Errorf("store shard %s: get: %w: more values than asked for", g.shard.name, store.ErrCorrupt)
	}
	p := g.positions[g.next]
	if c.GetIndex() != uint32(g.next) {
		return g.corrupt(fmt.Errorf("answer %d where %d was due", c.GetIndex(), g.next))
	}
	if c.GetMissing() {
		g.next++
		return nil
	}
	if !g.value.begun {
		if err := g.admit(c.GetSize()); err != nil {
			return err
		}
	}
	if err := g.value.add(c.GetData(), c.GetSize()); err != nil {
		return g.corrupt(err)
	}
	if !c.GetLast() {
		return nil
	}
	data, err := g.value.finish()
	if err != nil {
		return g.corrupt(err)
	}
	v := store.Summed{Key: g.keys[p], Data: data, CRC32C: c.GetCrc32C()}
	if err := v.Verify("get"); err != nil {
		return fmt.Errorf("store shard %s: %w", g.shard.name, err)
	}
	g.out[p] = data
	g.next++
	return nil
}

// admit checks an announced size against the client's limits.
func (g *getStream) admit(size uint64) error {
	l := g.shard.limits
	if err := l.CheckValue("get", g.keys[g.positions[g.next]], size); err != nil {
		return err
	}
	*g.size += size
	return l.CheckBatch("get", len(g.positions), *g.size)
}

func (g *getStream) end() error {
	if g.next < len(g.positions) {
		return g.corrupt(errors.New("answer ends early"))
	}
	return nil
}

// corrupt blames the value that is due.
func (g *getStream) corrupt(err error) error {
	ke := &store.KeyError{Op: "get", Key: g.keys[g.positions[g.next]], Err: fmt.Errorf("%w: %s", store.ErrCorrupt, err)}
	return fmt.Errorf("store shard %s: %w", g.shard.name, ke)
}
