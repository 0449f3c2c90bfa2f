package storerpc

import "testing"

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`: "dial tcp 127.0.0.1:1: connect: connection refused",
		`rpc error: code = Unavailable desc = connection error: desc = "error reading server preface: EOF"`:            "the connection was closed",
		"error reading from server: read tcp 127.0.0.1:5->127.0.0.1:6: read: connection reset by peer":                 "read tcp 127.0.0.1:5->127.0.0.1:6: read: connection reset by peer",
		"the coordinator is closing": "the coordinator is closing",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
