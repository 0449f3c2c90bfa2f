package hdfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"taxon/internal/retry"
)

const (
	// patience is the time for which a name node that has answered before may be unreachable, or a
	// block without a data node: long enough for a restart with its safe mode, or for the failover
	// of a data node.
	patience = time.Minute

	// noNodesWait is the time for which a name node may find no data node for a block before the
	// error is believed.
	noNodesWait = 5 * time.Second

	// stall is the time for which a connection may transfer no byte while an answer is due.
	stall       = time.Minute
	dialTimeout = 10 * time.Second

	// receiveBytes bounds the bytes that a data node has sent in vain when a range ends, because it
	// sends its block to the end.
	receiveBytes = 1 << 20
	firstPause   = 20 * time.Millisecond
	longPause    = time.Second
)

// FS is a connection to one file system under one user. It is used by one goroutine.
type FS struct {
	// context of all calls; when it ends, connections are closed
	ctx          context.Context
	loc          Location
	opts         hdfs.ClientOptions
	client       *hdfs.Client
	release      func() bool
	outage       bool        // a name node has failed: its safe mode is waited for
	answers      atomic.Bool // a name node has answered once
	wait         time.Duration
	waitSafeMode bool // wait for the end of safe mode in any case

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// Dial connects to the file system of l and checks that a name node answers within wait. If wait is
// 0, it tries once. Cancelling ctx interrupts all calls. The caller must call Close.
func Dial(ctx context.Context, l Location, wait time.Duration) (*FS, error) {
	o, err := options(l)
	if err != nil {
		return nil, err
	}
	f := &FS{ctx: ctx, loc: l, opts: o, wait: max(patience, wait), waitSafeMode: wait > 0, conns: map[net.Conn]struct{}{}}
	f.opts.NamenodeDialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return f.dial(ctx, network, addr, true)
	}
	f.opts.DatanodeDialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return f.dial(ctx, network, addr, false)
	}
	f.release = context.AfterFunc(ctx, f.closeConns)
	for began := time.Now(); ; {
		if err = f.connect(); err == nil {
			return f, nil
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if ctx.Err() != nil || time.Since(began) >= wait || retry.For(ctx, longPause/4) != nil {
			f.Close()
			return nil, err
		}
	}
}

// connect creates a new client and calls the name node.
func (f *FS) connect() error {
	if f.client != nil {
		f.client.Close()
		f.client = nil
	}
	c, err := hdfs.NewClient(f.opts)
	if err != nil {
		return errAddress(f.opts.Addresses, err)
	}
	if _, err := c.Stat("/"); err != nil && !errors.Is(err, os.ErrPermission) {
		c.Close()
		if exception, _ := remote(err); exception != "" && !isSafeMode(err) {
			return explain(err)
		}
		return errAddress(f.opts.Addresses, err)
	}
	f.client = c
	f.answers.Store(true)
	return nil
}

// Close closes the connection. Files that use it must be closed first.
func (f *FS) Close() error {
	f.release()
	if f.client != nil {
		f.client.Close()
		f.client = nil
	}
	f.closeConns()
	return nil
}

// retry repeats a call until it succeeds or fails permanently.
func (f *FS) retry(call func(c *hdfs.Client) error) error {
	began := time.Now()
	for wait := firstPause; ; wait = min(2*wait, longPause) {
		var err error
		if f.client == nil {
			err = f.connect()
		}
		if f.client != nil {
			if err = call(f.client); err == nil {
				return nil
			}
		}
		if f.ctx.Err() != nil {
			return f.ctx.Err()
		}
		if f.client != nil && (settled(err) || f.lastTry(err, time.Since(began))) || time.Since(began) > f.wait {
			return explain(err)
		}
		if exception, _ := remote(err); exception == "" {
			f.outage = true
			if f.client != nil {
				f.client.Close()
				f.client = nil
			}
		}
		if retry.For(f.ctx, wait) != nil {
			return f.ctx.Err()
		}
	}
}

