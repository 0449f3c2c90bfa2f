package main

import (
	"context"
	"io"

	"taxon/internal/fs"
)

// oneStdin refuses a command line that names standard input twice. flags names those of
// the verb that may.
func oneStdin(verb, flags string, paths ...string) error {
	n := 0
	for _, p := range paths {
		if p == fs.Stdin {
			n++
		}
	}
	if n > 1 {
		return usagef("%s: standard input can be read but once: name files for all but one of %s", verb, flags)
	}
	return nil
}

// cancelReader ends a Read when its context is cancelled: a terminal or a pipe that
// says nothing would otherwise hold up the clean end that Ctrl-C asks for. The read
// underneath can't be broken off, so its goroutine stays until the process ends or
// input comes. Not for use by several goroutines.
type cancelReader struct {
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

func newCancelReader(ctx context.Context, r io.Reader) *cancelReader {
	return &cancelReader{ctx: ctx, r: r}
}

func (c *cancelReader) Read(p []byte) (int, error) {
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
func (c *cancelReader) fill() error {
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
	select {
	case got := <-c.pending:
		c.pending = nil
		c.rest, c.err = c.buf[:got.n], got.err
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}
