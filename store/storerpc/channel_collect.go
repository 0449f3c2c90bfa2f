package storerpc

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// callContext is what a handler that runs in its caller's goroutine sees of the caller's
// context: its end, and the metadata, but not its values.
type callContext struct {
	context.Context
	incoming context.Context // has the metadata alone
}

func inlineContext(caller context.Context) context.Context {
	c := &callContext{Context: caller, incoming: context.Background()}
	if md, ok := metadata.FromOutgoingContext(caller); ok {
		c.incoming = metadata.NewIncomingContext(c.incoming, md)
	}
	return c
}

func (c *callContext) Value(key any) any { return c.incoming.Value(key) }

// collectedStream is a client's stream with one answer: both ends of it, for the handler
// runs in the client's RecvMsg. A handler that refuses early is heard there only.
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

// RecvMsg runs the handler; its answer counts only with the status behind it.
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

// collectedHandler is the handler's end.
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
