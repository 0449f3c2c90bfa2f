package storerpc

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Channel is an in-process transport for gRPC services: servers register with it as with a
// grpc.Server, and clients call through it as through a connection. Calls use the generated stubs
// and handlers, and have deadlines, cancellation, request metadata and status codes as over a
// connection. But messages are copied instead of serialised, and the store's bulk messages are
// passed on without copying. Response headers, trailers, call options and interceptors are not
// supported.
//
// A handler that streams to its client has its own goroutine, with one message on its way in each
// direction. Other handlers run in the caller's goroutine, after the client's stream was collected,
// because waking a goroutine costs more than storing a task's values. Such a call ends when its
// handler does, so the handler should obey its context.
//
// As with any gRPC stream, whoever begins one must read it to its end or end its context.
type Channel struct {
	services map[string]*service
}

var (
	_ grpc.ClientConnInterface = (*Channel)(nil)
	_ grpc.ServiceRegistrar    = (*Channel)(nil)
)

// service is a registered service with its methods by name.
type service struct {
	impl    any
	unary   map[string]grpc.MethodDesc
	streams map[string]grpc.StreamDesc
}

// NewChannel returns a transport without services.
func NewChannel() *Channel { return &Channel{services: map[string]*service{}} }

// RegisterService adds a service. All must be added before the first call.
func (c *Channel) RegisterService(desc *grpc.ServiceDesc, impl any) {
	s := &service{impl: impl, unary: map[string]grpc.MethodDesc{}, streams: map[string]grpc.StreamDesc{}}
	for _, m := range desc.Methods {
		s.unary[m.MethodName] = m
	}
	for _, m := range desc.Streams {
		s.streams[m.StreamName] = m
	}
	c.services[desc.ServiceName] = s
}

// find splits "/service/method" and looks up the service.
func (c *Channel) find(method string) (*service, string, error) {
	name, m, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	s := c.services[name]
	if s == nil {
		return nil, "", status.Errorf(codes.Unimplemented, "in-process call: unknown service %q", name)
	}
	return s, m, nil
}

// Invoke makes a unary call.
func (c *Channel) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	s, name, err := c.find(method)
	if err != nil {
		return err
	}
	m, ok := s.unary[name]
	if !ok {
		return status.Errorf(codes.Unimplemented, "in-process call: unknown method %q", method)
	}
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	answer, err := m.Handler(s.impl, inlineContext(ctx), func(in any) error { return copyMessage(in, args) }, nil)
	if err != nil {
		return statusError(err)
	}
	return copyMessage(reply, answer)
}

// NewStream begins a streaming call.
func (c *Channel) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	_ ...grpc.CallOption) (grpc.ClientStream, error) {
	s, name, err := c.find(method)
	if err != nil {
		return nil, err
	}
	m, ok := s.streams[name]
	if !ok {
		return nil, status.Errorf(codes.Unimplemented, "in-process call: unknown method %q", method)
	}
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	if !desc.ServerStreams {
		return &collectedStream{ctx: ctx, handle: func(st grpc.ServerStream) error { return m.Handler(s.impl, st) }}, nil
	}
	p := &pipe{requests: make(chan any, 1), responses: make(chan any, 1), done: make(chan struct{})}
	go func() {
		ctx, cancel := serverContext(ctx)
		defer cancel()
		p.err = statusError(m.Handler(s.impl, &serverStream{pipe: p, ctx: ctx}))
		close(p.done)
	}()
	return &clientStream{pipe: p, ctx: ctx}, nil
}

