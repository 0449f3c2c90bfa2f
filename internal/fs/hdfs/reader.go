package hdfs

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/colinmarc/hdfs/v2"

	"taxon/internal/fs/vfs"
)

const (
	rangeBytes = 8 << 20 // bytes of one request to a data node

	// readers is the number of ranges that are fetched at the same time, each over its own
	// connection.
	readers = 2
	ahead   = 1 // number of fetched ranges that wait to be read
)

// Reader reads a file from beginning to end. It fetches ranges in parallel and in advance, and
// again if a data node or name node fails. If the file is replaced in the meantime, it returns an
// error and never a mixture.
type Reader struct {
	fs   *FS
	name string
	info os.FileInfo
	// parts fetches for ReadAt. It is nil before the first call.
	parts *fetcher

	// What follows is for Read. cancel is nil before the first call.
	cancel context.CancelFunc
	order  chan *span // in the order of reading
	free   chan []byte
	cur    *span
	rest   []byte
	err    error
	group  sync.WaitGroup
}

// span is a range that is being fetched.
type span struct {
	offset int64
	buf    []byte
	done   chan error
}

// Open opens a file. The Reader owns f and closes it.
func (f *FS) Open(name string) (*Reader, error) {
	info, err := f.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	return &Reader{fs: f, name: name, info: info}, nil
}

// start begins to fetch ranges for Read.
func (r *Reader) start() {
	ctx, cancel := context.WithCancel(r.fs.ctx)
	r.cancel = cancel
	workers := int(min(readers, (r.info.Size()+rangeBytes-1)/rangeBytes))
	r.order = make(chan *span, readers+ahead)
	r.free = make(chan []byte, readers+ahead)
	for range readers + ahead {
		r.free <- nil
	}
	work := make(chan *span)
	r.group.Add(1 + workers)
	go r.plan(ctx, work)
	for i := range workers {
		w := &fetcher{name: r.name, info: r.info}
		if i == 0 && r.parts == nil {
			w.fs = r.fs
		}
		go func() {
			defer r.group.Done()
			w.run(ctx, r.fs.loc, work)
		}()
	}
}

// Size returns the file's length when it was opened.
func (r *Reader) Size() int64 { return r.info.Size() }

// plan divides the file into ranges.
func (r *Reader) plan(ctx context.Context, work chan<- *span) {
	defer r.group.Done()
	defer close(work)
	defer close(r.order)
	for at := int64(0); at < r.info.Size(); at += rangeBytes {
		n := min(rangeBytes, r.info.Size()-at)
		var buf []byte
		select {
		case buf = <-r.free:
		case <-ctx.Done():
			return
		}
		if int64(cap(buf)) < n {
			buf = make([]byte, n)
		}
		s := &span{offset: at, buf: buf[:n], done: make(chan error, 1)}
		r.order <- s
		select {
		case work <- s:
		case <-ctx.Done():
			s.done <- ctx.Err()
			return
		}
	}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if r.cancel == nil && r.err == nil {
		r.start()
	}
	for len(r.rest) == 0 && r.err == nil {
		if r.cur != nil {
			r.free <- r.cur.buf
			r.cur = nil
		}
		s, ok := <-r.order
		if !ok {
			r.err = io.EOF
			if err := r.fs.ctx.Err(); err != nil {
				r.err = err
			}
			break
		}
		if r.err = <-s.done; r.err == nil {
			r.cur, r.rest = s, s.buf
		}
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 || offset+int64(len(p)) > r.Size() {
		return 0, io.ErrUnexpectedEOF
	}
	if r.parts == nil {
		r.parts = &fetcher{name: r.name, info: r.info}
		if r.cancel == nil { // else a fetcher of Read's has the connection
			r.parts.fs = r.fs
		}
	}
	if err := r.parts.fetch(r.fs.ctx, r.fs.loc, &span{offset: offset, buf: p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends reading and closes the file system.
func (r *Reader) Close() error {
	r.err, r.rest = os.ErrClosed, nil
	if r.cancel != nil {
		r.cancel()
		r.fs.closeConns() // interrupts fetches
		r.group.Wait()
	}
	if r.parts != nil {
		r.parts.close(r.parts.fs != r.fs)
	}
	return r.fs.Close()
}

// fetcher fetches ranges over its own connection, because the library's client is for one
// goroutine.
type fetcher struct {
	fs   *FS // nil until it is first needed
	name string
	info os.FileInfo
	file *hdfs.FileReader
}

func (w *fetcher) run(ctx context.Context, l Location, work <-chan *span) {
	own := w.fs == nil
	for s := range work {
		s.done <- w.fetch(ctx, l, s)
	}
	w.close(own)
}

// close ends the fetching, and the connection if it is the fetcher's own.
func (w *fetcher) close(own bool) {
	if w.file != nil {
		w.file.Close()
	}
	if own && w.fs != nil {
		w.fs.Close()
	}
}

var errReplaced = &vfs.InputError{Msg: "was replaced or changed while it was read: run the command again"}

// fetch fills a span. After a failure it continues with the missing part.
func (w *fetcher) fetch(ctx context.Context, l Location, s *span) error {
	if w.fs == nil {
		fs, err := Dial(ctx, l, patience)
		if err != nil {
			return err
		}
		w.fs = fs
	}
	got := 0
	return w.fs.retry(func(c *hdfs.Client) (err error) {
		if ctx.Err() != nil {
			return os.ErrClosed
		}
		defer func() {
			if err != nil && w.file != nil {
				w.file.Close()
				w.file = nil
			}
		}()
		if w.file == nil {
			if w.file, err = c.Open(w.name); err != nil {
				w.file = nil
				if errors.Is(err, os.ErrNotExist) {
					return errReplaced
				}
				return err
			}
			if !sameFile(w.file.Stat(), w.info) {
				return errReplaced
			}
		}
		if _, err = w.file.Seek(s.offset+int64(got), io.SeekStart); err != nil {
			return err
		}
		n, err := io.ReadFull(w.file, s.buf[got:])
		got += n
		return err
	})
}

// sameFile compares the name node's answers about a name at two times.
func sameFile(a, b os.FileInfo) bool {
	x, okX := a.Sys().(*hdfs.FileStatus)
	y, okY := b.Sys().(*hdfs.FileStatus)
	if okX && okY && x.GetFileId() != y.GetFileId() {
		return false
	}
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && !a.IsDir()
}
