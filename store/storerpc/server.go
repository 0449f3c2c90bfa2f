package storerpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// groupBytes is how many bytes of a Put stream are passed to the shard at once. It is large enough
// to share a durable shard's sync. Together with one value it bounds a stream's memory.
const groupBytes = 8 << 20

// Server serves one shard. It does not close the shard.
type Server struct {
	taxonv1.UnimplementedStoreServer
	shard  store.Shard
	limits store.Limits
	// local says that clients are in this process, so that values are passed on as they are.
	local bool
	// stall is ServerOptions.Stall.
	stall time.Duration
	// slots has a token for each Put and Get stream that is being served.
	slots chan struct{}
	// large has the token for receiving a value that is larger than a group.
	large chan struct{}

	// refused is the size in bytes of the last batch if there was no room for it, and otherwise 0.
	refused atomic.Uint64
}

// Refused returns the size in bytes of the last values that were to be stored, if there was no room
// for them, and otherwise 0.
func (s *Server) Refused() uint64 { return s.refused.Load() }

var _ taxonv1.StoreServer = (*Server)(nil)

// defaultStreams is the default of ServerOptions.Streams.
const defaultStreams = 32

// ServerOptions bound a server's load. The zero value means the defaults.
type ServerOptions struct {
	// Streams is how many Put and Get streams are served at a time. Further streams wait, and
	// gRPC's flow control makes their senders wait. Zero stands for 32.
	Streams int

	// Stall is how long the other side of such a stream may do nothing before the stream is ended.
	// Zero stands for one minute.
	Stall time.Duration
}

// StreamBytes is how much memory a stream may take: a group of values on its way to or from the
// shard, a message here and in gRPC, and heads. One value at a time may be larger; see NewServer.
const StreamBytes = groupBytes + 4*messageBytes

// NewServer returns the service of a shard. Beside the shard's own memory, a server takes at most
// Streams x StreamBytes and the size of the largest value, because values larger than a group are
// received one at a time.
func NewServer(shard store.Shard) *Server { return NewServerWith(shard, ServerOptions{}) }

// NewServerWith does what NewServer does, with options.
func NewServerWith(shard store.Shard, o ServerOptions) *Server {
	if o.Streams <= 0 {
		o.Streams = defaultStreams
	}
	if o.Stall <= 0 {
		o.Stall = defaultStall
	}
	return &Server{shard: shard, limits: shard.Limits(), stall: o.Stall, slots: make(chan struct{}, o.Streams),
		large: make(chan struct{}, 1)}
}

