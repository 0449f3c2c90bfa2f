package storerpc

import "strings"

// Plain is what a user needs of gRPC's text on a call that did not get through: the system's
// own word, such as "dial tcp 127.0.0.1:7: connect: connection refused".
func Plain(text string) string {
	for _, cover := range []string{"rpc error: code = Unavailable desc = ", `connection error: desc = "`, "transport: Error while dialing: ",
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
