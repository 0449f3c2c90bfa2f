package fs

import (
	"context"
	"io"
	"time"
)

// CancelReader ends a Read when its context is cancelled. Otherwise a terminal or a pipe that
// sends nothing would delay the end that Ctrl-C asks for. The read underneath can't be
// interrupted: its goroutine stays until input comes or the process ends. For one goroutine.
type CancelReader struct {
	ctx     context.Context
	r       io.Reader
	buf     []byte
	rest    []byte      // unread part of buf
	err     error       // error that came with it
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

// fill waits for the next piece of input, or returns the context's error.
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

func (c *CancelReader) take(got readOf) {
	c.pending = nil
	c.rest, c.err = c.buf[:got.n], got.err
}

// Within waits for at most d, and says whether a Read would return at once: there is input, its
// end, or the context's end.
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

// WhenIdle calls then once no read is under way: at once, or later from a goroutine that waits
// for that. then may close what must not be closed during a read.
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
		_ = then() // nobody is left to report an error to
	}()
	return nil
}