// acquire waits for a token.
func acquire(ctx context.Context, tokens chan struct{}) error {
	select {
	case tokens <- struct{}{}:
		return nil
	default:
	}
	select {
	case tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Register adds the service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { taxonv1.RegisterStoreServer(r, s) }

// Commit implements the Store service.
func (s *Server) Commit(ctx context.Context, req *taxonv1.CommitRequest) (*taxonv1.CommitResult, error) {
	if err := store.CheckCommit(req.Job, req.Attempts); err != nil {
		return nil, toStatus(err)
	}
	if err := s.shard.Commit(ctx, req.Job, req.Step, req.Attempts); err != nil {
		return nil, toStatus(err)
	}
	return &taxonv1.CommitResult{}, nil
}

// Drop implements the Store service.
func (s *Server) Drop(ctx context.Context, req *taxonv1.DropRequest) (*taxonv1.DropResult, error) {
	what := store.DropSpec{Job: req.Job, Before: req.Before, Keep: req.KeepSteps, All: req.All}
	if err := what.Validate(); err != nil {
		return nil, toStatus(fmt.Errorf("drop: %w", err))
	}
	n, err := s.shard.Drop(ctx, what)
	if err != nil {
		return nil, toStatus(err)
	}
	return &taxonv1.DropResult{Values: n}, nil
}

// List implements the Store service. It streams the keys of this shard in key order.
func (s *Server) List(req *taxonv1.ListRequest, stream grpc.ServerStreamingServer[taxonv1.KeyInfos]) error {
	if req.Job != "" {
		if err := store.ValidateJob(req.Job); err != nil {
			return toStatus(fmt.Errorf("list: %w", err))
		}
	}
	out := packer[*taxonv1.KeyInfo]{send: func(infos []*taxonv1.KeyInfo) error {
		return stream.Send(&taxonv1.KeyInfos{Infos: infos})
	}}
	err := s.shard.List(stream.Context(), req.Job, func(in store.Info) error {
		return out.add(&taxonv1.KeyInfo{Key: keyToProto(new(taxonv1.Key), in.Key), Bytes: in.Bytes, Crc32C: in.CRC32C}, 0)
	})
	if err == nil {
		err = out.flush()
	}
	return toStatus(err)
}

// Get implements the Store service. It streams values in the order asked for, with the memory of
// one value and one message. It reports a damaged copy in its place, because the client may find
// the value elsewhere.
func (s *Server) Get(req *taxonv1.GetRequest, stream grpc.ServerStreamingServer[taxonv1.GetChunks]) error {
	return s.watch(func(t *turns) error { return s.get(req, stream, t) })
}

// get does the work of Get while a watch runs.
func (s *Server) get(req *taxonv1.GetRequest, stream grpc.ServerStreamingServer[taxonv1.GetChunks], t *turns) error {
	if err := s.limits.CheckBatch("get", len(req.Keys), 0); err != nil {
		return toStatus(err)
	}
	ctx := stream.Context()
	if err := acquire(ctx, s.slots); err != nil {
		return toStatus(err)
	}
	defer func() { <-s.slots }()
	out := getAnswer{
		chunks: newSlab[taxonv1.GetChunk](min(len(req.Keys), messageChunks)),
		packer: packer[*taxonv1.GetChunk]{
			chunkBytes: chunkBytes(s.local),
			send: func(chunks []*taxonv1.GetChunk) error {
				return t.other(func() error { return stream.Send(&taxonv1.GetChunks{Chunks: chunks}) })
			},
		},
	}
	keys := make([]store.Key, len(req.Keys))
	for i, k := range req.Keys {
		keys[i] = keyFromProto(k)
	}
	if err := s.limits.CheckGet(keys); err != nil {
		return toStatus(err)
	}
	for from := 0; from < len(keys) || from == 0; {
		next := from
		err := s.shard.Read(ctx, keys[from:], func(i int, v store.Checksummed) error {
			next = from + i + 1
			return out.add(from+i, v)
		})
		if err == nil {
			break
		}
		var ke *store.KeyError
		if !errors.Is(err, store.ErrCorrupt) || !errors.As(err, &ke) || next == len(keys) || ke.Key != keys[next] {
			return toStatus(err)
		}
		if err := out.corrupt(next); err != nil {
			return toStatus(err)
		}
		from = next + 1
	}
	return toStatus(out.packer.flush())
}

// getAnswer packs the answers to one Get.
type getAnswer struct {
	chunks slab[taxonv1.GetChunk]
	packer packer[*taxonv1.GetChunk]
}

// add answers with a value, or with its absence.
func (a *getAnswer) add(i int, v store.Checksummed) error {
	if v.Data == nil {
		c := a.chunks.next()
		c.Index, c.Last, c.Missing = uint32(i), true, true
		return a.packer.add(c, 0)
	}
	return a.packer.value(v.Data, func(part []byte, first, last bool) *taxonv1.GetChunk {
		c := a.chunks.next()
		c.Index, c.Data, c.Last = uint32(i), part, last
		if first {
			c.Size = uint64(len(v.Data))
		}
		if last {
			c.Crc32C = v.CRC32C
		}
		return c
	})
}

// corrupt answers that the shard's copy is damaged.
func (a *getAnswer) corrupt(i int) error {
	c := a.chunks.next()
	c.Index, c.Last, c.Corrupt = uint32(i), true, true
	return a.packer.add(c, 0)
}

// Put implements the Store service. It stores a stream of values and acknowledges all of them at
// its end.
func (s *Server) Put(stream grpc.ClientStreamingServer[taxonv1.PutChunks, taxonv1.PutResult]) error {
	return s.watch(func(t *turns) error { return s.put(stream, t) })
}

// put does the work of Put while a watch runs.
func (s *Server) put(stream grpc.ClientStreamingServer[taxonv1.PutChunks, taxonv1.PutResult], t *turns) error {
	if err := acquire(stream.Context(), s.slots); err != nil {
		return toStatus(err)
	}
	defer func() { <-s.slots }()
	in := putStream{server: s, ctx: stream.Context()}
	defer in.release()
	for {
		var message *taxonv1.PutChunks
		err := t.other(func() (err error) { message, err = stream.Recv(); return err })
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if in.group == nil {
			in.group = make([]store.Checksummed, 0, min(len(message.Chunks), messageChunks))
		}
		for _, c := range message.Chunks {
			if err := in.add(c); err != nil {
				return toStatus(err)
			}
		}
	}
	if err := in.end(); err != nil {
		return toStatus(err)
	}
	return stream.SendAndClose(&taxonv1.PutResult{Values: in.values, Bytes: in.bytes})
}

// putStream is the state of one Put call.
type putStream struct {
	server *Server
	ctx    context.Context

	// key and value are those of the value being received.
	key   store.Key
	value assembler
	// large says that the stream has the token for values larger than a group.
	large bool

	// group holds the complete values that are not in the shard yet, and pending their bytes.
	group   []store.Checksummed
	pending uint64
	// values and bytes count those of the whole stream.
	values, bytes uint64
}

// add takes the next chunk.
func (p *putStream) add(c *taxonv1.PutChunk) error {
	if c == nil {
		return fmt.Errorf("put: %w: empty chunk", store.ErrInvalid)
	}
	if c.Key != nil {
		if err := p.begin(c); err != nil {
			return err
		}
	} else if !p.value.begun {
		return fmt.Errorf("put: %w: a value's first chunk has no key", store.ErrInvalid)
	}
	if err := p.value.add(c.Data, c.Size); err != nil {
		return &store.KeyError{Op: "put", Key: p.key, Err: err}
	}
	if !c.Last {
		return nil
	}
	data, err := p.value.finish()
	if err != nil {
		return &store.KeyError{Op: "put", Key: p.key, Err: err}
	}
	// Within this process, the sender has just made the sum from this very slice.
	p.group = append(p.group, store.Checksummed{Key: p.key, Data: data, CRC32C: c.Crc32C, Verified: p.server.local})
	p.pending += uint64(len(data))
	if p.pending >= groupBytes {
		return p.flush()
	}
	return nil
}

// begin checks a value before its bytes are received.
func (p *putStream) begin(c *taxonv1.PutChunk) error {
	key := keyFromProto(c.Key)
	if p.value.begun {
		return &store.KeyError{Op: "put", Key: p.key, Err: fmt.Errorf("%w: value has no last chunk", store.ErrInvalid)}
	}
	if err := key.Validate(); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	l := p.server.limits
	if err := l.CheckValue("put", key, c.Size); err != nil {
		return err
	}
	p.key = key
	p.values++
	p.bytes += c.Size
	if err := l.CheckBatch("put", int(min(p.values, 1<<31-1)), p.bytes); err != nil {
		return err
	}
	if c.Size <= groupBytes || p.server.local {
		return nil
	}
	if err := p.flush(); err != nil { // other streams' large values wait for this one
		return err
	}
	p.large = true
	if err := acquire(p.ctx, p.server.large); err != nil {
		p.large = false
		return err
	}
	return nil
}

// store passes values to the shard.
func (s *Server) store(ctx context.Context, values []store.Checksummed) error {
	err := s.shard.PutChecksummed(ctx, values)
	switch {
	case err == nil:
		s.refused.Store(0)
	case errors.Is(err, store.ErrFull):
		size := uint64(0)
		for i := range values {
			size += uint64(len(values[i].Data))
		}
		s.refused.Store(size)
	}
	return err
}

// flush passes the complete values to the shard.
func (p *putStream) flush() error {
	err := p.server.store(p.ctx, p.group)
	p.group, p.pending = nil, 0
	p.release()
	return err
}

// release returns the token for large values.
func (p *putStream) release() {
	if p.large {
		p.large = false
		<-p.server.large
	}
}

// end passes on the last values of a stream that has ended.
func (p *putStream) end() error {
	if p.value.begun {
		return &store.KeyError{Op: "put", Key: p.key, Err: fmt.Errorf("%w: stream ends within the value", store.ErrInvalid)}
	}
	return p.flush()
}

// defaultStall is the default of ServerOptions.Stall. A process that was stopped or cut off is
// noticed earlier, by gRPC's pings.
const defaultStall = time.Minute

// turns says which side of a stream must act. It is odd while that is the other side.
type turns struct{ atomic.Uint64 }

// other makes a call that waits for the other side. It counts a turn before the call and one after
// it.
func (t *turns) other(call func() error) error {
	t.Add(1)
	defer t.Add(1)
	return call()
}

// watch runs the work of a stream. It ends the stream, and thereby the work, if the other side does
// nothing for the time of stall. Otherwise a few such streams could occupy all slots.
func (s *Server) watch(work func(t *turns) error) error {
	var t turns
	if s.local {
		return work(&t)
	}
	done := make(chan error, 1)
	go func() { done <- work(&t) }()
	tick := time.NewTicker(s.stall)
	defer tick.Stop()
	for last := t.Load(); ; {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			now := t.Load()
			if now == last && now%2 == 1 {
				return status.Errorf(codes.Unavailable, "the stream's other side did nothing for %s", s.stall)
			}
			last = now
		}
	}
}

// keyToProto fills a message with a key.
func keyToProto(to *taxonv1.Key, k store.Key) *taxonv1.Key {
	to.Job, to.Step, to.Task, to.Attempt, to.Name = k.Job, k.Step, k.Task, k.Attempt, k.Name
	return to
}

// keyFromProto returns the key of a message. A nil message gives an invalid key.
func keyFromProto(k *taxonv1.Key) store.Key {
	return store.Key{Job: k.GetJob(), Step: k.GetStep(), Task: k.GetTask(), Attempt: k.GetAttempt(), Name: k.GetName()}
}

// slab allocates messages together, because batches have thousands of small ones.
type slab[M any] []M

// newSlab returns a slab of n messages.
func newSlab[M any](n int) slab[M] { return make(slab[M], n) }

// next returns a zero message. Beyond the slab's size it allocates each one separately.
func (s *slab[M]) next() *M {
	if len(*s) == 0 {
		return new(M)
	}
	m := &(*s)[0]
	*s = (*s)[1:]
	return m
}
