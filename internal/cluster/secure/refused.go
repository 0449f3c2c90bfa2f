package secure

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Refusal is a call that a server refused: without an identity (Unauthenticated), not allowed to
// its caller (PermissionDenied), or beyond a limit (ResourceExhausted).
type Refusal struct {
	Code codes.Code
	// Call is the full method, or the method and path of a page.
	Call string
	// By is the caller, as Caller returns it. It is empty if it is not known.
	By string
	// From is the host of the caller. It is empty if it is not known.
	From string
	Why  string
}

// note reports an error that refuses a call.
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

// watchUnary and watchStream report what services refuse after admit has allowed the call.
func (g *guard) watchUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler) (any, error) {
	reply, err := handle(ctx, req)
	g.noteCall(ctx, err, info.FullMethod)
	return reply, err
}

func (g *guard) watchStream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo,
	handle grpc.StreamHandler) error {
	err := handle(srv, s)
	g.noteCall(s.Context(), err, info.FullMethod)
	return err
}
