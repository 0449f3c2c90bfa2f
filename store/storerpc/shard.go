package storerpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// put sends the values at the given positions to one shard, and waits for its acknowledgement.
func (s *shard) put(ctx context.Context, values []store.Checksummed, positions []int32) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.rpc.Put(ctx)
	if err != nil {
		return fromStatus(s.name, "put", err)
	}
	// io.EOF: the shard refused; CloseAndRecv has the reason.
	if err := s.sendValues(stream, values, positions); err != nil && !errors.Is(err, io.EOF) {
		return fromStatus(s.name, "put", err)
	}
	_, err = stream.CloseAndRecv()
	return fromStatus(s.name, "put", err)
}

// chunkBytes returns the size of the largest chunk of a value on its way to or from the shard.
func chunkBytes(local bool) int {
	if local {
		return wholeValue
	}
	return messageBytes
}

// sendValues sends the values at the given positions in chunks.
func (s *shard) sendValues(stream grpc.ClientStreamingClient[taxonv1.PutChunks, taxonv1.PutResult],
	values []store.Checksummed, positions []int32) error {
	out := packer[*taxonv1.PutChunk]{
		chunkBytes: chunkBytes(s.local),
		send: func(chunks []*taxonv1.PutChunk) error {
			return stream.Send(&taxonv1.PutChunks{Chunks: chunks})
		},
	}
	var keys slab[taxonv1.Key]
	var chunks slab[taxonv1.PutChunk]
	for n, p := range positions {
		v := &values[p]
		if len(chunks) == 0 {
			left := min(len(positions)-n, messageChunks)
			keys, chunks = newSlab[taxonv1.Key](left), newSlab[taxonv1.PutChunk](left)
		}
		err := out.value(v.Data, func(part []byte, first, last bool) *taxonv1.PutChunk {
			c := chunks.next()
			c.Data, c.Last = part, last
			if first {
				c.Key, c.Size = keyToProto(keys.next(), v.Key), uint64(len(v.Data))
			}
			if last {
				c.Crc32C = v.CRC32C
			}
			return c
		})
		if err != nil {
			return err
		}
	}
	return out.flush()
}

// requestKeys is how many keys one Get has. They take less than 2 MiB.
const requestKeys = 8192

// errMissingHere means that a shard does not have the value.
var errMissingHere = fmt.Errorf("%w here", store.ErrMissing)

// getResult is the outcome of a get.
type getResult struct {
	// bad lists, ascending, the positions that are missing or damaged in the shard.
	bad []badCopy
	// err says that the shard was away, or why the whole call failed.
	err error
}

// badCopy is a key without an intact value in a shard.
type badCopy struct {
	position int32
	// err is errMissingHere, or wraps store.ErrCorrupt.
	err error
}

// get reads keys[p] into out[p] for the given positions p. After an error, positions that are
// neither in out nor bad were not answered.
func (s *shard) get(ctx context.Context, keys []store.Key, positions []int32, out [][]byte,
	size *atomic.Uint64) (res getResult) {
	for part := range slices.Chunk(positions, requestKeys) {
		if res.err = s.request(ctx, keys, part, out, size, &res.bad); res.err != nil {
			return res
		}
	}
	return res
}

// request is one call of get. size counts the bytes of all calls.
func (s *shard) request(ctx context.Context, keys []store.Key, positions []int32, out [][]byte, size *atomic.Uint64,
	bad *[]badCopy) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.rpc.Get(ctx, getRequest(keys, positions))
	if err != nil {
		return fromStatus(s.name, "get", err)
	}
	in := getStream{shard: s, keys: keys, positions: positions, out: out, size: size, bad: bad}
	defer in.forget()
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
				in.discardAnswer()
				return err
			}
		}
	}
}

// getRequest returns the request for the keys at the given positions.
func getRequest(keys []store.Key, positions []int32) *taxonv1.GetRequest {
	req := &taxonv1.GetRequest{Keys: make([]*taxonv1.Key, len(positions))}
	names := newSlab[taxonv1.Key](len(positions))
	for i, p := range positions {
		req.Keys[i] = keyToProto(names.next(), keys[p])
	}
	return req
}

// getStream holds the state of one answer to a get.
type getStream struct {
	shard     *shard
	keys      []store.Key
	positions []int32
	out       [][]byte
	// next is the number of positions that are answered.
	next int
	// size counts the bytes of the values in out and of the present one.
	size *atomic.Uint64
	// pending is the size of the present value.
	pending uint64
	value   assembler
	bad     *[]badCopy
}

// forget subtracts an unfinished value from the size.
func (g *getStream) forget() {
	g.size.Add(-g.pending)
	g.pending = 0
}

// discardAnswer removes the values of an answer that breaks the protocol.
func (g *getStream) discardAnswer() {
	for _, p := range g.positions {
		g.size.Add(-uint64(len(g.out[p])))
		g.out[p] = nil
	}
}

// add takes the next chunk, and verifies a complete value.
func (g *getStream) add(c *taxonv1.GetChunk) error {
	if g.next == len(g.positions) {
		return fmt.Errorf("store shard %s: get: %w: more values than asked for", g.shard.name, store.ErrCorrupt)
	}
	p := g.positions[g.next]
	if c.GetIndex() != uint32(g.next) {
		return g.corrupt(fmt.Errorf("answer %d where %d was due", c.GetIndex(), g.next))
	}
	if c.GetMissing() || c.GetCorrupt() {
		g.value = assembler{}
		g.forget()
		g.next++
		cause := errMissingHere
		if c.GetCorrupt() {
			cause = fmt.Errorf("store shard %s: %w", g.shard.name, store.ErrCorrupt)
		}
		*g.bad = append(*g.bad, badCopy{p, cause})
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
	g.next++
	// Within this process, the shard has just verified this very slice.
	v := store.Checksummed{Key: g.keys[p], Data: data, CRC32C: c.GetCrc32C(), Verified: g.shard.local}
	if err := v.Verify("get"); err != nil {
		g.forget()
		*g.bad = append(*g.bad, badCopy{p, fmt.Errorf("store shard %s: %w", g.shard.name, errors.Unwrap(err))})
		return nil
	}
	g.pending = 0
	g.out[p] = data
	return nil
}

// admit checks the size of a value before it is received.
func (g *getStream) admit(size uint64) error {
	k := g.keys[g.positions[g.next]]
	if err := g.shard.limits.CheckValue("get", k, size); err != nil {
		return err
	}
	g.pending = size
	return g.shard.limits.CheckBatch("get", len(g.positions), g.size.Add(size))
}

// corrupt returns the error of an answer that breaks the protocol.
func (g *getStream) corrupt(err error) error {
	k := g.keys[g.positions[g.next]]
	return &store.KeyError{Op: "get", Key: k, Err: fmt.Errorf("store shard %s: %w: %w", g.shard.name, store.ErrCorrupt,
		err)}
}

// end checks that everything was answered.
func (g *getStream) end() error {
	if g.next < len(g.positions) {
		return g.corrupt(errors.New("the answer ends early"))
	}
	return nil
}
