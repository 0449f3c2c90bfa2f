package dataset

import (
	"context"
	"io"

	"taxon/internal/fs"
)

// ahead reads a file in a goroutine of its own, so that decompression and parsing share
// two cores, and so that a cancelled reader need not wait for standard input. The
// goroutine owns the file and closes it at its end.
type ahead struct {
	ctx    context.Context
	full   chan block
	empty  chan []byte
	stop   chan struct{}
	exited chan struct{}
	wait   bool // Close may wait for the goroutine
	cur    block
	off    int
}

type block struct {
	b   []byte
	err error
}

// readAhead starts reading with two buffers of size bytes.
func readAhead(ctx context.Context, f *fs.File, size int) *ahead {
	a := &ahead{ctx: ctx, full: make(chan block, 2), empty: make(chan []byte, 2),
		stop: make(chan struct{}), exited: make(chan struct{}), wait: !f.Waits()}
	a.empty <- make([]byte, size)
	a.empty <- make([]byte, size)
	go a.run(f)
	return a
}

func (a *ahead) run(f *fs.File) {
	defer close(a.exited)
	defer f.Close()
	for {
		var b []byte
		select {
		case b = <-a.empty:
		case <-a.stop:
			return
		}
		n, err := io.ReadAtLeast(f, b, len(b)/2)
		if err == io.ErrUnexpectedEOF {
			err = io.EOF // of ReadAtLeast itself: fs.File wraps its own in an InputError
		}
		select {
		case a.full <- block{b[:n], err}:
		case <-a.stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	for a.off == len(a.cur.b) {
		if a.cur.err != nil {
			return 0, a.cur.err
		}
		if a.cur.b != nil {
			a.empty <- a.cur.b[:cap(a.cur.b)]
		}
		select {
		case a.cur = <-a.full:
			a.off = 0
		case <-a.ctx.Done():
			a.cur = block{err: a.ctx.Err()}
			a.off = 0
		}
	}
	n := copy(p, a.cur.b[a.off:])
	a.off += n
	return n, nil
}

// Close ends the goroutine and waits for it, unless it may hang in a read from a pipe:
// such a one ends with the next byte.
func (a *ahead) Close() error {
	close(a.stop)
	if a.wait {
		<-a.exited
	}
	return nil
}