// lastTry reports whether a temporary error has lasted too long.
func (f *FS) lastTry(err error, since time.Duration) bool {
	_, message := remote(err)
	switch {
	case f.outage:
		return since > f.wait
	case isSafeMode(err):
		return !f.waitSafeMode || since > f.wait
	case noNodes(message):
		return since > min(noNodesWait, f.wait)
	}
	return since > f.wait
}

// Stat describes a file or folder.
func (f *FS) Stat(name string) (info os.FileInfo, err error) {
	err = f.retry(func(c *hdfs.Client) error {
		info, err = c.Stat(name)
		return err
	})
	return info, err
}

// ReadDir lists a folder by name.
func (f *FS) ReadDir(name string) (list []os.FileInfo, err error) {
	err = f.retry(func(c *hdfs.Client) error {
		info, err := c.Stat(name)
		if err == nil && !info.IsDir() {
			err = &os.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
		}
		if err == nil {
			list, err = c.ReadDir(name)
		}
		return err
	})
	slices.SortFunc(list, func(a, b os.FileInfo) int { return bytes.Compare([]byte(a.Name()), []byte(b.Name())) })
	return list, err
}

// Hidden reports whether Hadoop's tools ignore a file of this name.
func Hidden(name string) bool { return name != "" && (name[0] == '_' || name[0] == '.') }

// MkdirAll creates a folder and its missing parents.
func (f *FS) MkdirAll(name string) error {
	return f.retry(func(c *hdfs.Client) error { return c.MkdirAll(name, 0o755) })
}

// RemoveAll removes a file or folder. A missing one is no error.
func (f *FS) RemoveAll(name string) error {
	return f.retry(func(c *hdfs.Client) error {
		if err := c.RemoveAll(name); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
}

// Chmod sets the rights to a file or folder.
func (f *FS) Chmod(name string, mode os.FileMode) error {
	return f.retry(func(c *hdfs.Client) error { return c.Chmod(name, mode) })
}

// Rename renames a file or folder, and replaces an existing file. If the name node's answer was
// lost, the call has succeeded if the old name is gone and the new one exists.
func (f *FS) Rename(from, to string) error {
	tried := false
	return f.retry(func(c *hdfs.Client) error {
		err := c.Rename(from, to)
		if tried && errors.Is(err, os.ErrNotExist) {
			if _, e := c.Stat(to); e == nil {
				return nil
			}
		}
		tried = true
		return err
	})
}

// conn is a connection with timeouts, which ends with its FS.
type conn struct {
	net.Conn
	fs    *FS
	fresh bool // connection to a name node from which nothing was read yet
}

func (f *FS) dial(ctx context.Context, network, addr string, nameNode bool) (net.Conn, error) {
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok && !nameNode {
		_ = tcp.SetReadBuffer(receiveBytes) // an error only costs time
	}
	f.mu.Lock()
	f.conns[c] = struct{}{}
	f.mu.Unlock()
	return &conn{Conn: c, fs: f, fresh: nameNode}, nil
}

func (f *FS) closeConns() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.Close()
	}
	clear(f.conns)
}

func (c *conn) limit() time.Duration {
	if c.fs.answers.Load() {
		return stall
	}
	return dialTimeout
}

func (c *conn) Read(p []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(c.limit()))
	n, err := c.Conn.Read(p)
	if c.fresh && n > 0 {
		c.fresh = false
		if bytes.HasPrefix(p[:n], []byte("HTTP")) {
			return 0, errors.New("that is a port of its web pages")
		}
	}
	if err == io.EOF && c.fresh {
		err = errors.New("the connection was closed without an answer")
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(c.limit()))
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	c.fs.mu.Lock()
	delete(c.fs.conns, c.Conn)
	c.fs.mu.Unlock()
	return c.Conn.Close()
}