// serverContext returns a context for a handler. It has the caller's deadline, cancellation and
// metadata, but not its values. It must be cancelled when the handler has returned.
func serverContext(caller context.Context) (context.Context, context.CancelFunc) {
	ctx := context.Background()
	if md, ok := metadata.FromOutgoingContext(caller); ok {
		ctx = metadata.NewIncomingContext(ctx, md)
	}
	var cancel context.CancelFunc
	if deadline, ok := caller.Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, deadline)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	stop := context.AfterFunc(caller, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// statusError turns a handler's error into what a client would see over a connection.
func statusError(err error) error {
	if err == nil {
		return nil
	}
	if st, ok := status.FromError(err); ok {
		return st.Err()
	}
	return status.FromContextError(err).Err()
}

// pipe is what the two sides of a stream share.
type pipe struct {
	requests, responses chan any
	closeRequests       sync.Once
	// done is closed when the handler has returned.
	done chan struct{}
	// err is the handler's status. It may be read after done is closed.
	err error
}

// clientStream is the client's side of a stream.
type clientStream struct {
	*pipe
	ctx context.Context
}

func (s *clientStream) Header() (metadata.MD, error) { return nil, nil }
func (s *clientStream) Trailer() metadata.MD         { return nil }
func (s *clientStream) Context() context.Context     { return s.ctx }

func (s *clientStream) CloseSend() error {
	s.closeRequests.Do(func() { close(s.requests) })
	return nil
}

// SendMsg returns io.EOF when the handler has returned. RecvMsg then returns its status.
func (s *clientStream) SendMsg(m any) error {
	m, err := cloneMessage(m)
	if err != nil {
		return err
	}
	select {
	case s.requests <- m:
		return nil
	case <-s.done:
		return io.EOF
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

func (s *clientStream) RecvMsg(out any) error {
	select {
	case m := <-s.responses:
		return copyMessage(out, m)
	case <-s.done:
		select {
		case m := <-s.responses: // it was sent before the handler returned
			return copyMessage(out, m)
		default:
		}
		if s.err != nil {
			return s.err
		}
		return io.EOF
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

// serverStream is the handler's side of a stream.
type serverStream struct {
	*pipe
	ctx context.Context
}

func (s *serverStream) SetHeader(metadata.MD) error  { return nil }
func (s *serverStream) SendHeader(metadata.MD) error { return nil }
func (s *serverStream) SetTrailer(metadata.MD)       {}
func (s *serverStream) Context() context.Context     { return s.ctx }

func (s *serverStream) SendMsg(m any) error {
	m, err := cloneMessage(m)
	if err != nil {
		return err
	}
	select {
	case s.responses <- m:
		return nil
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

func (s *serverStream) RecvMsg(out any) error {
	select {
	case m, ok := <-s.requests:
		if !ok {
			return io.EOF
		}
		return copyMessage(out, m)
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

// callContext is the context of a handler that runs in its caller's goroutine. It has the caller's
// end and metadata, but not its values.
type callContext struct {
	context.Context
	// incoming has the metadata alone.
	incoming context.Context
}

// inlineContext returns the context of a handler that runs in its caller's goroutine.
func inlineContext(caller context.Context) context.Context {
	c := &callContext{Context: caller, incoming: context.Background()}
	if md, ok := metadata.FromOutgoingContext(caller); ok {
		c.incoming = metadata.NewIncomingContext(c.incoming, md)
	}
	return c
}

func (c *callContext) Value(key any) any { return c.incoming.Value(key) }

// collectedStream is a client's stream with one answer. It is both sides, because the handler runs
// in the client's RecvMsg. A handler that refuses early is noticed only there.
type collectedStream struct {
	ctx      context.Context
	handle   func(grpc.ServerStream) error
	requests []any
	answered bool
}

func (s *collectedStream) Header() (metadata.MD, error) { return nil, nil }
func (s *collectedStream) Trailer() metadata.MD         { return nil }
func (s *collectedStream) Context() context.Context     { return s.ctx }
func (s *collectedStream) CloseSend() error             { return nil }

func (s *collectedStream) SendMsg(m any) error {
	if err := s.ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	m, err := cloneMessage(m)
	if err == nil {
		s.requests = append(s.requests, m)
	}
	return err
}

// RecvMsg runs the handler. It returns the answer only if the status is good.
func (s *collectedStream) RecvMsg(out any) error {
	if s.answered {
		return io.EOF
	}
	s.answered = true
	if err := s.ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	h := &collectedHandler{ctx: inlineContext(s.ctx), requests: s.requests}
	if err := statusError(s.handle(h)); err != nil {
		return err
	}
	if h.answer == nil {
		return status.Error(codes.Internal, "in-process call: the handler gave no answer")
	}
	return copyMessage(out, h.answer)
}

// collectedHandler is the handler's side.
type collectedHandler struct {
	ctx      context.Context
	requests []any
	answer   any
}

func (h *collectedHandler) SetHeader(metadata.MD) error  { return nil }
func (h *collectedHandler) SendHeader(metadata.MD) error { return nil }
func (h *collectedHandler) SetTrailer(metadata.MD)       {}
func (h *collectedHandler) Context() context.Context     { return h.ctx }

func (h *collectedHandler) SendMsg(m any) (err error) {
	h.answer, err = cloneMessage(m)
	return err
}

func (h *collectedHandler) RecvMsg(out any) error {
	if err := h.ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	if len(h.requests) == 0 {
		return io.EOF
	}
	m := h.requests[0]
	h.requests = h.requests[1:]
	return copyMessage(out, m)
}

// Embedded serves shards in this process and returns their client. Shard i is named "shard-i".
// Values of memory shards are shared with the client, not copied. The caller closes the shards
// after the last call.
func Embedded(shards []store.Shard, limits store.Limits) (*Client, error) {
	ends := make([]Endpoint, len(shards))
	for i, shard := range shards {
		server := NewServer(shard)
		server.local = true
		channel := NewChannel()
		server.Register(channel)
		ends[i] = Endpoint{Name: fmt.Sprintf("shard-%d", i), Conn: channel}
	}
	c, err := NewClient(ends, limits)
	if err != nil {
		return nil, err
	}
	for _, s := range c.shards {
		s.local = true
	}
	return c, nil
}

// cloneMessage copies a sender's message. It does not copy bulk messages and tasks' reports,
// because nobody changes one after sending it.
func cloneMessage(in any) (any, error) {
	switch in := in.(type) {
	case *taxonv1.PutChunks, *taxonv1.PutResult, *taxonv1.GetChunks, *taxonv1.KeyInfos, *taxonv1.GetRequest,
		*taxonv1.ReportRequest, *taxonv1.ReportResult:
		return in, nil
	case proto.Message:
		return proto.Clone(in), nil
	default:
		return nil, status.Errorf(codes.Internal, "in-process call: %T is no message", in)
	}
}

// copyMessage copies a message into the receiver's.
func copyMessage(out, in any) error {
	switch in := in.(type) {
	case *taxonv1.PutChunks:
		if out, ok := out.(*taxonv1.PutChunks); ok {
			out.Chunks = in.Chunks
			return nil
		}
	case *taxonv1.GetChunks:
		if out, ok := out.(*taxonv1.GetChunks); ok {
			out.Chunks = in.Chunks
			return nil
		}
	case *taxonv1.GetRequest:
		if out, ok := out.(*taxonv1.GetRequest); ok {
			out.Keys = in.Keys
			return nil
		}
	case *taxonv1.KeyInfos:
		if out, ok := out.(*taxonv1.KeyInfos); ok {
			out.Infos = in.Infos
			return nil
		}
	case *taxonv1.PutResult:
		if out, ok := out.(*taxonv1.PutResult); ok {
			out.Values, out.Bytes = in.Values, in.Bytes
			return nil
		}
	case *taxonv1.ReportRequest:
		if out, ok := out.(*taxonv1.ReportRequest); ok {
			handReport(out, in)
			return nil
		}
	case *taxonv1.ReportResult:
		if out, ok := out.(*taxonv1.ReportResult); ok {
			out.Accepted, out.Lease, out.More = in.Accepted, in.Lease, in.More
			return nil
		}
	case proto.Message:
		if out, ok := out.(proto.Message); ok && out.ProtoReflect().Descriptor() == in.ProtoReflect().Descriptor() {
			proto.Reset(out)
			proto.Merge(out, in)
			return nil
		}
	}
	return status.Errorf(codes.Internal, "in-process call: cannot copy %T to %T", in, out)
}

// handReport moves the report in to out, which is empty.
func handReport(out, in *taxonv1.ReportRequest) {
	out.Worker, out.Lease, out.Returned, out.Next, out.Ahead, out.Most, out.More = in.Worker, in.Lease, in.Returned,
		in.Next, in.Ahead, in.Most, in.More
	out.Sums, out.CpuSeconds, out.BytesRead, out.BytesWritten = in.Sums, in.CpuSeconds, in.BytesRead, in.BytesWritten
	out.Error, out.Deterministic, out.Unavailable, out.Unfit, out.Lost = in.Error, in.Deterministic, in.Unavailable,
		in.Unfit, in.Lost
}
