package scan

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"taxon/internal/cluster/secure"
)

// preface opens an HTTP/2 connection, followed by empty settings.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// frame returns an HTTP/2 frame. Its header may state a wrong length.
func frame(length uint32, kind, flags byte, stream uint32, payload []byte) []byte {
	b := []byte{byte(length >> 16), byte(length >> 8), byte(length), kind, flags}
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// openings lists the first bytes of port scanners, browsers and attackers.
func openings() map[string][]byte {
	r := seeded(1)
	noise := make([]byte, 64<<10)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	hello := append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, noise[:600]...)
	headers := []byte{0x83, 0x86, 0x44, 0x01, '/', 0x40, 0x02, 't', 'e', 0x08, 't', 'r', 'a', 'i', 'l', 'e', 'r', 's'}
	out := map[string][]byte{
		"nothing": nil,
		"noise":   noise,
		"zeros":   make([]byte, 64<<10),
		"HTTP/1":  []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
		"HTTP/1 upgrade": []byte("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: " +
			"h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"),
		"SSH":                []byte("SSH-2.0-OpenSSH_9.6\r\n"),
		"TLS hello, garbled": hello,
		"TLS record, long":   append([]byte{23, 3, 3, 255, 255}, noise...),
		"preface, noise":     append([]byte(preface), noise...),
		"half a preface":     []byte(preface[:10]),
		"huge frame":         append([]byte(preface), frame(1<<24-1, 0, 0, 1, noise)...),
		"data, no stream":    append([]byte(preface), frame(5, 0, 1, 7, []byte("hello"))...),
		"stream 0":           append([]byte(preface), frame(5, 0, 1, 0, []byte("hello"))...),
		"bad headers":        append([]byte(preface), frame(100, 1, 4, 1, noise[:100])...),
		"no method":          append([]byte(preface), frame(uint32(len(headers)), 1, 5, 1, headers)...),
		"settings, odd":      append([]byte(preface), frame(7, 4, 0, 0, noise[:7])...),
		"window 0":           append([]byte(preface), frame(4, 8, 0, 0, make([]byte, 4))...),
		"goaway":             append([]byte(preface), frame(8, 7, 0, 0, make([]byte, 8))...),
		"even stream":        append([]byte(preface), frame(uint32(len(headers)), 1, 5, 2, headers)...),
	}
	flood := []byte(preface)
	for range 2000 {
		flood = append(flood, frame(8, 6, 0, 0, noise[:8])...) // pings
	}
	out["pings"] = flood
	endless := append([]byte(preface), frame(10, 1, 0, 1, headers[:10])...)
	for range 200 {
		endless = append(endless, frame(16<<10, 9, 0, 1, noise[:16<<10])...) // endless continuations
	}
	out["headers without end"] = endless
	resets := []byte(preface)
	for i := range uint32(500) {
		resets = append(resets, frame(uint32(len(headers)), 1, 5, 2*i+1, headers)...)
		resets = append(resets, frame(4, 3, 0, 2*i+1, []byte{0, 0, 0, 8})...)
	}
	out["rapid resets"] = resets
	return out
}

// shout sends bytes and reads the answer until the other side closes the connection or is silent.
func shout(t *testing.T, conn net.Conn, data []byte) {
	t.Helper()
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(300 * time.Millisecond)) // slower answers are ignored
	_, _ = conn.Write(data)                                      // the other side may have closed the connection
	n, err := io.Copy(io.Discard, io.LimitReader(conn, 10<<20))
	if n >= 10<<20 {
		t.Error("answers without end")
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !isReset(err) {
		t.Log(err) // an abrupt close is allowed
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

func scan(t *testing.T, s *target, dial func() (net.Conn, error)) {
	for name, data := range openings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := dial()
			if err != nil {
				t.Fatal(err)
			}
			shout(t, c, data)
		})
	}
}

func TestScanPlain(t *testing.T) {
	s := start(t, secure.Options{})
	t.Run("scan", func(t *testing.T) { scan(t, s, func() (net.Conn, error) { return net.Dial("tcp", s.addr) }) })
	alive(t, dial(t, secure.Options{}, s.addr))
}

// TestScanTLS does the same outside and inside of TLS.
func TestScanTLS(t *testing.T) {
	a, err := secure.OpenAuthority(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Issue(secure.Request{Hosts: []string{"127.0.0.1"}, Roles: []secure.Role{secure.Coordinator},
		Valid: 48 * time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, secure.Options{CACert: a.CertFile(), Cert: c.Cert, Key: c.Key})
	t.Run("outside", func(t *testing.T) { scan(t, s, func() (net.Conn, error) { return net.Dial("tcp", s.addr) }) })
	t.Run("inside", func(t *testing.T) {
		scan(t, s, func() (net.Conn, error) {
			return tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		})
	})
	stranger := dial(t, secure.Options{CACert: a.CertFile()}, s.addr)
	alive(t, stranger)
	for _, m := range s.methods {
		if m.full == "/taxon.v1.Jobs/ListJobs" {
			if got := call(t, stranger, m, quick, nil); got.String() != "Unauthenticated" {
				t.Errorf("without certificate: %v", got)
			}
		}
	}
}
