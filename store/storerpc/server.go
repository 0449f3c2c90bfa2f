package storerpc

import (
	"context"
	"fmt"
	"time"

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
	shard  store.Shard
	limits store.Limits
	local  bool // clients are in this process: values are handed over whole
	stall  time.Duration
	slots  chan struct{}
	large  chan struct{}
	filed  store.Filed // nil, and inbox, too: no short circuit
	inbox  *inbox
}

var _ taxonv1.StoreServer = (*Server)(nil)

// defaultStreams is how many Put and Get streams are served at a time.
const defaultStreams = 32

// ServerOptions bound what a server takes on; the zero value means the defaults.
type ServerOptions struct {
	// Streams is how many Put and Get streams are served at a time; further ones wait,
	// and their senders with them, by gRPC's flow control. Default 32.
	Streams int
	// Stall is how long the other side of such a stream may do nothing before the stream
	// is ended; default one minute.
	Stall time.Duration
	// ShortCircuit lets clients on this host read and write values by way of the shard's
	// files, if it has any: see Attach.
	ShortCircuit bool
}

// StreamBytes is what a stream may take in memory: a group of values on its way to or
// from the shard, a message here and in gRPC, and heads. One value at a time may be
// larger than that; see Server.
const StreamBytes = groupBytes + 4*messageBytes

// NewServer makes the service of a shard. Beside what the shard itself takes, a server
// takes at most Streams x StreamBytes and the size of the largest value: values over
// a group's size are taken in one at a time.
func NewServer(shard store.Shard) *Server { return NewServerWith(shard, ServerOptions{}) }

// NewServerWith is NewServer with options.
func NewServerWith(shard store.Shard, o ServerOptions) *Server {
	if o.Streams <= 0 {
		o.Streams = defaultStreams
	}
	if o.Stall <= 0 {
		o.Stall = defaultStall
	}
	s := &Server{shard: shard, limits: shard.Limits(), stall: o.Stall, slots: make(chan struct{}, o.Streams), large: make(chan struct{}, 1)}
	if o.ShortCircuit {
		s.shortCircuit()
	}
	return s
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

// Commit passes on to the shard.
func (s *Server) Commit(ctx context.Context, req *taxonv1.CommitRequest) (*taxonv1.CommitResult, error) {
	if err := store.CheckCommit(req.Job, req.Attempts); err != nil {
		return nil, toStatus(err)
	}
	if err := s.shard.Commit(ctx, req.Job, req.Step, req.Attempts); err != nil {
		return nil, toStatus(err)
	}
	return &taxonv1.CommitResult{}, nil
}

// Drop passes on to the shard.
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

// List streams the keys of this shard in key order.
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
