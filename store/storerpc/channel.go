package storerpc

import (
	"context"
	"io"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Channel is an in-process transport for any gRPC services: servers register with it
// as with a grpc.Server, clients call through it as through a connection. Calls go
// through the generated stubs and handlers, with deadlines, cancellation, request
// metadata and status codes as over a connection; but messages are copied rather than
// serialised, and the store's bulk messages are handed over. Response headers, trailers,
// call options and interceptors are not carried.
//
// The handler of a server's stream has a goroutine of its own and a message under way in
// each direction. Other handlers run in the caller's goroutine, a client's stream being
// collected first: waking a goroutine costs more than storing a task's values. Such a call
// ends when its handler does, which should heed its context.
//
// As with any gRPC stream, who begins one must read it to its end or end its context.
type Channel struct {
	services map[string]*service
}

var (
	_ grpc.ClientConnInterface = (*Channel)(nil)
	_ grpc.ServiceRegistrar    = (*Channel)(nil)
)

type service struct {
	impl    any
	unary   map[string]grpc.MethodDesc
	streams map[string]grpc.StreamDesc
}

// NewChannel makes a transport without services.
func NewChannel() *Channel { return &Channel{services: map[string]*service{}} }

// RegisterService adds a service; all of them before the first call.
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

// find splits "/service/method".
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
func (c *Channel) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
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

// serverContext gives a handler the caller's deadline, cancellation and metadata, but
// not its values. Cancel it when the handler has returned.
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

// statusError makes of a handler's error what a client of a connection would see.
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
	done                chan struct{} // closed when the handler has returned
	err                 error         // its status; read after done
}

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

// SendMsg gives io.EOF when the handler has returned: RecvMsg has its status.
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
		case m := <-s.responses: // sent before the handler returned
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
