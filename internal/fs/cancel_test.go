package fs

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestCancelReaderReadsAll(t *testing.T) {
	text := strings.Repeat("0123456789", 20_000)
	for name, r := range map[string]io.Reader{
		"plain":         strings.NewReader(text),
		"data with EOF": iotest.DataErrReader(strings.NewReader(text)),
		"halves":        iotest.HalfReader(strings.NewReader(text)),
	} {
		got, err := io.ReadAll(NewCancelReader(t.Context(), r))
		if err != nil || string(got) != text {
			t.Errorf("%s: %d bytes, %v, want %d", name, len(got), err, len(text))
		}
	}
}

func TestCancelReaderIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	c := NewCancelReader(ctx, in)
	go out.Write([]byte("ab"))
	var p [1]byte
	if n, err := c.Read(p[:]); n != 1 || err != nil || p[0] != 'a' {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	cancel()
	if n, err := c.Read(p[:]); n != 1 || err != nil || p[0] != 'b' {
		t.Errorf("what was read before is lost: %d bytes, %v", n, err)
	}
	if _, err := c.Read(p[:]); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	out.Close() // ends the read underneath
}
