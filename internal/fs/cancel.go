package fs

import (
	"context"
	"io"
	"time"
)

// CancelReader ends a Read when its context is cancelled: a terminal or a pipe that
// says nothing would otherwise hold up the clean end that Ctrl-C asks for. The read
// underneath can't be broken off, so its goroutine stays until the process ends or
// input comes. Not for use by several goroutines.
type CancelReader struct {
	ctx     context.Context
	r       io.Reader
	buf     []byte
	rest    []byte      // of buf, not handed out yet
	err     error       // that came with it
	pending chan readOf // nil: no read is under way
}

type readOf struct {
	n   int
	err error
}

// NewCancelReader reads from r until ctx ends.
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

// fill takes the next piece of input, or returns the context's error.
func (c *CancelReader) fill() error {
	c.start()
	select {
	case got := <-c.pending:
		c.take(got)
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// start has a read under way.
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

func (c *CancelReader) take(got readOf) {
	c.pending = nil
	c.rest, c.err = c.buf[:got.n], got.err
}

// Within says whether a Read can end without waiting any longer than d from now, which it
// finds out by waiting: there is input, or its end, or the context's.
func (c *CancelReader) Within(d time.Duration) bool {
	if len(c.rest) > 0 || c.err != nil {
		return true
	}
	c.start()
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	select {
	case got := <-c.pending:
		c.take(got)
		return true
	case <-c.ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

// WhenIdle calls then once no read of the input underneath is under way: at once, or by a
// goroutine that waits for it. then may close what a read must not meet closed.
func (c *CancelReader) WhenIdle(then func() error) error {
	if c.pending == nil {
		return then()
	}
	select {
	case got := <-c.pending:
		c.take(got)
		return then()
	default:
	}
	go func() {
		<-c.pending
		_ = then() // nobody is left to be told
	}()
	return nil
}
