package storerpc

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/store"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`: "dial tcp 127.0.0.1:1: connect: connection refused",
		`rpc error: code = Unavailable desc = connection error: desc = "error reading server preface: EOF"`:            "the connection was closed",
		"error reading from server: read tcp 127.0.0.1:5->127.0.0.1:6: read: " +
			"connection reset by peer": "read tcp 127.0.0.1:5->127.0.0.1:6: read: connection reset by peer",
		"the coordinator is closing": "the coordinator is closing",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A shard to which access is denied is away, as its files may be being changed; what is
// wrong is said as it is.
func TestDeniedShardIsAway(t *testing.T) {
	err := fromStatus("s0", "get", status.Error(codes.Unauthenticated, "its certificate is for a, not for b"))
	if !errors.Is(err, store.ErrUnavailable) || err.Error() != "store shard s0: its certificate is for a, not for b" {
		t.Error(err)
	}
	if code := status.Code(toStatus(store.ErrUnavailable)); code != codes.Unavailable {
		t.Error(code)
	}
}
