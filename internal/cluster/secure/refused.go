package secure

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Refusal is a call that a server refused: without identity (Unauthenticated), not for its caller
// (PermissionDenied), or beyond a limit (ResourceExhausted).
type Refusal struct {
	Code codes.Code
	Call string // full method, or method and path of a page
	By   string // as Caller gives it; empty: not known
	From string // host of the caller; empty: not known
	Why  string
}

// note tells of an error, if it refuses the call.
func (g *guard) note(err error, call, by, from string) {
	switch s := status.Convert(err); s.Code() {
	case codes.Unauthenticated, codes.PermissionDenied, codes.ResourceExhausted:
		if g.refused != nil {
			g.refused(Refusal{Code: s.Code(), Call: call, By: by, From: hostOf(from), Why: s.Message()})
		}
	}
}

// noteCall is note for a call over gRPC.
func (g *guard) noteCall(ctx context.Context, err error, call string) {
	if err == nil {
		return
	}
	from := ""
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		from = p.Addr.String()
	}
	g.note(err, call, Caller(ctx), from)
}

// watchUnary and watchStream note what services refuse, behind admit.
func (g *guard) watchUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	reply, err := handle(ctx, req)
	g.noteCall(ctx, err, info.FullMethod)
	return reply, err
}

func (g *guard) watchStream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := handle(srv, s)
	g.noteCall(s.Context(), err, info.FullMethod)
	return err
}
