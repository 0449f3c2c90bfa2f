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

// groupBytes is how many bytes of a Put stream are handed to the shard at once:
// large enough that a durable shard's sync is shared, small enough that a stream's
// memory is bounded by this and one value.
const groupBytes = 8 << 20

// Server serves one shard. It does not close the shard.
type Server struct {
	taxonv1.UnimplementedStoreServer
	shard      store.Shard
	limits     store.Limits
	chunkBytes int
}

var _ taxonv1.StoreServer = (*Server)(nil)

// NewServer makes the service of a shard.
func NewServer(shard store.Shard) *Server {
	return &Server{shard: shard, limits: shard.Limits(), chunkBytes: messageBytes}
}

// Register adds the service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { taxonv1.RegisterStoreServer(r, s) }

// Put stores a stream of values and acknowledges the last one.
func (s *Server) Put(stream grpc.ClientStreamingServer[taxonv1.PutChunks, taxonv1.PutResult]) error {
	in := putStream{server: s, ctx: stream.Context()}
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
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

	key   store.Key // of the value under way
	value assembler

	group         []store.Summed // whole values not yet in the shard
	pending       uint64         // their bytes
	values, bytes uint64         // of the whole stream
}

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
	p.group = append(p.group, store.Summed{Key: p.key, Data: data, CRC32C: c.Crc32C})
	p.pending += uint64(len(data))
	if p.pending >= groupBytes {
		return p.flush()
	}
	return nil
}

// begin checks a value before its bytes are taken in.
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
	return l.CheckBatch("put", int(min(p.values, 1<<31-1)), p.bytes)
}

// flush hands the whole values to the shard.
func (p *putStream) flush() error {
	err := p.server.shard.PutSummed(p.ctx, p.group)
	p.group, p.pending = nil, 0
	return err
}

func (p *putStream) end() error {
	if p.value.begun {
		return &store.KeyError{Op: "put", Key: p.key, Err: fmt.Errorf("%w: stream ends within the value", store.ErrInvalid)}
	}
	return p.flush()
}

// Get streams values in the order asked for. Its memory is that of one value and
// one message.
func (s *Server) Get(req *taxonv1.GetRequest, stream grpc.ServerStreamingServer[taxonv1.GetChunks]) error {
	keys := make([]store.Key, len(req.Keys))
	for i, k := range req.Keys {
		keys[i] = keyFromProto(k)
	}
	out := packer[*taxonv1.GetChunk]{
		chunkBytes: s.chunkBytes,
		send: func(chunks []*taxonv1.GetChunk) error {
			return stream.Send(&taxonv1.GetChunks{Chunks: chunks})
		},
	}
	err := s.shard.Read(stream.Context(), keys, func(i int, v store.Summed) error {
		if v.Data == nil {
			return out.add(&taxonv1.GetChunk{Index: uint32(i), Last: true, Missing: true}, 0)
		}
		return out.value(v.Data, func(part []byte, first, last bool) *taxonv1.GetChunk {
			c := &taxonv1.GetChunk{Index: uint32(i), Data: part, Last: last}
			if first {
				c.Size = uint64(len(v.Data))
			}
			if last {
				c.Crc32C = v.CRC32C
			}
			return c
		})
	})
	if err == nil {
		err = out.flush()
	}
	return toStatus(err)
}

// Commit passes on to the shard.
func (s *Server) Commit(ctx context.Context, req *taxonv1.CommitRequest) (*taxonv1.CommitResult, error) {
	if err := s.shard.Commit(ctx, req.Job, req.Step, req.Attempts); err != nil {
		return nil, toStatus(err)
	}
	return &taxonv1.CommitResult{}, nil
}

// Drop passes on to the shard.
func (s *Server) Drop(ctx context.Context, req *taxonv1.DropRequest) (*taxonv1.DropResult, error) {
	n, err := s.shard.Drop(ctx, store.DropSpec{Job: req.Job, Before: req.Before, Keep: req.KeepSteps, All: req.All})
	if err != nil {
		return nil, toStatus(err)
	}
	return &taxonv1.DropResult{Values: n}, nil
}

// List streams the keys of this shard in key order.
func (s *Server) List(req *taxonv1.ListRequest, stream grpc.ServerStreamingServer[taxonv1.KeyInfos]) error {
	out := packer[*taxonv1.KeyInfo]{send: func(infos []*taxonv1.KeyInfo) error {
		return stream.Send(&taxonv1.KeyInfos{Infos: infos})
	}}
	err := s.shard.List(stream.Context(), req.Job, func(in store.Info) error {
		return out.add(&taxonv1.KeyInfo{Key: keyToProto(in.Key), Bytes: in.Bytes, Crc32C: in.CRC32C}, 0)
	})
	if err == nil {
		err = out.flush()
	}
	return toStatus(err)
}
