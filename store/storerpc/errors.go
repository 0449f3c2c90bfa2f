package storerpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// meanings maps errors to codes and back. The first match counts.
var meanings = []struct {
	err  error
	code codes.Code
}{
	{store.ErrInvalid, codes.InvalidArgument},
	{store.ErrConflict, codes.AlreadyExists},
	{store.ErrCorrupt, codes.DataLoss},
	{store.ErrTooLarge, codes.OutOfRange},
	{store.ErrFull, codes.ResourceExhausted},
	{store.ErrClosed, codes.FailedPrecondition},
	{store.ErrUnavailable, codes.Unavailable},
	{store.ErrUnavailable, codes.Unauthenticated}, // certificates or tokens are being changed
	{context.Canceled, codes.Canceled},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
}

// toStatus turns a shard's error into a gRPC status error.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err // an error of the transport
	}
	code := codes.Internal
	for _, m := range meanings {
		if errors.Is(err, m.err) {
			code = m.code
			break
		}
	}
	st := status.New(code, err.Error())
	var ke *store.KeyError
	if errors.As(err, &ke) {
		if detailed, err := st.WithDetails(keyToProto(new(taxonv1.Key), ke.Key)); err == nil {
			st = detailed
		}
	}
	return st.Err()
}

// remoteError is a shard's error on the client's side.
type remoteError struct {
	shard string
	msg   string
	// cause is a sentinel or context error. It is nil if the meaning is unknown.
	cause error
}

func (e *remoteError) Error() string { return "store shard " + e.shard + ": " + e.msg }
func (e *remoteError) Unwrap() error { return e.cause }

// fromStatus turns a gRPC error into one of package store's.
func fromStatus(shard, op string, err error) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	if !ok {
		return fmt.Errorf("store shard %s: %s: %w", shard, op, err)
	}
	out := &remoteError{shard: shard, msg: st.Message()}
	for _, m := range meanings {
		if m.code == st.Code() {
			out.cause = m.err
			break
		}
	}
	if out.cause == store.ErrClosed { // its owner closed it, and most likely restarts it
		out.cause = errors.Join(store.ErrClosed, store.ErrUnavailable)
	}
	if out.cause == store.ErrFull && !strings.Contains(st.Message(), store.ErrFull.Error()) {
		out.cause = store.ErrTooLarge // gRPC's code for a message over its bounds
	}
	if st.Code() == codes.Unavailable && out.msg != Plain(out.msg) {
		out.msg = "does not answer (" + Plain(out.msg) + "): start it again with its folder, if it does not " +
			"come back by itself"
	}
	if out.cause == nil {
		out.msg = fmt.Sprintf("%s: %s: %s", op, st.Code(), st.Message())
	}
	for _, d := range st.Details() {
		if k, ok := d.(*taxonv1.Key); ok {
			return &keyedError{remoteError: out, key: &store.KeyError{Op: op, Key: keyFromProto(k), Err: out}}
		}
	}
	return out
}

// keyedError is a remoteError in which errors.As finds a store.KeyError. Its text names the key
// already.
type keyedError struct {
	*remoteError
	key *store.KeyError
}

func (e *keyedError) Unwrap() error { return e.key }

// Plain returns the useful part of gRPC's text about a call that did not reach the server: the
// system's own words, such as "dial tcp 127.0.0.1:7: connect: connection refused".
func Plain(text string) string {
	for _, cover := range []string{"rpc error: code = Unavailable desc = ", `connection error: desc = "`,
		"transport: Error while dialing: ",
		"transport: authentication handshake failed: ", "error reading from server: ", "write tcp ", "read tcp "} {
		if _, inner, found := strings.Cut(text, cover); found {
			if strings.HasSuffix(cover, " tcp ") {
				inner = strings.TrimSpace(cover) + " " + inner
			}
			text = inner
		}
	}
	text = strings.TrimSuffix(text, `"`)
	if text == "EOF" || text == "error reading server preface: EOF" {
		return "the connection was closed"
	}
	return text
}
