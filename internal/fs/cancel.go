package fs

import (
	"context"
	"io"
	"time"
)

// CancelReader is a reader whose Read returns when its context is cancelled, although the read
// underneath cannot be interrupted: the goroutine of that read stays until input arrives or the
// process ends. Without it, a terminal or pipe that sends nothing would delay the reaction to
// Ctrl-C. A CancelReader is used by one goroutine.
type CancelReader struct {
	ctx     context.Context
	r       io.Reader
	buf     []byte
	rest    []byte      // unread part of buf
	err     error       // error that was returned with rest
	pending chan readOf // nil if no read is in progress
}

type readOf struct {
	n   int
	err error
}

// NewCancelReader returns a reader of r that ends with ctx.
func NewCancelReader(ctx context.Context, r io.Reader) *CancelReader {
	return &CancelReader{ctx: ctx, r: r}
}

func (c *CancelReader) Read(p []byte) (int, error) {
	if len(c.rest) == 0 && c.err == nil {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	if len(c.rest) == 0 {
		return 0, c.err
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// fill waits for the next piece of input, or returns the context's error.
func (c *CancelReader) fill() error {
	c.start()
	select {
	case got := <-c.pending:
		c.receive(got)
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// start begins a read in the background.
func (c *CancelReader) start() {
	if c.buf == nil {
		c.buf = make([]byte, 64<<10) // a pipe's capacity
	}
	if c.pending == nil {
		done := make(chan readOf, 1)
		go func() {
			n, err := c.r.Read(c.buf)
			done <- readOf{n, err}
		}()
		c.pending = done
	}
}

func (c *CancelReader) receive(got readOf) {
	c.pending = nil
	c.rest, c.err = c.buf[:got.n], got.err
}

// Within waits for at most d, and reports whether a Read would return at once: with input, at the
// end of the input, or because the context has ended.
func (c *CancelReader) Within(d time.Duration) bool {
	if len(c.rest) > 0 || c.err != nil {
		return true
	}
	c.start()
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	select {
	case got := <-c.pending:
		c.receive(got)
		return true
	case <-c.ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

// WhenIdle calls then as soon as no read is in progress: immediately, or later from a goroutine
// that waits for the read. So then may close a source that must not be closed during a read.
func (c *CancelReader) WhenIdle(then func() error) error {
	if c.pending == nil {
		return then()
	}
	select {
	case got := <-c.pending:
		c.receive(got)
		return then()
	default:
	}
	go func() {
		<-c.pending
		_ = then() // no caller is left to receive the error
	}()
	return nil
}
